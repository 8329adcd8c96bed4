"""What arrived, by the word of a program that shares nothing with hookline?

Every request is one line of JSON in the ledger, flushed to the disk before it is answered: what this says
arrived did arrive, whatever is killed meanwhile. Plain sockets, its own HMAC.
Run as `receiver.py LEDGER SECRET SLOWEST_S`; it prints its port.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import sys
import time
from typing import BinaryIO


class Receiver:
    def __init__(self, ledger: BinaryIO, secret: str, slowest: float) -> None:
        self._ledger = ledger
        self._key = base64.b64decode(secret.removeprefix("whsec_"))
        self._slowest = slowest

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                began = time.time()
                path, fields = _read_head(head)
                body = await reader.readexactly(int(fields["content-length"]))
                digest = hashlib.sha256(body).hexdigest()
                # Between nothing and the slowest, by the body: the same for every attempt of a delivery.
                await asyncio.sleep(self._slowest * int(digest[:4], 16) / 0xFFFF)
                line = {
                    "id": fields["webhook-id"],
                    "attempt": int(fields["webhook-attempt"]),
                    "digest": digest,
                    "path": path,
                    "signed": self._is_signed(fields, body),
                    "began": began,
                    "ended": time.time(),
                }
                self._ledger.write(json.dumps(line).encode() + b"\n")
                self._ledger.flush()
                os.fsync(self._ledger.fileno())
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the sender left, or was killed
        finally:
            writer.close()

    def _is_signed(self, fields: dict[str, str], body: bytes) -> bool:
        signed = f"{fields['webhook-id']}.{fields['webhook-timestamp']}.".encode() + body
        made = base64.b64encode(hmac.new(self._key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{made}" in fields["webhook-signature"].split(" ")


def _read_head(head: bytes) -> tuple[str, dict[str, str]]:
    request, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    fields = (line.partition(":") for line in lines)
    return request.split(" ")[1], {name.lower(): value.strip() for name, _, value in fields}


async def main() -> None:
    path, secret, slowest = sys.argv[1:]
    with open(path, "ab") as ledger:  # noqa: ASYNC230 - before anything is served
        receiver = Receiver(ledger, secret, float(slowest))
        server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
