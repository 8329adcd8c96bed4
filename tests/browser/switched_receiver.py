"""A real receiver whose paths each answer in one way, and can be switched while it runs."""

import http.server
import itertools
import threading
from collections import Counter
from enum import StrEnum
from types import TracebackType
from typing import Self

from tests.browser.hostile import HEADERS, TEXTS

CEILING_S = 180.0


class Way(StrEnum):
    """How a path answers. Each is also the path that answers so at first: `/ok`, `/slow`, …"""

    OK = "ok"
    SLOW = "slow"  # 200, but only after `release`
    DOWN = "503"
    UNAUTHORIZED = "401"
    THROTTLED = "429"
    INVALID = "422"
    FLAKY = "flaky"  # 200 and 500 in turn, 200 first
    GONE = "410"
    HOSTILE = "hostile"  # 422 with a body and headers that would like to be more than text


ANSWERS = {
    Way.OK: (200, b"fine"),
    Way.SLOW: (200, b"fine, at last"),
    Way.DOWN: (503, b"upstream connect error"),
    Way.UNAUTHORIZED: (401, b'{"error": "invalid token"}'),
    Way.THROTTLED: (429, b"too many requests"),
    Way.INVALID: (422, b'{"error": "unknown field: amount"}'),
    Way.GONE: (410, b"this address is gone"),
    Way.HOSTILE: (422, "\n".join(TEXTS).encode()),
}


class SwitchedReceiver:
    """Runs while entered. A path that is neither a way nor switched answers 200."""

    def __init__(self) -> None:
        self._ways: dict[str, Way] = {f"/{way}": way for way in Way}
        self._turns = itertools.count()
        self._arrived: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._released = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(handler) -> None:
                handler.rfile.read(int(handler.headers["content-length"]))
                way, status, body = self._answer(handler.path)
                handler.send_response(status)
                handler.send_header("content-length", str(len(body)))
                if status == 429:
                    handler.send_header("retry-after", "30")
                if way is Way.HOSTILE:
                    for name, value in HEADERS.items():
                        handler.send_header(name, value)
                handler.end_headers()
                handler.wfile.write(body)

            def log_message(handler, *args: object) -> None:
                pass

        self._server = Server(("0.0.0.0", 0), Handler)  # all of 127.0.0.0/8 are hosts
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def url(self, path: str, *, host: str = "127.0.0.1") -> str:
        """Of an endpoint: `receiver.url(Way.DOWN)`, `receiver.url("orders")`. Every 127.x.y.z is a host of its own."""
        return f"http://{host}:{self._server.server_port}/{path}"

    def switch(self, path: str, to: Way) -> None:
        """Let a path answer in another way from now on."""
        self._ways[f"/{path}"] = to

    def release(self) -> None:
        """Let what is slow answer, now and from now on."""
        self._released.set()

    def wait_for(self, path: str, requests: int) -> None:
        """Until so many requests to the path have arrived, since the start."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: self._arrived[f"/{path}"] >= requests, CEILING_S)
        assert arrived, f"{self._arrived[f'/{path}']} of {requests} requests to /{path}"

    def _answer(self, path: str) -> tuple[Way, int, bytes]:
        with self._changed:
            self._arrived[path] += 1
            self._changed.notify_all()
        way = self._ways.get(path.partition("?")[0], Way.OK)
        if way is Way.FLAKY:
            if next(self._turns) % 2:
                return way, 500, b"internal error"
            way = Way.OK
        if way is Way.SLOW:
            self._released.wait(CEILING_S)
        return way, *ANSWERS[way]


class Server(http.server.ThreadingHTTPServer):
    """Says nothing of connections that the sender gave up."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        pass
