"""Receives requests and behaves badly, with no code shared with hookline.

The path says how: `/hang/1` never answers, `/drip/1` sends a byte of its answer now and then without end, `/flood/1`
sends a gigabyte, `/bomb/1` sends what would be 60 MB if somebody decompressed it. A request whose body says `polite` is
answered as by others, and not counted.
Run as `hostile.py LEDGER`; it prints its port. After that each line on its input is answered with a line of JSON: for
each of these manners, and for all together, how many requests began, how many are still open, how many were open at
once at most, the longest time until the sender hung up, and the most bytes that it took.
"""

import asyncio
import gzip
import json
import sys
import time
from typing import cast

import uvloop

DRIP_S = 0.2
GIGABYTE = 1_000_000_000
_BLOCK = bytes(65_536)
_BOMB = gzip.compress(bytes(60_000_000), compresslevel=9)
_HEAD = b"HTTP/1.1 200 Fine\r\ncontent-length: %d\r\n"


class Counts:
    """What happened on one path."""

    def __init__(self) -> None:
        self.began = self.open = self.most_at_once = self.most_bytes = 0
        self.longest_s = 0.0

    def begin(self) -> None:
        self.began += 1
        self.open += 1
        self.most_at_once = max(self.most_at_once, self.open)

    def end(self, seconds: float, size: int) -> None:
        self.open -= 1
        self.longest_s = max(self.longest_s, seconds)
        self.most_bytes = max(self.most_bytes, size)


class Conversation(asyncio.Protocol):
    """One connection."""

    def __init__(self, counts: dict[str, Counts]) -> None:
        self._all = counts
        self._counts: tuple[Counts, ...] = ()  # of the request that is open
        self._transport: asyncio.Transport
        self._loop = asyncio.get_running_loop()
        self._heard = b""
        self._sent = 0
        self._may_write = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from asyncio's

    def connection_lost(self, error: Exception | None) -> None:
        self._end()

    def pause_writing(self) -> None:
        self._may_write = False

    def resume_writing(self) -> None:
        self._may_write = True
        self._pour()

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, end, body = self._heard.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if not end or len(body) < int(fields[b"content-length"]):
            return
        self._heard = b""
        if b"polite" in body:
            self._transport.write(_HEAD % 0 + b"connection: close\r\n\r\n")
            self._transport.close()
            return
        manner = head.split(b"/")[1].decode()
        self._since, self._sent = time.monotonic(), 0
        self._counts = (self._all[manner], self._all["all"])
        for each in self._counts:
            each.begin()
        match manner:
            case "drip":
                self._say(_HEAD % GIGABYTE + b"\r\n")
                self._drip()
            case "flood":
                self._say(_HEAD % GIGABYTE + b"\r\n")
                self._pour()
            case "bomb":
                self._say(_HEAD % len(_BOMB) + b"content-encoding: gzip\r\n\r\n" + _BOMB)
                self._end()

    def _end(self) -> None:
        left = self._transport.get_write_buffer_size()
        for each in self._counts:
            each.end(time.monotonic() - self._since, self._sent - left)
        self._counts = ()

    def _say(self, data: bytes) -> None:
        self._sent += len(data)
        self._transport.write(data)

    def _drip(self) -> None:
        if not self._transport.is_closing():
            self._say(b"x")
            self._loop.call_later(DRIP_S, self._drip)

    def _pour(self) -> None:
        while self._may_write and self._sent < GIGABYTE and not self._transport.is_closing():
            self._say(_BLOCK)


async def main() -> None:
    loop = asyncio.get_running_loop()
    counts = {manner: Counts() for manner in ("hang", "drip", "flood", "bomb", "all")}
    server = await loop.create_server(lambda: Conversation(counts), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)

    def tell() -> None:
        if not sys.stdin.readline():
            loop.stop()
            return
        print(json.dumps({manner: vars(each) for manner, each in counts.items()}), flush=True)

    loop.add_reader(sys.stdin.fileno(), tell)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
