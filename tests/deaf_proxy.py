"""Proxies to PostgreSQL that act like a pooler: they withhold what a client must not rely on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import urlsplit

HEAD = 5  # bytes of a message from the server: its kind and its length
NOTIFICATION = b"A"
BACKEND_KEY = b"K"

Change = Callable[[bytes, bytes], bytes | None]  # a message's kind and body: the body instead


def deaf(url: str) -> AbstractAsyncContextManager[str]:
    """The URL of the same database, through a proxy that drops every notification."""
    return _through(url, lambda kind, body: None if kind == NOTIFICATION else body)


def pooled(url: str, *, pools: Callable[[], bool] = lambda: True) -> AbstractAsyncContextManager[str]:
    """Through a proxy that reports a session of its own making to clients, not the server's process."""

    def change(kind: bytes, body: bytes) -> bytes:
        if kind != BACKEND_KEY or not pools():
            return body
        return (int.from_bytes(body[:4]) ^ 1 << 30).to_bytes(4) + body[4:]

    return _through(url, change)


@asynccontextmanager
async def _through(url: str, change: Change) -> AsyncIterator[str]:
    parts = urlsplit(url)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        from_server, to_server = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_all(reader, to_server))
                group.create_task(_pass_messages(from_server, writer, change))
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for each in (writer, to_server):
                each.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}?sslmode=disable"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


async def _pass_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    raise ConnectionResetError


async def _pass_messages(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, change: Change) -> None:
    while True:
        head = await reader.readexactly(HEAD)
        body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
        changed = change(head[:1], body)
        if changed is not None:
            writer.write(head + changed)
            await writer.drain()
