"""A server that sends bytes that no HTTP library can be made to send.

It uses plain sockets: each connection is handed to a script that reads requests and writes bytes.
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self


class Conversation:
    """One connection, as the script sees it."""

    def __init__(
        self, server: "RawServer", number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.number = number  # 1 is the first connection of the server
        self._server = server
        self._reader = reader
        self._writer = writer

    async def request(self) -> bytes:
        """The next request, all of it; raises IncompleteReadError when the peer is gone."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        body = await self._reader.readexactly(int(length.split(b":")[1]))
        self._server.requests.append(head + body)
        return head + body

    async def say(self, data: bytes) -> None:
        """Write and wait until the socket took it."""
        if self._writer.is_closing():  # the peer is gone, which uvloop reports with another kind of error
            raise ConnectionResetError
        self._writer.write(data)
        await self._writer.drain()

    async def drip(self, data: bytes, *, pause: float = 0.0) -> None:
        """Write byte by byte, each in its own segment."""
        for byte in data:
            await self.say(bytes((byte,)))
            await asyncio.sleep(pause)

    async def gone(self) -> None:
        """Wait until the peer has closed."""
        while await self._reader.read(65_536):
            pass

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        """Close with FIN."""
        self._writer.close()


Script = Callable[[Conversation], Awaitable[None]]


class RawServer:
    """Runs a script for each connection; after the script the connection is closed."""

    def __init__(self, script: Script, *, context: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._context = context
        self._running: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.requests: list[bytes] = []
        self.over = asyncio.Event()  # some connection has ended

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, ssl=self._context, backlog=1024
        )
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._context else 'http'}://127.0.0.1:{self.port}/hooks"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        self.connections += 1
        try:
            await self._script(Conversation(self, self.connections, reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self.over.set()
            self._running.discard(task)


def always(answer: bytes, *, then_close: bool = False) -> Script:
    """The same bytes for every request of a connection."""

    async def script(peer: Conversation) -> None:
        while True:
            await peer.request()
            await peer.say(answer)
            if then_close:
                return

    return script
