"""Serves the API on a socket."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from hookline.api.app import Api
from hookline.api.protocol import Protocol
from hookline.api.publishing.fast_publish import Shortcut
from hookline.clock import Clock

KEEP_ALIVE_S = 75  # longer than the usual load balancer's minute, so that we never close first
NO_SNIFFING = ("x-content-type-options", "nosniff")  # on every answer, also on answers to invalid HTTP
FINISH_WITHIN_S = 5  # for requests under way when the server stops


class ApiServer(uvicorn.Server):
    """Uvicorn, started and stopped by us instead of by signals."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._lag = api.loop_lag
        super().__init__(
            uvicorn.Config(
                api,
                http=Shortcut,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                server_header=False,
                headers=[NO_SNIFFING],
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=FINISH_WITHIN_S,
            )
        )
        self.is_listening = asyncio.Event()
        self._clock = clock
        self._leaving = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process that runs us."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.on_tick(0)  # the headers of every answer exist before the first connection
        await super().startup(sockets)
        self.is_listening.set()

    async def main_loop(self) -> None:
        loop = asyncio.get_running_loop()
        while not await self.on_tick(0):  # 0: each call renews the Date header
            self.hang_up_on_the_late(loop.time())
            asleep = self._clock.monotonic()
            if not await self._clock.wait(self._leaving, 1.0):
                self._lag.add(max(0.0, self._clock.monotonic() - asleep - 1.0))

    def hang_up_on_the_late(self, now: float) -> None:
        """Close the connections whose clients take too long."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, Protocol):
                connection.hang_up_if_late(now)

    def leave(self) -> None:
        """Stop accepting; `serve` returns once the requests under way are answered."""
        self.should_exit = True
        self._leaving.set()
