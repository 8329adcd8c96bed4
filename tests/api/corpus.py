"""Tries a case of the corpus against the API."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from answering import eventually
from tests.api.conftest import Answer, Service

CASES: dict[str, Callable[[Service, "Recorder"], None]] = {}


def covers(
    id: str,
) -> Callable[[Callable[[Service, "Recorder"], None]], Callable[[Service, "Recorder"], None]]:
    """Note that this function tries the row with that id."""

    def note(case: Callable[[Service, "Recorder"], None]) -> Callable[[Service, "Recorder"], None]:
        assert id not in CASES
        CASES[id] = case
        return case

    return note


class Recorder:
    """A receiver that keeps the bodies it gets, by path."""

    def __init__(self) -> None:
        bodies = self.bodies = dict[str, list[bytes]]()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                bodies.setdefault(self.path, []).append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def delivered(service: Service, recorder: Recorder, account: str, *payloads: bytes) -> list[str]:
    """Check that each payload is accepted, shown and delivered byte for byte; returns the ids of the events."""
    path = f"/{account}-{service.database.partition(':')[0]}"  # both stores share the receiver
    service.create(account=account, url=recorder.url + path, events=["*"])
    ids = []
    for payload in payloads:
        body = b'{"type":"a.b","account":"%b","payload":%b}' % (account.encode(), payload)
        answer = service.call("POST", "/v1/events", body)
        assert answer.status_code == 202, answer.text
        ids.append(answer.json()["id"])
        shown = service.call("GET", f"/v1/events/{ids[-1]}").content
        assert b'"payload":%b,"idempotency_key"' % payload in shown
    expected = sorted(payloads)
    eventually(lambda: True if len(recorder.bodies.get(path, [])) >= len(payloads) else None)
    assert sorted(recorder.bodies[path]) == expected
    return ids


def refused(
    service: Service,
    status: int,
    code: str,
    *,
    method: str = "POST",
    path: str = "/v1/events",
    body: Any = None,
    pointer: str | None = None,
    **headers: str,
) -> dict[str, Any]:
    """Check that the request is answered with one problem with this code, and nothing is stored."""
    before = service.counts()
    answer = service.call(method, path, body, **headers)
    found = assert_problem(answer, status, code)
    if pointer is not None:
        assert [each["pointer"] for each in found["errors"]] == [pointer], found
    assert service.counts() == before
    return found


def assert_problem(answer: httpx.Response | Answer, status: int, code: str) -> dict[str, Any]:
    if isinstance(answer, Answer):
        found = json.loads(answer.body)
        given = answer.status
    else:
        found, given = answer.json(), answer.status_code
    assert (given, found["status"], found["code"]) == (status, status, code), found
    assert answer.headers["content-type"] == "application/problem+json"
    assert found["request_id"] == answer.headers["request-id"]
    return dict(found)


def endpoint(**fields: Any) -> dict[str, Any]:
    return {"url": "https://hooks.example.com/", "events": ["*"], "account": "corpus", **fields}


def refused_endpoint(
    service: Service, fields: dict[str, Any], pointer: str, code: str = "invalid_field"
) -> None:
    """Check that it is refused when an endpoint is created and when one is changed."""
    refused(service, 422, code, path="/v1/endpoints", body=endpoint(**fields), pointer=pointer)
    made = service.create(account="corpus-patched")["id"]
    before = service.call("GET", f"/v1/endpoints/{made}").json()
    patch = {"description": "must not be kept", **fields}
    if "secret" not in fields:  # a secret is given at creation, and only rotated after that
        refused(service, 422, code, method="PATCH", path=f"/v1/endpoints/{made}", body=patch, pointer=pointer)
    assert service.call("GET", f"/v1/endpoints/{made}").json() == before
