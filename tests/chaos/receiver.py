"""Receives requests and records them, with no code shared with hookline.

Every request is one line of JSON in the ledger, flushed to the disk before it is answered: what this says
arrived did arrive, whatever is killed meanwhile. Plain sockets, its own HMAC.
Run as `receiver.py LEDGER SECRET SLOWEST_S`; it prints its port. After that each line of JSON on its input is
answered by one: `{"path": …, "status": 500, "wait": 1.0, "fails": 2}` changes how a path is answered (with `"hold": true`
not before the next change), `{"key": …}` adds a secret to those that are good, and `{"ask": "open"}` lists the
requests that are not answered yet.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import sys
import time
from typing import Any, BinaryIO, NamedTuple


class Manner(NamedTuple):
    """How requests for a path are answered."""

    status: int = 200
    wait: float | None = None  # None: between nothing and the slowest, by the body
    fails: int = 1 << 30  # attempts after this many are accepted, whatever the status
    hold: bool = False  # until there is another manner


class Receiver:
    def __init__(self, ledger: BinaryIO, secret: str, slowest: float) -> None:
        self._ledger = ledger
        self._keys = [_key(secret)]
        self._slowest = slowest
        self._manners: dict[str, Manner] = {}
        self._changed = asyncio.Condition()
        self._open: dict[int, dict[str, Any]] = {}
        self._count = 0

    async def obey(self, order: dict[str, Any]) -> Any:
        if "ask" in order:
            return list(self._open.values())
        if "key" in order:
            self._keys.append(_key(order["key"]))
        else:
            path = order.pop("path")
            async with self._changed:
                self._manners[path] = Manner(**order)
                self._changed.notify_all()
        return "ok"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                began = time.time()
                self._count += 1
                number = self._count
                path, fields = _read_head(head)
                self._open[number] = {
                    "id": fields["webhook-id"],
                    "path": path,
                    "began": began,
                    "by": _sender(fields),
                }
                try:
                    status = await self._answer(path, fields, began, reader)
                finally:
                    del self._open[number]
                writer.write(b"HTTP/1.1 %d Said\r\ncontent-length: 0\r\n\r\n" % status)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the sender left, or was killed
        finally:
            writer.close()

    async def _answer(
        self, path: str, fields: dict[str, str], began: float, reader: asyncio.StreamReader
    ) -> int:
        body = await reader.readexactly(int(fields["content-length"]))
        digest = hashlib.sha256(body).hexdigest()
        async with self._changed:
            await self._changed.wait_for(lambda: not self._manners.get(path, Manner()).hold)
        manner = self._manners.get(path, Manner())
        attempt = int(fields["webhook-attempt"])
        # By the body: the same for every attempt of a delivery.
        by_body = self._slowest * int(digest[:4], 16) / 0xFFFF
        await asyncio.sleep(by_body if manner.wait is None else manner.wait)
        status = manner.status if attempt <= manner.fails else 200
        line = {
            "id": fields["webhook-id"],
            "attempt": attempt,
            "digest": digest,
            "path": path,
            "keys": self._signed_by(fields, body),
            "stamp": int(fields["webhook-timestamp"]),
            "began": began,
            "ended": time.time(),
            "status": status,
            "by": _sender(fields),
        }
        self._ledger.write(json.dumps(line).encode() + b"\n")
        self._ledger.flush()
        os.fsync(self._ledger.fileno())
        return status

    def _signed_by(self, fields: dict[str, str], body: bytes) -> list[int]:
        """Which of the secrets it is signed with."""
        signed = f"{fields['webhook-id']}.{fields['webhook-timestamp']}.".encode() + body
        found = fields["webhook-signature"].split(" ")
        made = (base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()) for key in self._keys)
        return [n for n, each in enumerate(made) if f"v1,{each.decode()}" in found]


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"))


def _sender(fields: dict[str, str]) -> str:
    """Which process sent it: each is told to name itself in the place for an address."""
    return fields["user-agent"].rpartition("+")[2].rstrip(")")


def _read_head(head: bytes) -> tuple[str, dict[str, str]]:
    request, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    fields = (line.partition(":") for line in lines)
    return request.split(" ")[1], {name.lower(): value.strip() for name, _, value in fields}


async def _obey_orders(receiver: Receiver) -> None:
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := await orders.readline():
        print(json.dumps(await receiver.obey(json.loads(line))), flush=True)


async def main() -> None:
    path, secret, slowest = sys.argv[1:]
    with open(path, "ab") as ledger:  # noqa: ASYNC230 - before anything is served
        receiver = Receiver(ledger, secret, float(slowest))
        server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        async with server:
            await _obey_orders(receiver)


if __name__ == "__main__":
    asyncio.run(main())
