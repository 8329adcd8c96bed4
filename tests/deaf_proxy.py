"""A way to PostgreSQL on which notifications get lost, as behind a pooler that gives sessions away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

HEAD = 5  # bytes of a message of the server: its kind and its length
NOTIFICATION = b"A"


@asynccontextmanager
async def deaf(url: str) -> AsyncIterator[str]:
    """The URL of the same database, through a proxy that drops every notification."""
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
                group.create_task(_pass_messages(from_server, writer))
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


async def _pass_messages(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        head = await reader.readexactly(HEAD)
        body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
        if head[:1] != NOTIFICATION:
            writer.write(head + body)
            await writer.drain()
