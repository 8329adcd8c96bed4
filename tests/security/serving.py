"""A server in this process, and connections to it that behave badly."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hookline.api.app import Api
from hookline.api.protocol import Protocol
from hookline.api.server import ApiServer
from hookline.app import Hookline
from hookline.config import Settings
from hookline.dashboard.app import Dashboard

KEY = "hlk_the_key_of_these_tests"
CEILING_S = 180.0  # ends a test that hangs; nothing is judged by it


class Answer(NamedTuple):
    """A whole answer with a Content-Length."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["code"])


class Line:
    """A connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> Answer:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (each.partition(":") for each in head[1:] if each)
        }
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return Answer(int(head[0].split()[1]), headers, body)

    async def ask(self, *request: Any, **fields: Any) -> Answer:
        self.send(asking(*request, **fields))
        return await self.answer()

    async def end(self) -> bytes:
        """What comes before the server closes the connection."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""


class Served:
    """The running server."""

    def __init__(self, hooks: Hookline, api: Api, server: ApiServer, dashboard: Dashboard, port: int) -> None:
        self.hooks = hooks
        self.api = api
        self.server = server
        self.dashboard = dashboard
        self.port = port
        self._lines: list[Line] = []

    async def line(self, *, receive_buffer: int | None = None) -> Line:
        """A new connection."""
        client = socket.socket()
        client.setblocking(False)
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", self.port))
        line = Line(*await asyncio.open_connection(sock=client))
        self._lines.append(line)
        return line

    @property
    def connections(self) -> list[Protocol]:
        found = list(self.server.server_state.connections)
        return [each for each in found if isinstance(each, Protocol)]

    def close(self) -> None:
        for line in self._lines:
            line.writer.close()


@asynccontextmanager
async def served(folder: Path, **settings: Any) -> AsyncIterator[Served]:
    """A server on a new SQLite file."""
    hooks = Hookline(
        f"sqlite:///{folder}/hooks.db", settings=Settings(**{"api_key": KEY, "drain_s": 60.0, **settings})
    )
    # With its protocol named: only then asyncio has small answers sent without a delay.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    async with asyncio.timeout(CEILING_S), hooks:
        api = Api(hooks)
        api.pages = dashboard = Dashboard(hooks, api)
        server = ApiServer(api, hooks.clock)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await server.is_listening.wait()
        found = Served(hooks, api, server, dashboard, listener.getsockname()[1])
        try:
            yield found
        finally:
            found.close()
            dashboard.leave()
            server.leave()
            await serving


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that has no event of its own."""
    async with asyncio.timeout(CEILING_S):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.001)


def head(method: str, path: str, *lines: str, key: str | None = KEY, body_bytes: int | None = None) -> bytes:
    """The head of a request, whole."""
    given = [*lines, "host: localhost"]
    if key is not None:
        given.append(f"authorization: Bearer {key}")
    if body_bytes is not None:
        given += ["content-type: application/json", f"content-length: {body_bytes}"]
    return "".join(f"{line}\r\n" for line in [f"{method} {path} HTTP/1.1", *given, ""]).encode("latin-1")


def asking(method: str, path: str, body: Any = None, *lines: str, key: str | None = KEY) -> bytes:
    """A whole request."""
    if body is None:
        return head(method, path, *lines, key=key)
    content = json.dumps(body).encode()
    return head(method, path, *lines, key=key, body_bytes=len(content)) + content
