"""Sends HTTP requests to receivers.

This is the hot path of hookline. With an idle connection, a request costs no task, no future and no timer: it is
written in `send`, read in the transport's callback, and answered from there. One sweep over everything under way
enforces the deadlines. Only opening a connection takes a task, and the sender owns it.
"""

import asyncio
import math
import ssl
from collections.abc import Callable
from functools import partial

import structlog

from hookline.clock import Clock
from hookline.errors import HooklineError, Invalid
from hookline.failpoints import failpoint
from hookline.model import ErrorKind
from hookline.pipeline.sending.connection import Connection, Key
from hookline.pipeline.sending.contract import Request, SendResult, Target
from hookline.pipeline.sending.dial import Dialler, HostUnreachable, Shortage
from hookline.pipeline.sending.exchange import OVERDUE, Exchange, Progress
from hookline.pipeline.sending.net import Net
from hookline.pipeline.sending.pool import Pool, PoolLimits
from hookline.pipeline.sending.response import Limits
from hookline.pipeline.sending.target import head_of
from hookline.pipeline.sending.tls_contexts import TlsContexts, default_context
from hookline.rules.egress_proxy import EgressProxy
from hookline.rules.lookups import BUDGET_S

SWEEP_EVERY = 0.05  # seconds; a slot must be free 0.2 s after its deadline
TIDY_EVERY = 1.0  # seconds; not with each sweep, because it goes through every destination
MAX_ROUTES = 50_000  # targets whose head is remembered, a few hundred bytes each
REST_S = 0.5  # seconds without a new connection after one failed for lack of a descriptor, port or memory
RELIEF = 32  # idle connections that are closed then
SAY_AGAIN_S = 60.0  # between two log lines about it
FAREWELL = 1.0  # seconds that closing waits for the loop to close the sockets

_CLOSED = "The sender was closed."
_log = structlog.get_logger()


