"""The client for programs without an event loop.

It uses the standard library, and keeps connections for the next call.
"""

import contextlib
import os
import ssl
from collections import deque
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from random import Random
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

from hookline.client.blocking.dead_letters import DeadLetterMethods
from hookline.client.blocking.deliveries import DeliveryMethods
from hookline.client.blocking.endpoints import EndpointMethods
from hookline.client.blocking.events import EventMethods
from hookline.client.blocking.installation import InstallationMethods
from hookline.client.blocking.outbox import OutboxMethods
from hookline.client.call import ClientCall
from hookline.client.errors import ClientClosed, Unreachable
from hookline.client.exchange import ClientExchange, HttpAnswer, Wait
from hookline.client.server import KEEP_IDLE_S, server
from hookline.clock import ThreadClock

T = TypeVar("T")


class SyncHooklineClient(
    EventMethods,
    EndpointMethods,
    DeliveryMethods,
    DeadLetterMethods,
    OutboxMethods,
    InstallationMethods,
):
    """A server's API. Use it in `with`, or close it; threads may share a client, each call has its own connection."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 30.0,
        retry_for: float = 30.0,
        ssl_context: ssl.SSLContext | None = None,
        clock: ThreadClock | None = None,
        rng: Random | None = None,
    ) -> None:
        """Without `url` and `api_key`: HOOKLINE_URL and HOOKLINE_API_KEY.

        `timeout` limits each step of a try (connecting, waiting for bytes). A new try may begin until `retry_for`
        seconds after the first; 0 means one try.
        """
        self._server = server(url, api_key, timeout=timeout, retry_for=retry_for)
        self._place = urlsplit(self._server.url)
        self._ssl_context = ssl_context
        self._clock = clock or ThreadClock()
        self._rng = rng or Random()
        # Several threads may change a deque's ends at once: no lock is needed.
        self._idle: deque[tuple[HTTPConnection, float]] = deque()
        self._process = os.getpid()
        self._is_closed = False

    def __repr__(self) -> str:
        return f"SyncHooklineClient({self._server.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; later calls are refused."""
        self._is_closed = True
        self._drop_idle()

    def send(self, call: ClientCall[T]) -> T:
        """Make a call, and try again where that is safe."""
        clock = self._clock
        exchange = ClientExchange(
            call, retry_for=self._server.retry_for, now=clock.monotonic(), rng=self._rng
        )
        while True:
            try:
                answer = self._try(call)
            except Unreachable as error:
                result: T | Wait = exchange.failed(error, now=clock.monotonic())
            else:
                result = exchange.answered(answer, now=clock.monotonic(), wall=clock.wall())
            if not isinstance(result, Wait):
                return result
            clock.sleep(result.seconds)

    def _try(self, call: ClientCall[T]) -> HttpAnswer:
        if self._is_closed:
            raise ClientClosed()
        connection = self._connection()
        try:
            target = self._place.path + call.target
            body = b"" if call.body is None and call.method == "POST" else call.body
            # A server that does not read all of a body answers and hangs up: its answer may be waiting.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(call.method, target, body, self._server.headers(call))
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException) as error:
            connection.close()
            raise Unreachable(self._server.url, _why(error), may_be_done=True) from None
        except BaseException:
            connection.close()
            raise
        headers = {name.lower(): value for name, value in answer.getheaders()}
        if answer.will_close or self._is_closed:
            connection.close()
        else:
            self._idle.append((connection, self._clock.monotonic()))
        return HttpAnswer(answer.status, headers, content)

    def _connection(self) -> HTTPConnection:
        """A connection that was used a moment ago, otherwise a new one."""
        if self._process != os.getpid():
            self._drop_idle()  # after a fork both processes would read from the same connections
            self._process = os.getpid()
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                return self._dial()
            if self._clock.monotonic() - since < KEEP_IDLE_S:
                return connection
            connection.close()

    def _dial(self) -> HTTPConnection:
        host, port, timeout = self._place.hostname or "", self._place.port, self._server.timeout
        connection = (
            HTTPSConnection(host, port, timeout=timeout, context=self._ssl_context)
            if self._place.scheme == "https"
            else HTTPConnection(host, port, timeout=timeout)
        )
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            why = f"its certificate is not accepted ({error.verify_message})"
            raise Unreachable(self._server.url, why, may_be_done=False, may_pass=False) from None
        except (OSError, UnicodeError) as error:
            raise Unreachable(self._server.url, _why(error), may_be_done=False) from None
        return connection

    def _drop_idle(self) -> None:
        while True:
            try:
                connection, _ = self._idle.pop()
            except IndexError:
                return
            connection.close()


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return (getattr(error, "strerror", None) or str(error)).rstrip(".") or type(error).__name__
