"""Receives and answers requests on this machine.

Each connection has a thread: a receiver that one person watches has few, and a request that is delayed or forwarded
holds up no other.
"""

import socket
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import NamedTuple

from hookline.cli.client import Fields, exchange
from hookline.cli.exits import CommandError
from hookline.cli.listener.arrivals import Arrival, Check, Forwarded
from hookline.clock import SystemClock
from hookline.receiver import VerificationError, verify

LARGEST_BYTES = 64 << 20  # the largest that a server can be configured to send
FORWARD_WITHIN_S = 60.0  # the longest that a server can be configured to wait

# Headers that belong to one connection; the next connection has its own.
_OF_THE_CONNECTION = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class Manners(NamedTuple):
    """How requests are answered."""

    secrets: tuple[str, ...] = ()
    status: int | None = None  # None: 200, or the answer of the receiver that it was forwarded to
    delay: float = 0.0
    fail_first: int = 0  # requests of each event
    forward: str | None = None


class ListenerAnswer(NamedTuple):
    """The answer to the sender."""

    status: int
    headers: Fields = (("content-type", "text/plain"),)
    body: bytes = b""


class Listener(ThreadingHTTPServer):
    """Takes requests, answers them, and hands each to `on_arrival`."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        host: str,
        port: int,
        manners: Manners,
        on_arrival: Callable[[Arrival], None],
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.manners = manners
        self._on_arrival = on_arrival
        self._clock = SystemClock()
        self._seen: dict[str, int] = {}
        self._lock = threading.Lock()
        super().__init__((host, port), _ListenerHandler)

    def server_bind(self) -> None:
        """Bind without the base class's name lookup, which can take seconds and is not needed here."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a sender that hangs up gets no answer, and needs no traceback."""

    def take(
        self, method: str, path: str, pairs: list[tuple[str, str]], body: bytes
    ) -> tuple[ListenerAnswer, Arrival]:
        """The answer to a request, after the delay, and what to show of it."""
        at = self._clock.wall()
        headers = {name.lower(): value for name, value in pairs}
        check = self._check(pairs, body)
        answer, forwarded = self._answer(method, pairs, body, check)
        if self.manners.delay:
            threading.Event().wait(self.manners.delay)
        return answer, Arrival(at, method, path, headers, body, check, forwarded, answer.status)

    def show(self, arrival: Arrival) -> None:
        """Show one arrival at a time."""
        with self._lock:
            self._on_arrival(arrival)

    def _answer(
        self, method: str, pairs: list[tuple[str, str]], body: bytes, check: Check | None
    ) -> tuple[ListenerAnswer, Forwarded | None]:
        chosen = self.manners.status
        if self._must_fail({name.lower(): value for name, value in pairs}):
            return ListenerAnswer(503), None
        if check is not None and not check.is_good:
            return ListenerAnswer(chosen or 401), None
        if self.manners.forward is None:
            return ListenerAnswer(chosen or 200), None
        answer, forwarded = self._forward(self.manners.forward, method, pairs, body)
        return (answer if chosen is None else ListenerAnswer(chosen)), forwarded

    def _check(self, headers: list[tuple[str, str]], body: bytes) -> Check | None:
        if not self.manners.secrets:
            return None
        try:
            verify(self.manners.secrets, headers, body, now=self._clock.wall())
        except VerificationError as error:
            return Check(False, str(error))
        return Check(True, "")

    def _must_fail(self, headers: dict[str, str]) -> bool:
        if not self.manners.fail_first:
            return False
        event = headers.get("webhook-id") or headers.get("x-event-id") or ""
        with self._lock:
            self._seen[event] = self._seen.get(event, 0) + 1
            return self._seen[event] <= self.manners.fail_first

    def _forward(
        self, url: str, method: str, pairs: list[tuple[str, str]], body: bytes
    ) -> tuple[ListenerAnswer, Forwarded]:
        began = self._clock.monotonic()
        try:
            status, answered, text = exchange(url, method, _passed(pairs), body, timeout=FORWARD_WITHIN_S)
        except CommandError as error:
            took = (self._clock.monotonic() - began) * 1_000
            return ListenerAnswer(502, body=str(error).encode()), Forwarded(None, took, str(error))
        took = (self._clock.monotonic() - began) * 1_000
        return ListenerAnswer(status, _passed(answered), text), Forwarded(status, took, "")


def _passed(headers: Iterable[tuple[str, str]]) -> Fields:
    """The headers that are passed on: as they are, in their order."""
    return tuple(
        (name, value)
        for name, value in headers
        if name.lower() not in _OF_THE_CONNECTION and not {"\r", "\n"} & set(value)
    )


class _ListenerHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536  # head and body in one write: two would wait for each other's acknowledgement
    server: Listener

    def _take(self) -> None:
        length = self.headers.get("content-length", "0")
        is_counted = "transfer-encoding" not in self.headers and length.isdecimal()
        if not is_counted or int(length) > LARGEST_BYTES:
            self.close_connection = True
            self._send(ListenerAnswer(413 if is_counted else 411))
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):  # the sender hung up half-way
            self.close_connection = True
            return
        answer, arrival = self.server.take(self.command, self.path, self.headers.items(), body)
        try:
            self._send(answer)
            self.wfile.flush()
        finally:  # a request whose sender did not wait for the answer is worth showing too
            self.server.show(arrival)

    do_DELETE = do_GET = do_HEAD = do_OPTIONS = do_PATCH = do_POST = do_PUT = _take

    def _send(self, answer: ListenerAnswer) -> None:
        self.send_response_only(answer.status)
        own = (("server", self.version_string()), ("date", self.date_time_string()))
        names = {name.lower() for name, _ in answer.headers}
        for name, value in (*answer.headers, *(each for each in own if each[0] not in names)):
            self.send_header(name, value)
        if answer.status >= 200 and answer.status not in (204, 304):
            self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD" and answer.status not in (204, 304):
            self.wfile.write(answer.body)

    def version_string(self) -> str:
        return "hookline-listen"

    def log_message(self, format: str, *args: object) -> None:
        pass