class HttpSender:
    """HTTP/1.1 POSTs over persistent connections."""

    def __init__(
        self,
        net: Net,
        clock: Clock,
        *,
        gate: Callable[[], bool],
        vet: Callable[[str, int], bool],
        connect_timeout: float = 3.0,
        lookup_timeout: float = BUDGET_S,
        context: ssl.SSLContext | None = None,
        contexts: TlsContexts | None = None,
        proxy: EgressProxy | None = None,
        limits: Limits | None = None,
        pool: PoolLimits | None = None,
        most_open: int | None = None,
        reached: Callable[[str, str], None] = lambda host, address: None,
    ) -> None:
        self._clock = clock
        self._gate = gate
        self._limits = limits or Limits()
        self._pool = Pool(pool or PoolLimits())
        self._dialler = Dialler(
            net,
            clock,
            vet=vet,
            timeout=connect_timeout,
            lookup_timeout=lookup_timeout,
            contexts=contexts or TlsContexts(plain=context or default_context()),
            proxy=proxy,
            reached=reached,
        )
        self._routes: dict[Target, tuple[Key, bytes]] = {}
        # Ordered where they are iterated: a simulated run is the same each time.
        self._under_way: dict[Exchange, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: dict[Connection, None] = {}
        self._all_closed = asyncio.Event()
        self._sweeper: asyncio.TimerHandle | None = None
        self._tidy_at = 0.0
        self._most_open = most_open  # connections, idle ones included; None: any number
        self._rests_until = -math.inf  # no connection is opened before this
        self._said_at = -math.inf
        self.shortages = 0  # connections that could not be opened for lack of a descriptor, port or memory
        self._is_closed = False

    # What the pipeline calls.

    def send(self, request: Request, done: Callable[[SendResult], None]) -> None:
        """Begin; `done` is called exactly once, from the event loop and never from inside this call."""
        now = self._clock.monotonic()
        exchange = Exchange(request, done, now)
        if self._is_closed:
            self._refuse(exchange, ErrorKind.INTERNAL, _CLOSED)
            return
        self._under_way[exchange] = None
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP_EVERY, self._sweep)
        route = self._routes.get(request.target)
        if route is None:
            try:
                route = self._learn(request.target)
            except HooklineError as error:
                self._refuse(exchange, ErrorKind.INTERNAL, str(error))
                return
        connection = self._pool.take(route[0])
        if connection is None:
            self._dial(exchange, route)
        else:
            self._start(connection, exchange, route, now)

    async def close(self) -> None:
        """Close idle connections; requests under way end with an error answer."""
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._pool.close()
        for exchange in list(self._under_way):
            self._stop(exchange, self._failure(exchange, ErrorKind.INTERNAL, _CLOSED))
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._dialler.close()
        for connection in list(self._open):
            connection.abort()
        if self._open:
            self._all_closed.clear()
            if not await self._clock.wait(self._all_closed, FAREWELL):
                _log.warning("sender.closed", sockets_left=len(self._open))
        else:
            await self._clock.sleep(0)  # answers refused in this step are delivered in the next

    @property
    def in_flight(self) -> int:
        """Requests that were begun and are not answered."""
        return len(self._under_way)

    @property
    def idle(self) -> int:
        """Connections waiting for a request."""
        return len(self._pool)

    @property
    def open_sockets(self) -> int:
        """Connections that the loop has not closed yet."""
        return len(self._open)

    # What connections report.

    def on_open(self, connection: Connection) -> None:
        self._open[connection] = None

    def on_closed(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        self._pool.forget(connection)
        if not self._open:
            self._all_closed.set()

    def on_answer(
        self, connection: Connection, exchange: Exchange, answer: SendResult, *, reusable: bool
    ) -> None:
        if reusable:
            if self._is_closed:
                connection.abort()
            else:
                self._pool.put(connection, exchange.started + answer.duration)
        self._under_way.pop(exchange, None)
        exchange.end(answer)

    def on_stale(self, connection: Connection, exchange: Exchange) -> None:
        # The peer closed the connection while the request was on its way, as servers do with idle connections. That is
        # no failure of the receiver, and most likely the request was never read. Sent again once, within the deadline.
        exchange.was_sent_again = True
        exchange.connection = None
        _log.debug("connection.replaced", host=exchange.request.target.host)
        self._dial(
            exchange, self._routes.get(exchange.request.target) or self._learn(exchange.request.target)
        )

    # Internals.

    def _learn(self, target: Target) -> tuple[Key, bytes]:
        if len(self._routes) >= MAX_ROUTES:
            self._routes.clear()
        # A connection that was opened with a certificate carries requests with that certificate only.
        identity = target.identity.digest if target.tls and target.identity is not None else ""
        route = self._routes[target] = ((target.tls, target.host, target.port, identity), head_of(target))
        return route

    def _start(
        self, connection: Connection, exchange: Exchange, route: tuple[Key, bytes], now: float
    ) -> None:
        """Write the first byte unless the gate is shut. The gate comes last: a stopped process may wake before it."""
        try:
            _check_fields(exchange.request.headers)
            failpoint("send.before")
            if self._gate():
                connection.start(exchange, route[1], now)
                return
        except Exception as error:
            connection.abort()
            self._refuse(exchange, ErrorKind.INTERNAL, repr(error))
            return
        self._pool.put(connection, now)
        if exchange.was_sent:
            self._refuse(exchange, ErrorKind.RESET, "The connection was closed before any answer.")
        else:
            self._refuse(exchange, None, "The gate was shut before the first byte.")

    def _refuse(self, exchange: Exchange, kind: ErrorKind | None, detail: str) -> None:
        """Answer in the loop's next step: a caller that sends from inside `done` must not recurse."""
        self._under_way.pop(exchange, None)
        asyncio.get_running_loop().call_soon(exchange.end, self._failure(exchange, kind, detail))

    def _failure(self, exchange: Exchange, kind: ErrorKind | None, detail: str) -> SendResult:
        never_left = not exchange.was_sent and (kind is None or self._is_closed)
        connection = exchange.connection
        return SendResult(
            self._clock.monotonic() - exchange.started,
            error=kind,
            detail=detail,
            timings=exchange.timings(None if connection is None else connection.first_byte),
            sent=not never_left,
        )

    def _dial(self, exchange: Exchange, route: tuple[Key, bytes]) -> None:
        if self._clock.monotonic() < self._rests_until:
            self._under_way.pop(exchange, None)
            asyncio.get_running_loop().call_soon(exchange.end, self._unsent(exchange, "The sender rests."))
            return
        if self._most_open is not None and len(self._under_way) + len(self._pool) > self._most_open:
            self._pool.close_oldest(1)
        exchange.progress = Progress()
        task = asyncio.get_running_loop().create_task(self._open_and_start(exchange, route))
        exchange.task = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open_and_start(self, exchange: Exchange, route: tuple[Key, bytes]) -> None:
        make = partial(Connection, route[0], owner=self, clock=self._clock, limits=self._limits)
        assert exchange.progress is not None  # noqa: S101 - for the type checker; `_dial` sets it
        try:
            connection = await self._dialler.open(exchange.request.target, make, exchange.progress)
        except Shortage as shortage:
            self._fall_short(exchange, str(shortage))
        except HostUnreachable as unreachable:
            self._stop(exchange, self._failure(exchange, unreachable.kind, unreachable.detail))
        except asyncio.CancelledError:
            self._stop(
                exchange, self._failure(exchange, ErrorKind.INTERNAL, "Opening the connection was cancelled.")
            )
            raise
        except Exception as error:
            self._stop(exchange, self._failure(exchange, ErrorKind.INTERNAL, repr(error)))
        else:
            exchange.task = None
            if exchange.is_over or not connection.is_usable():
                connection.abort()
                self._stop(
                    exchange, self._failure(exchange, ErrorKind.RESET, "The connection was closed at once.")
                )
            else:
                self._start(connection, exchange, route, self._clock.monotonic())

    def _fall_short(self, exchange: Exchange, detail: str) -> None:
        """A connection could not be opened, and the receiver is not at fault: open none for a moment."""
        now = self._clock.monotonic()
        self.shortages += 1
        self._rests_until = now + REST_S
        self._pool.close_oldest(RELIEF)
        if now - self._said_at >= SAY_AGAIN_S:
            self._said_at = now
            _log.warning(
                "sender.short",
                error=detail,
                shortages=self.shortages,
                open_connections=len(self._open),
                note="deliveries wait and are not charged for it: see `hookline doctor` and the limit of open files",
            )
        self._stop(exchange, self._unsent(exchange, detail))

    def _unsent(self, exchange: Exchange, detail: str) -> SendResult:
        return SendResult(self._clock.monotonic() - exchange.started, detail=detail, sent=False, short=True)

    def _stop(self, exchange: Exchange, answer: SendResult) -> None:
        """End a request wherever it is."""
        task, connection = exchange.task, exchange.connection
        exchange.task = None
        self._under_way.pop(exchange, None)
        if connection is not None and connection.exchange is exchange:
            connection.abort()
        if task is not None and not exchange.is_over and task is not asyncio.current_task():
            task.cancel()
        exchange.end(answer)

    def _sweep(self) -> None:
        """End what is overdue, close what was idle too long; continue while there is anything to watch."""
        now = self._clock.monotonic()
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_EVERY, self._sweep)
        for exchange in [exchange for exchange in self._under_way if exchange.deadline <= now]:
            self._stop(exchange, self._overdue(exchange, now))
        if now >= self._tidy_at:
            self._tidy_at = now + TIDY_EVERY
            self._pool.close_idle(now)
        if not self._under_way and not self._pool:
            self._sweeper.cancel()
            self._sweeper = None

    def _overdue(self, exchange: Exchange, now: float) -> SendResult:
        connection, progress = exchange.connection, exchange.progress
        if connection is None:
            phase = progress.phase if progress is not None else None
            kind = ErrorKind.TIMEOUT if phase is None else OVERDUE[phase]
            return self._failure(exchange, kind, f"The deadline passed while {phase}.")
        status, headers, body = connection.overdue()
        return SendResult(
            now - exchange.started,
            status,
            ErrorKind.TIMEOUT,
            "The deadline passed in the answer's body."
            if status
            else "The deadline passed without an answer.",
            headers,
            body,
            status is not None,
            exchange.timings(connection.first_byte),
        )


def _check_fields(headers: bytes) -> None:
    """The last safeguard against a forged request: an empty line ends the head, a missing line end garbles it."""
    if headers and (headers[-2:] != b"\r\n" or headers[0] == 13 or b"\n\r" in headers):
        raise Invalid("The header fields are not whole lines.")
