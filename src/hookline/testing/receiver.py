"""A receiver that records webhooks and verifies them.

It listens on a real socket, on a thread of its own: tests with an event loop and tests without one can use it.
"""

import asyncio
import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import msgspec

from hookline.crypto.signing import new_secret
from hookline.receiver import VerificationError, Verified, verify

WITHIN_S = 10.0
UNBELIEVED = 401
ANY: Any = object()  # means that the payload does not matter


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request."""

    status: int = 200
    headers: dict[str, str] = {}
    body: bytes = b""
    hang_up: bool = False  # close the connection instead of answering


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A request that arrived."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    status: int | None  # the status it was answered with; None: no answer
    verified: Verified | None  # None: not verified, see `problem`
    problem: str | None

    @property
    def event_type(self) -> str | None:
        """The type of the event that was delivered."""
        return None if self.verified is None else self.verified.event_type

    @property
    def event_id(self) -> str | None:
        """The id of the event that was delivered: the same on every attempt."""
        return None if self.verified is None else self.verified.id

    @property
    def attempt(self) -> int | None:
        """The attempt's number; 1 is the first request for a delivery."""
        return None if self.verified is None else self.verified.attempt

    @property
    def is_accepted(self) -> bool:
        """Was it genuine, and answered with 2xx?"""
        return self.verified is not None and self.status is not None and 200 <= self.status < 300

    def json(self) -> Any:
        """The payload, decoded."""
        return msgspec.json.decode(self.body)

    def __str__(self) -> str:
        what = (
            f"{self.event_type} {self.body[:200]!r}"
            if self.problem is None
            else f"not believed: {self.problem}"
        )
        return f"{self.path} {what} (answered {self.status})"


class WebhookReceiver:
    """Records what arrives. A genuine request is answered 200 unless scripted otherwise, any other one 401."""

    def __init__(self, *, secret: str | None = None) -> None:
        self.secret = secret if secret is not None else new_secret()  # for the endpoints that point here
        self._secrets = [self.secret]
        self._requests: list[Received] = []
        self._script: deque[Answer] = deque()
        self._changed = threading.Condition()
        self._listeners: set[Callable[[], None]] = set()
        self._server: _Server | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen; after `stop`, at the same address as before."""
        self._server = _Server(self._port, self._take)
        self._port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, name="webhook-receiver"
        )
        self._thread.start()

    def stop(self) -> None:
        """Cut all connections and refuse new ones."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            self._thread.join()
            server.close()

    @property
    def url(self) -> str:
        """Where it listens; any path below it works too."""
        return f"http://127.0.0.1:{self._port}/"

    @property
    def requests(self) -> list[Received]:
        """The requests so far, in order."""
        with self._changed:
            return list(self._requests)

    def trust(self, secret: str) -> None:
        """Accept requests signed with this secret too: one that hookline made for an endpoint."""
        self._secrets.append(secret)

    def answer(self, *answers: int | Answer) -> None:
        """Answer the next requests with these statuses or answers, one each."""
        with self._changed:
            self._script.extend(Answer(status=each) if isinstance(each, int) else each for each in answers)

    def clear(self) -> None:
        """Forget the requests so far, and the answers that are not used yet."""
        with self._changed:
            self._requests.clear()
            self._script.clear()

    def wait(self, number: int = 1, *, within: float = WITHIN_S) -> list[Received]:
        """Wait until this many requests have arrived; raises AssertionError when they do not. Not for an event loop."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self._requests) >= number, within)
        assert came, self._missing(number, within)  # noqa: S101 - a test's helper
        return self.requests

    async def arrived(self, number: int = 1, *, within: float = WITHIN_S) -> list[Received]:
        """Wait until this many requests have arrived, on an event loop."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(changed.set)

        with self._changed:
            self._listeners.add(tell)
        try:
            async with asyncio.timeout(within):
                while len(self.requests) < number:
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            raise AssertionError(self._missing(number, within)) from None
        finally:
            with self._changed:
                self._listeners.discard(tell)
        return self.requests

    def assert_received(self, type: str, payload: Any = ANY) -> Received:
        """The first accepted request with an event of this type and payload (bytes: exactly these)."""
        for each in self.requests:
            if each.is_accepted and each.event_type == type and _fits(each, payload):
                return each
        wanted = type if payload is ANY else f"{type} {payload!r}"
        raise AssertionError(f"{wanted} was not received; {self._came()}")

    def assert_nothing_received(self) -> None:
        """Assert that nothing has arrived so far, genuine or not."""
        assert not self.requests, self._came()  # noqa: S101 - a test's helper

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        verified, problem = None, None
        try:
            # Its age does not matter: a test may have moved the sender's clock.
            verified = verify(list(self._secrets), headers, body, tolerance=float("inf"))
        except VerificationError as error:
            problem = str(error)
        with self._changed:
            if verified is None:
                answer = Answer(status=UNBELIEVED)
            else:
                answer = self._script.popleft() if self._script else Answer()
            self._requests.append(
                Received(
                    path=path,
                    headers=headers,
                    body=body,
                    status=None if answer.hang_up else answer.status,
                    verified=verified,
                    problem=problem,
                )
            )
            self._changed.notify_all()
            for tell in self._listeners:
                tell()
        return answer

    def _missing(self, number: int, within: float) -> str:
        return f"{len(self.requests)} of {number} requests arrived within {within:g} s; {self._came()}"

    def _came(self) -> str:
        return "".join(f"\n  {each}" for each in self.requests) or "nothing arrived."


def _fits(request: Received, payload: Any) -> bool:
    if payload is ANY:
        return True
    return request.body == payload if isinstance(payload, bytes) else bool(request.json() == payload)


class _Server(ThreadingHTTPServer):
    request_queue_size = 256  # a burst of connections must not count as failures
    daemon_threads = False

    def __init__(self, port: int, take: Callable[[str, dict[str, str], bytes], Answer]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.take = take
        self.connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        # Here and not in the handler's thread, which may not run before all are cut.
        self.connections.add(request)
        super().process_request(request, client_address)

    def close(self) -> None:
        for each in tuple(self.connections):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing when a sender goes away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.take(self.path, headers, body)
        if answer.hang_up:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *args: object) -> None:
        """Print nothing: tests read `requests`."""
