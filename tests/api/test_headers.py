"""Every answer carries its headers, and those of a request are read strictly."""

import pytest

from tests.api.conftest import KEY

AUTHORIZED = f"authorization: Bearer {KEY}"
JSON = "content-type: application/json"
BODY = '{"type":"header.read","payload":1}'


def asked(method: str, path: str, *headers: str, body: str = "") -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "host: x", f"content-length: {len(body)}", *headers, "", body)
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (asked("GET", "/healthz"), 200),
        (asked("GET", "/metrics", AUTHORIZED), 200),
        (asked("GET", "/openapi.json", AUTHORIZED), 200),
        (asked("GET", "/docs", AUTHORIZED), 200),
        (asked("GET", "/v1/endpoints", AUTHORIZED), 200),
        (asked("POST", "/v1/events", AUTHORIZED, JSON, body=BODY), 202),
        (asked("POST", "/v1/events/batch", AUTHORIZED, JSON, body='{"events":[]}'), 422),
        (asked("POST", "/v1/events", AUTHORIZED, JSON, body="{}"), 422),
        (asked("POST", "/v1/events", AUTHORIZED, body=BODY), 415),
        (asked("POST", "/v1/events", JSON, body=BODY), 401),
        (asked("GET", "/nowhere", AUTHORIZED), 404),
        (asked("DELETE", "/v1/events", AUTHORIZED), 405),
        (asked("BREW", "/v1/events", AUTHORIZED), 405),
        (b"nonsense\r\n\r\n", 400),
        (asked("GET", "/healthz", "content-length: 1"), 400),
        (b"GET /healthz HTTP/1.1\r\nx-long: " + b"x" * 70_000, 400),
    ],
)
def test_no_answer_may_be_taken_for_another_kind_of_content(service, request_bytes, status):
    answer = service.raw(request_bytes)
    assert (answer.status, answer.headers["x-content-type-options"]) == (status, "nosniff")


def test_blanks_around_a_header_s_value_are_not_part_of_it(service):
    def publish(key: str) -> tuple[int, bytes]:
        lines = (f"{AUTHORIZED} \t", f"{JSON} \t ", f"idempotency-key:\t {key}")
        answer = service.raw(asked("POST", "/v1/events", *lines, body=BODY))
        return answer.status, answer.body

    first, again = publish("blanks \t"), publish("blanks")
    assert (first[0], again[0]) == (202, 202)
    assert again[1] == first[1].replace(b'"duplicate":false', b'"duplicate":true')


def test_blanks_after_a_header_s_value_are_no_part_of_it_in_calls_of_operators(service):
    fields = '{"url":"https://hooks.example.com/","events":["blank.*"]}'
    lines = (f"{AUTHORIZED}  ", f"{JSON}\t")
    assert service.raw(asked("POST", "/v1/endpoints", *lines, body=fields)).status == 201
    order = '{"filter":{"account":"nobody"}}'
    first = service.raw(asked("POST", "/v1/replays", *lines, "idempotency-key: once \t", body=order))
    again = service.raw(asked("POST", "/v1/replays", *lines, "idempotency-key: once", body=order))
    assert (first.status, again.status) == (202, 202)
    assert again.headers["location"] == first.headers["location"]
