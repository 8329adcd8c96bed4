"""Events are published over HTTP."""

import re
from datetime import UTC, datetime, timedelta

import pytest

PUBLISHED = re.compile(
    r'\{"id":"evt_[0-9a-v]{26}","type":"order\.paid","account":"default",'
    r'"created_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z","deliveries":0,"duplicate":false\}'
)


def test_a_published_event_is_answered_with_what_it_became(service):
    answer = service.call("POST", "/v1/events", {"type": "order.paid", "payload": {"id": 42}})
    assert answer.status_code == 202
    assert PUBLISHED.fullmatch(answer.text)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["request-id"].startswith("req_")
    assert "server" not in answer.headers


@pytest.mark.parametrize(
    "payload",
    [
        b"null",
        b'{"s":"x\\u0000y"}',
        b"1e400",
        b"12345678901234567890.123456789",
        b"9" * 5_000,
        b'{"k":1,"k":2}',
        b'{"b":1,  "aa":2,\n"a":3}',
        b'{"x":1.0,"y":1e2,"z":-0}',
        b'{"__proto__":{"x":1},"type":"type","payload":{"payload":1}}',
        b'"<script>alert(1)</script> \\u2028 \\u001b[2J"',
        '{"ключ":"😀"}'.encode(),
        b"{" + b",".join(b'"%d":1' % n for n in range(90_000)) + b"}",
        b'"' + b"x" * ((1 << 20) - 2) + b'"',
    ],
)
def test_a_payload_is_kept_byte_for_byte(service, payload):
    answer = service.call(
        "POST", "/v1/events", b'{"type":"order.paid", "payload" : ' + payload + b' , "account":"a"}'
    )
    assert answer.status_code == 202
    shown = service.call("GET", f"/v1/events/{answer.json()['id']}")
    assert b'"payload":' + payload + b',"idempotency_key"' in shown.content


def test_a_repeated_key_gives_the_first_event_back(service):
    first = service.publish(payload=1, idempotency_key="same-1")
    second = service.publish(payload=1, idempotency_key="same-1")
    assert second == {**first, "duplicate": True}
    other = service.publish(payload=1, idempotency_key="same-1", account="other")
    assert not other["duplicate"]


def test_the_key_may_come_as_a_header(service):
    body = {"type": "order.paid", "payload": 1}
    first = service.call("POST", "/v1/events", body, idempotency_key="by-header").json()
    both = service.call(
        "POST", "/v1/events", {**body, "idempotency_key": "by-header"}, idempotency_key="by-header"
    )
    assert both.json() == {**first, "duplicate": True}
    shown = service.call("GET", f"/v1/events/{first['id']}").json()
    assert shown["idempotency_key"] == "by-header"


@pytest.mark.parametrize(
    "other",
    [{"payload": 2}, {"type": "order.sent"}, {"deliver_at": "2020-01-01T00:00:00Z"}, {"payload": 1.0}],
)
def test_a_key_for_another_event_is_a_conflict(service, other):
    body = {"type": "order.paid", "payload": 1, "idempotency_key": "conflict"}
    service.call("POST", "/v1/events", body)
    answer = service.call("POST", "/v1/events", {**body, **other})
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_conflict")


def test_a_time_that_could_not_be_shown_is_refused_before_it_spoils_a_list(service):
    for when in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"):
        event = {"type": "a", "payload": 1, "deliver_at": when}
        assert service.call("POST", "/v1/events", event).json()["code"] == "invalid_field"
        for jobs in ("replays", "discards"):
            answer = service.call("POST", f"/v1/{jobs}", {"filter": {"until": when}, "dry_run": True})
            assert answer.status_code == 422
    for path in ("events", "replays", "discards"):
        assert service.call("GET", f"/v1/{path}").status_code == 200


def test_deliver_at_in_the_past_means_now_and_within_a_year_is_kept(service):
    past = service.publish(deliver_at="2020-01-01T02:00:00+02:00")
    assert (
        service.call("GET", f"/v1/events/{past['id']}").json()["deliver_at"] == "2020-01-01T00:00:00.000000Z"
    )
    later = (datetime.now(UTC) + timedelta(days=364)).strftime("%Y-%m-%dT%H:%M:%SZ")
    service.publish(deliver_at=later)
    too_late = (datetime.now(UTC) + timedelta(days=366)).strftime("%Y-%m-%dT%H:%M:%SZ")
    answer = service.call("POST", "/v1/events", {"type": "a", "payload": 1, "deliver_at": too_late})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/deliver_at")


def test_an_event_shows_how_its_deliveries_stand(service):
    later = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    service.create(account="stands", events=["a.*"])
    service.create(account="stands", events=["*"])
    published = service.publish("a.b", {"n": 1}, account="stands", deliver_at=later)
    assert published["deliveries"] == 2
    event = service.call("GET", f"/v1/events/{published['id']}").json()
    assert event == {
        "id": published["id"],
        "type": "a.b",
        "account": "stands",
        "payload": {"n": 1},
        "idempotency_key": None,
        "deliver_at": event["deliver_at"],
        "created_at": published["created_at"],
        "deliveries": {"pending": 2, "delivered": 0, "dead": 0, "cancelled": 0},
        "payload_bytes": 8,
    }


def test_in_a_batch_a_bad_event_does_not_stop_the_others(service):
    before = service.counts()["events"]
    good = {"type": "order.paid", "payload": 1}
    events = [
        good,
        {**good, "type": "a b"},
        {**good, "idempotency_key": "twice"},
        5,
        {**good, "idempotency_key": "twice"},
    ]
    answer = service.call("POST", "/v1/events/batch", {"events": events})
    assert answer.status_code == 202
    results = answer.json()["results"]
    shapes = [each.get("duplicate", each.get("error", {}).get("errors")) for each in results]
    assert [shape[0]["pointer"] if isinstance(shape, list) else shape for shape in shapes] == [
        False, "/events/1/type", False, "/events/3", True,
    ]  # fmt: skip
    assert results[4]["id"] == results[2]["id"]
    assert results[1]["error"]["code"] == "invalid_field"
    assert results[1]["error"]["request_id"] == answer.headers["request-id"]
    assert service.counts()["events"] == before + 2


def test_a_thousand_events_fit_in_a_batch_and_one_more_does_not(service):
    event = {"type": "order.paid", "payload": {"x": "y"}}
    answer = service.call("POST", "/v1/events/batch", {"events": [event] * 1_000})
    assert len({each["id"] for each in answer.json()["results"]}) == 1_000
    before = service.counts()
    answer = service.call("POST", "/v1/events/batch", {"events": [event] * 1_001})
    assert (answer.status_code, answer.json()["code"]) == (422, "too_many_events")
    assert service.counts() == before


def test_a_payload_over_the_limit_in_a_batch_is_refused_alone(service):
    large = b'{"type":"a","payload":"' + b"x" * (1 << 20) + b'"}'
    answer = service.call("POST", "/v1/events/batch", b'{"events":[' + large + b',{"type":"a","payload":1}]}')
    first, second = answer.json()["results"]
    assert (first["error"]["code"], second["duplicate"]) == ("too_large", False)
