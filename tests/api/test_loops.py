"""A webhook that goes round in a loop ends."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from answering import eventually
from tests.api.conftest import KEY, Service
from tests.api.corpus import assert_problem


class Forwarder(http.server.ThreadingHTTPServer):
    """Publishes whatever it receives again, with the hops it came with, as an application in a loop would."""

    def __init__(self, publish_at: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.publish_at = publish_at
        self.hops: list[str] = []
        self.answers: list[int] = []


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Forwarder

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["content-length"])))
        hops = self.headers["hookline-hops"]
        self.server.hops.append(hops)
        answer = httpx.post(
            self.server.publish_at,
            json={"type": "loop.again", "account": "loop", "payload": payload},
            headers={"authorization": f"Bearer {KEY}", "hookline-hops": hops},
            trust_env=False,
            timeout=30,
        )
        self.server.answers.append(answer.status_code)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def forwarding(service: Service) -> Iterator[Forwarder]:
    with Forwarder(f"{service.process.url}/v1/events") as forwarder:
        thread = threading.Thread(target=forwarder.serve_forever)
        thread.start()
        yield forwarder
        forwarder.shutdown()
        thread.join()


def settled(service: Service, account: str) -> list[dict[str, object]]:
    return [
        each
        for each in service.call("GET", f"/v1/deliveries?account={account}").json()["data"]
        if each["state"] != "pending"
    ]


def test_a_circle_ends_after_three_hops(service):
    with forwarding(service) as forwarder:
        endpoint = service.create(
            url=f"http://127.0.0.1:{forwarder.server_port}/", events=["loop.*"], account="loop"
        )
        service.publish("loop.begin", {"n": 1}, account="loop")
        eventually(lambda: 422 in forwarder.answers or None)
        eventually(lambda: len(settled(service, "loop")) == 4 or None)
        service.call("DELETE", f"/v1/endpoints/{endpoint['id']}")
    assert forwarder.hops == ["1", "2", "3", "4"]
    assert sorted(forwarder.answers) == [
        202,
        202,
        202,
        422,
    ]  # threads: the last one may be the first to note its own


def test_an_endpoint_that_is_our_own_way_in_gets_no_further(service):
    payload: object = 1
    for _ in range(10):
        payload = {"type": "own.loop", "account": "own", "payload": payload}
    endpoint = service.create(
        url=f"{service.process.url}/v1/events",
        events=["own.*"],
        account="own",
        headers={"Authorization": f"Bearer {KEY}"},
    )
    service.publish("own.loop", payload, account="own")
    found = eventually(lambda: dead if (dead := settled(service, "own")) and len(dead) == 4 else None)
    assert sorted(each["last_status"] for each in found) == [202, 202, 202, 422]
    [last] = [each for each in found if each["last_status"] == 422]
    [attempt] = service.call("GET", f"/v1/deliveries/{last['id']}/attempts").json()["data"]
    assert json.loads(attempt["response_body"])["code"] == "loop_detected"
    assert attempt["request"]["headers"]["hookline-hops"] == "4"
    service.call("DELETE", f"/v1/endpoints/{endpoint['id']}")


@pytest.mark.parametrize("path", ["/v1/events", "/v1/events/batch"])
def test_what_came_too_far_is_refused_and_nothing_is_stored(service, path):
    event = {"type": "a.b", "payload": 1, "account": "far"}
    body = {"events": [event]} if path.endswith("batch") else event
    assert service.call("POST", path, body, hookline_hops="3").status_code == 202
    before = service.counts()
    assert_problem(service.call("POST", path, body, hookline_hops="4"), 422, "loop_detected")
    for wrong in ("", "-1", "x", "1.5", "9" * 10):
        assert_problem(service.call("POST", path, body, hookline_hops=wrong), 422, "invalid_field")
    line = f"host: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
    sent = json.dumps(body)
    twice = f"POST {path} HTTP/1.1\r\n{line}hookline-hops: 1\r\nhookline-hops: 1\r\ncontent-length: {len(sent)}\r\n\r\n"
    assert_problem(service.raw((twice + sent).encode()), 422, "invalid_field")
    assert service.counts() == before


def test_the_same_bytes_mean_the_same_hops_when_they_come_again(service):
    """The head of a publish is remembered by its bytes."""
    sent = json.dumps({"type": "again.a", "payload": 1, "account": "again"})
    head = f"POST /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
    for hops, status in (("2", 202), ("2", 202), ("4", 422), ("4", 422), ("2", 202)):
        request = f"{head}hookline-hops: {hops}\r\ncontent-length: {len(sent)}\r\n\r\n{sent}"
        assert service.raw(request.encode()).status == status
