"""A trace goes from the publish to every request for its event."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message

import pytest

from answering import eventually

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Recorder(http.server.ThreadingHTTPServer):
    """Keeps the headers of every request, and refuses the first of each event."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[Message] = []


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append(self.headers)
        self.send_response(503 if self.headers["webhook-attempt"] == "1" else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def recording() -> Iterator[Recorder]:
    with Recorder() as recorder:
        thread = threading.Thread(target=recorder.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield recorder
        recorder.shutdown()
        thread.join()


def traces(recorder: Recorder) -> list[tuple[str | None, str | None]]:
    return [(each["traceparent"], each["tracestate"]) for each in recorder.seen]


@pytest.mark.parametrize("path", ["/v1/events", "/v1/events/batch"])
def test_every_request_for_an_event_carries_its_trace(service, path):
    type = f"traced.{path.rpartition('/')[2]}"
    event = {"type": type, "payload": 1}
    body = {"events": [event]} if path.endswith("batch") else event
    with recording() as recorder:
        service.create(
            url=f"http://127.0.0.1:{recorder.server_port}/",
            events=[type],
            retry={"schedule": [0, 0.01], "jitter": "none"},
        )
        answer = service.call("POST", path, body, traceparent=PARENT, tracestate="a=1, b=x y")
        assert answer.status_code == 202
        eventually(lambda: len(recorder.seen) == 2 or None)
        assert traces(recorder) == [(PARENT, "a=1,b=x y")] * 2
        recorder.seen.clear()
        assert service.call("POST", path, body, traceparent=PARENT.upper()).status_code == 202, "ignored"
        assert service.call("POST", path, body).status_code == 202
        eventually(lambda: len(recorder.seen) == 4 or None)
        assert traces(recorder) == [(None, None)] * 4


def test_an_endpoint_that_has_such_a_header_keeps_its_own(service):
    with recording() as recorder:
        service.create(
            url=f"http://127.0.0.1:{recorder.server_port}/",
            events=["traced.own"],
            headers={"TraceParent": "mine"},
            retry={"schedule": [0, 0.01], "jitter": "none"},
        )
        service.call(
            "POST", "/v1/events", {"type": "traced.own", "payload": 1}, traceparent=PARENT, tracestate="a=1"
        )
        eventually(lambda: len(recorder.seen) == 2 or None)
        assert [each.get_all("traceparent") for each in recorder.seen] == [["mine"]] * 2
        assert [each["tracestate"] for each in recorder.seen] == [None] * 2
