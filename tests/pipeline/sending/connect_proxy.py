"""An HTTP proxy that opens tunnels (CONNECT), as operators run it."""

import asyncio
import contextlib
from types import TracebackType
from typing import Self

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class ConnectProxy:
    """Every name leads to this machine; whatever it is asked is noted."""

    def __init__(self, answer: bytes | None = ESTABLISHED, *, is_slow: bool = False) -> None:
        self.asked: list[bytes] = []  # the heads of requests
        self.connections = 0
        self._answer = answer  # None: none, and the connection stays open
        self._is_slow = is_slow  # its answer comes byte by byte
        self._running: set[asyncio.Task[None]] = set()
        self._gone = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def until_gone(self) -> None:
        """Wait until a client has closed its connection."""
        async with asyncio.timeout(120):
            await self._gone.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._talk(reader, writer)
        finally:
            self._gone.set()
            self._running.discard(task)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head)
        if self._answer is None:
            await reader.read()
            return
        if self._answer != ESTABLISHED:
            writer.write(self._answer)
            await writer.drain()
            writer.write_eof()
            await reader.read()
            return
        port = int(head.split(b" ")[1].rpartition(b":")[2])
        behind, beyond = await asyncio.open_connection("127.0.0.1", port)
        if self._is_slow:
            for byte in ESTABLISHED:
                writer.write(bytes((byte,)))
                await writer.drain()
        else:
            writer.write(ESTABLISHED)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_relay(reader, beyond))
                both.create_task(_relay(behind, writer))
        finally:
            beyond.close()


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
