"""A real receiver on a real socket whose answers a test scripts and whose requests it can wait for."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    hold: asyncio.Event | None = None  # answer only once this is set
    hang_up: bool = False  # close without an answer


class Receiver:
    """Answers 200 unless told otherwise; `answers[path]` are used up one by one, the last one stays."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.answers: dict[str, list[Answer]] = defaultdict(list)
        self.answer: Callable[[bytes], Answer] | None = None  # by the body, instead of `answers`
        self.open_requests = 0
        self.most_open_requests = 0
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections from now on; `start(receiver.port)` brings it back."""
        if self._server is not None:
            self._server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._server = None

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def bodies(self, path: str | None = None) -> list[bytes]:
        return [r.body for r in self.requests if path in (None, r.path)]

    async def wait_for(self, condition: Callable[[], object], *, seconds: float = 180.0) -> None:
        """Wait until the condition holds; looked at with every request that comes in."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: bool(condition()))

    async def wait_for_requests(self, number: int, *, seconds: float = 180.0) -> list[Received]:
        await self.wait_for(lambda: len(self.requests) >= number, seconds=seconds)
        return self.requests

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {n.lower(): v for n, v in (line.split(": ", 1) for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        path = head[0].split(" ")[1]
        self.open_requests += 1
        self.most_open_requests = max(self.most_open_requests, self.open_requests)
        try:
            script = self.answers[path]
            answer = (script.pop(0) if len(script) > 1 else script[0]) if script else Answer()
            if self.answer is not None:
                answer = self.answer(body)
            async with self._changed:
                self.requests.append(Received(path, headers, body))
                self._changed.notify_all()
            if answer.hold is not None:
                await answer.hold.wait()
            if answer.hang_up:
                return False
            lines = "".join(f"{n}: {v}\r\n" for n, v in answer.headers.items())
            writer.write(
                f"HTTP/1.1 {answer.status} X\r\ncontent-length: {len(answer.body)}\r\n{lines}\r\n".encode()
                + answer.body
            )
            await writer.drain()
            return True
        finally:
            self.open_requests -= 1
