"""Publishes events and records what it was promised.

Each publish is written to the ledger before it is sent, and its answer after, both flushed to the disk. A publish
without an answer is in doubt: most are sent again with the same key until they are answered, every eighth is left in
doubt, as by a producer that died.
Run as `producer.py LEDGER PORT TYPES`; a number on stdin publishes that many, and `done` follows.
"""

import hashlib
import http.client
import itertools
import json
import os
import sys
import threading
import time
from typing import Any

PUBLISHERS = 4
PATIENCE_S = 40.0  # how long one event is sent again
REQUEST_S = 15.0


class Ledger:
    def __init__(self, path: str) -> None:
        self._file = open(path, "ab")  # noqa: SIM115 - open for as long as the process
        self._lock = threading.Lock()

    def note(self, **line: Any) -> None:
        with self._lock:
            self._file.write(json.dumps({**line, "at": time.time()}).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())


class Publisher(threading.Thread):
    """Takes the next number until there is none."""

    def __init__(self, ledger: Ledger, port: int, types: int, numbers: "itertools.islice[int]") -> None:
        super().__init__()
        self._ledger = ledger
        self._port = port
        self._types = types
        self._numbers = numbers
        self._connection: http.client.HTTPConnection | None = None

    def run(self) -> None:
        for n in self._numbers:
            key = f"chaos-{n}"
            payload = json.dumps({"n": n, "filling": "x" * (n * 37 % 900)}).encode()
            body = b'{"type":"chaos.t%d","payload":%b}' % (n % self._types, payload)
            self._ledger.note(did="intent", key=key, digest=hashlib.sha256(payload).hexdigest())
            deadline = time.monotonic() + PATIENCE_S
            while True:
                began = time.monotonic()
                status, answer = self._post(key, body)
                took = round(time.monotonic() - began, 3)
                if status == 202:
                    self._ledger.note(did="ack", key=key, id=answer["id"], took=took)
                    break
                self._ledger.note(did="doubt", key=key, status=status, code=answer.get("code"), took=took)
                if n % 8 == 0 or time.monotonic() > deadline:
                    break
                time.sleep(0.1)

    def _post(self, key: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """The status, 0 for none, and the answer."""
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=REQUEST_S)
            headers = {"content-type": "application/json", "idempotency-key": key}
            self._connection.request("POST", "/v1/events", body, headers)
            response = self._connection.getresponse()
            text = response.read()
            return response.status, json.loads(text)
        except (OSError, ValueError, http.client.HTTPException):
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            return 0, {}


def main() -> None:
    path, port, types = sys.argv[1:]
    ledger = Ledger(path)
    numbers = itertools.count(1)
    for line in sys.stdin:
        # One iterator for all threads: `next` of a C iterator is one step under the interpreter's lock.
        share = itertools.islice(numbers, int(line))
        publishers = [Publisher(ledger, int(port), int(types), share) for _ in range(PUBLISHERS)]
        for each in publishers:
            each.start()
        for each in publishers:
            each.join()
        print("done", flush=True)


if __name__ == "__main__":
    main()
