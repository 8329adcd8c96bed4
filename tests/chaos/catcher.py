"""Receives thousands of requests a second, and records when each arrived and how it was answered.

For rows that measure: no line is flushed to the disk, since nobody kills this program, and signatures are left to
the other receiver. How requests are answered is said on stdin, by path, one JSON object a line:
`{"path": "/a", "status": 200, "latency": 0.1, "per_second": 50, "queue": 60}`; "" is every path that has no
answer of its own, status 0 breaks the connection off, `per_second` answers no faster than that (of those that
wait, `queue` at most: the rest is turned away with 503). Anything else on a line writes out what came so far.
Each line is answered with `ok`. Shares nothing with hookline.
Run as `catcher.py LEDGER`; it prints its port.
"""

import asyncio
import json
import os
import re
import sys
import time
import traceback
from typing import Any, BinaryIO, cast

import uvloop

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ID = re.compile(rb"\r\nwebhook-id: *([^\r]+)", re.IGNORECASE)
_ATTEMPT = re.compile(rb"\r\nwebhook-attempt: *(\d+)", re.IGNORECASE)
_WRITE_EVERY_S = 0.2


class Manner:
    """How one path is answered."""

    def __init__(
        self, *, status: int = 200, latency: float = 0.0, per_second: float = 0.0, queue: int = 0
    ) -> None:
        self.status = status
        self.latency = latency
        self._per_second = per_second
        self._queue = queue
        self._free_at = 0.0

    def answer(self, now: float) -> tuple[int, float]:
        """The status, and after how many seconds."""
        if not self._per_second:
            return self.status, self.latency
        wait = max(0.0, self._free_at - now)
        if wait * self._per_second > self._queue:
            return 503, 0.0
        self._free_at = max(self._free_at, now) + 1 / self._per_second
        return self.status, wait + self.latency


class Catcher:
    """What arrived, and how each path is answered."""

    def __init__(self, ledger: BinaryIO) -> None:
        self._ledger = ledger
        self._lines: list[bytes] = []
        self._manners: dict[bytes, Manner] = {b"": Manner()}

    def manner(self, path: bytes) -> Manner:
        return self._manners.get(path) or self._manners[b""]

    def note(self, line: bytes) -> None:
        self._lines.append(line)

    def behave(self, line: str) -> None:
        """Follow a line of stdin."""
        if line.startswith("{"):
            fields: dict[str, Any] = json.loads(line)
            path = fields.pop("path")
            self._manners[path.encode()] = Manner(**fields)
        else:
            self.write()

    def write(self) -> None:
        lines, self._lines = self._lines, []
        self._ledger.write(b"".join(lines))
        self._ledger.flush()


class Conversation(asyncio.Protocol):
    """One connection; its requests come one after the other."""

    def __init__(self, catcher: Catcher) -> None:
        self._catcher = catcher
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._pieces: list[bytes] = []
        self._have = 0
        self._need = 0  # bytes of the request, once its head is here

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from asyncio's

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._have += len(data)
        if self._have < self._need:
            return
        data = b"".join(self._pieces)
        end = data.find(b"\r\n\r\n")
        if end >= 0:
            length = _LENGTH.search(data, 0, end)
            self._need = end + 4 + (int(length[1]) if length else 0)
        if end < 0 or len(data) < self._need:
            self._pieces = [data]
            return
        self._pieces, self._have, self._need = [], 0, 0
        self._receive(data[:end])

    def _receive(self, head: bytes) -> None:
        began = time.time()
        path = head[head.find(b" ") + 1 : head.find(b" HTTP/")]
        status, latency = self._catcher.manner(path).answer(self._loop.time())
        id, attempt = _ID.search(head), _ATTEMPT.search(head)
        self._catcher.note(
            b"%b %b %b %.6f %.6f %d\n"
            % (
                id[1] if id else b"?",
                path,
                attempt[1] if attempt else b"0",
                began,
                began + latency,
                status,
            )
        )
        if latency:
            self._loop.call_later(latency, self._answer, status)
        else:
            self._answer(status)

    def _answer(self, status: int) -> None:
        if self._transport.is_closing():
            return  # the sender is gone
        if status == 0:
            self._transport.abort()
        else:
            self._transport.write(b"HTTP/1.1 %d x\r\ncontent-length: 0\r\n\r\n" % status)


async def main() -> None:
    loop = asyncio.get_running_loop()
    with open(sys.argv[1], "ab") as ledger:  # noqa: ASYNC230 - before anything is served
        catcher = Catcher(ledger)
        server = await loop.create_server(lambda: Conversation(catcher), "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)

        def listen() -> None:
            line = sys.stdin.readline()
            if not line:
                loop.stop()
                return
            try:
                catcher.behave(line)
            except Exception:
                traceback.print_exc()
                os._exit(1)  # a sender that waits for an answer must not wait for ever
            print("ok", flush=True)

        def write() -> None:
            catcher.write()
            loop.call_later(_WRITE_EVERY_S, write)

        write()
        loop.add_reader(sys.stdin.fileno(), listen)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
