"""A receiver that answers when it is told to."""

import contextlib
import http.server
import threading
from collections.abc import Iterator


class Slow(http.server.ThreadingHTTPServer):
    """Answers when it is told to."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        self.release = threading.Event()
        self.events: list[str] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler) -> None:
                handler.rfile.read(int(handler.headers["content-length"]))
                self.events.append(handler.headers["webhook-id"])
                self.release.wait(60)
                with contextlib.suppress(OSError):
                    handler.send_response(200)
                    handler.send_header("content-length", "0")
                    handler.end_headers()

            def log_message(handler, *args: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def serving(server: Slow) -> Iterator[Slow]:
    """Let it answer everybody in the end, and stop."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.release.set()
            server.shutdown()
            thread.join()
