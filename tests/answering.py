"""A receiver that answers with the status its path names, and a way to wait for what a server does by itself."""

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Received(NamedTuple):
    path: str
    event_id: str
    attempt: int
    body: bytes
    user_agent: str
    headers: dict[str, str]  # their names in lower case


class Receiver(http.server.ThreadingHTTPServer):
    """`/200/anything` is answered 200, and `/200/held/anything` when the test says so."""

    request_queue_size = (
        256  # with the default of 5, a burst of connections is dropped and counts as failures
    )

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Received] = []
        self.hold = threading.Event()  # until then, what is sent to `/200/held/…` is not answered

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a killed sender resets its connections."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def at(self, path: str) -> list[Received]:
        return [each for each in self.requests if each.path == path]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        event_id, attempt = self.headers["webhook-id"], int(self.headers["webhook-attempt"])
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(
            Received(self.path, event_id, attempt, body, headers["user-agent"], headers)
        )
        if "/held/" in self.path:
            self.server.hold.wait()
        self.send_response(int(self.path.split("/")[1]))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.hold.set()
            server.shutdown()
            thread.join()


def eventually(look: Callable[[], T | None], *, seconds: float = 180.0) -> T:
    """The first thing that a look finds."""
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return found
