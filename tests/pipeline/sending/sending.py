"""Sends requests for the sender's tests and records the answers."""

import asyncio
from typing import Any

from hookline.clock import SystemClock
from hookline.pipeline.sending import HttpSender, Request, SendResult, parse
from hookline.pipeline.sending.net import SystemNet

HEADERS = b"content-type: application/json\r\naccept-encoding: identity\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Names(SystemNet):
    """The machine's network with our own resolver: a list of addresses, an error, or (None) silence."""

    def __init__(self, **names: list[str] | Exception | None) -> None:
        self._names = {name.replace("_", "."): found for name, found in names.items()}
        self.lookups: list[str] = []
        self.dialled: list[str] = []

    async def resolve(self, host: str, port: int) -> list[str]:
        self.lookups.append(host)
        found = self._names[host]
        if found is None:
            await asyncio.Event().wait()
        if isinstance(found, Exception):
            raise found
        assert found is not None
        return found

    async def connect(self, protocol: Any, address: str, port: int) -> asyncio.Transport:
        self.dialled.append(address)
        return await super().connect(protocol, address, port)


class Posts:
    """A sender with switches, and the number of times each request was answered."""

    def __init__(self, net: SystemNet | None = None, **options: Any) -> None:
        self.is_open = True
        self.blocked: set[str] = set()
        self.calls: list[list[SendResult]] = []
        self.sender = HttpSender(
            net or SystemNet(),
            options.pop("clock", None) or SystemClock(),
            gate=lambda: self.is_open,
            vet=lambda address, port: address not in self.blocked,
            **options,
        )

    def begin(
        self, url: str, *, body: bytes = b"{}", headers: bytes = HEADERS, timeout: float = 30.0
    ) -> asyncio.Future[SendResult]:
        """Send."""
        return self.begin_with(Request(parse(url), headers, body, timeout))

    def begin_with(self, request: Request) -> asyncio.Future[SendResult]:
        """Send; the future has the first answer, `calls` has them all."""
        answered: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()
        answers: list[SendResult] = []
        self.calls.append(answers)

        def done(answer: SendResult) -> None:
            answers.append(answer)
            if not answered.done():
                answered.set_result(answer)

        self.sender.send(request, done)
        return answered

    async def wait(self, request: Request) -> SendResult:
        """Send and wait, likewise."""
        async with asyncio.timeout(60):
            return await self.begin_with(request)

    async def post(self, url: str, **options: Any) -> SendResult:
        """Send and wait; a missing answer is a failure, not a hanging test."""
        async with asyncio.timeout(60):
            return await self.begin(url, **options)


async def until(condition: Any, *, ceiling: float = 60.0) -> None:
    """Poll a condition that nothing signals."""
    async with asyncio.timeout(ceiling):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to wait on
            await asyncio.sleep(0.005)
