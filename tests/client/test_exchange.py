"""When a call is sent again, and how it ends."""

from random import Random

import msgspec
import pytest

from hookline.client import ApiError, NotFound, Published, Unavailable, UnexpectedAnswer, Unreachable
from hookline.client import call as calls
from hookline.client.answers import Delivery
from hookline.client.endpoint import Endpoint
from hookline.client.exchange import ClientExchange, HttpAnswer, Wait
from hookline.client.publishing import NewEvent, publish

LOOK = calls.get("/v1/endpoints/ep_1", Endpoint)
DELETE = calls.delete("/v1/endpoints/ep_1")
PUBLISH = publish(NewEvent(type="order.paid", payload={}))
CREATE = calls.post("/v1/endpoints", Endpoint, {})
REPEATABLE = [LOOK, DELETE, PUBLISH]

LOST = Unreachable("http://here", "gone", may_be_done=True)
NEVER_SENT = Unreachable("http://here", "refused", may_be_done=False)
BAD_CERTIFICATE = Unreachable("http://here", "certificate", may_be_done=False, may_pass=False)


class Roll(Random):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def random(self):
        return self.value


def an_exchange(call, *, retry_for=30.0, roll=1.0):
    return ClientExchange(call, retry_for=retry_for, now=0.0, rng=Roll(roll))


def a_problem(status, code, *, headers=None, **fields):
    problem = {"type": "urn:x", "title": "No", "status": status, "code": code, "detail": "It will not do."}
    return HttpAnswer(
        status,
        {"content-type": "application/problem+json", **(headers or {})},
        msgspec.json.encode({**problem, "request_id": "req_1", **fields}),
    )


UNAVAILABLE = a_problem(503, "unavailable")
RATE_LIMITED = a_problem(429, "rate_limited")


def answered(exchange, answer, *, now=0.0):
    return exchange.answered(answer, now=now, wall=1_000_000.0)


@pytest.mark.parametrize("call", REPEATABLE)
def test_a_call_that_may_be_repeated_is_sent_again_after_a_503_and_a_lost_connection(call):
    exchange = an_exchange(call)
    assert answered(exchange, UNAVAILABLE) == Wait(0.1)
    assert exchange.failed(LOST, now=0.1) == Wait(0.2)
    assert exchange.failed(NEVER_SENT, now=0.2) == Wait(0.4)
    assert answered(
        exchange, HttpAnswer(502, {"content-type": "text/html"}, b"<h1>Bad gateway</h1>")
    ) == Wait(0.8)


def test_a_call_that_may_not_be_repeated_is_sent_again_only_when_it_cannot_have_been_carried_out():
    assert an_exchange(CREATE).failed(NEVER_SENT, now=0.0) == Wait(0.1)
    assert answered(an_exchange(CREATE), RATE_LIMITED) == Wait(0.1)
    with pytest.raises(Unavailable):
        answered(an_exchange(CREATE), UNAVAILABLE)
    with pytest.raises(UnexpectedAnswer):
        answered(an_exchange(CREATE), HttpAnswer(502, {}, b""))
    with pytest.raises(Unreachable) as raised:
        an_exchange(CREATE).failed(LOST, now=0.0)
    assert raised.value is LOST


@pytest.mark.parametrize("call", [*REPEATABLE, CREATE])
@pytest.mark.parametrize(
    "answer",
    [
        a_problem(400, "invalid_json"),
        a_problem(401, "unauthenticated"),
        a_problem(409, "wrong_state"),
        a_problem(422, "idempotency_conflict"),
        a_problem(500, "internal"),
    ],
)
def test_what_the_server_refuses_is_never_sent_again(call, answer):
    with pytest.raises(ApiError):
        answered(an_exchange(call), answer)


@pytest.mark.parametrize("call", REPEATABLE)
def test_a_wrong_certificate_is_not_tried_again(call):
    with pytest.raises(Unreachable):
        an_exchange(call).failed(BAD_CERTIFICATE, now=0.0)


def test_waits_double_up_to_a_ceiling_and_chance_takes_up_to_half_of_them():
    longest, shortest = an_exchange(LOOK, retry_for=1e6), an_exchange(LOOK, retry_for=1e6, roll=0.0)
    assert [longest.failed(LOST, now=0.0).seconds for _ in range(8)] == [
        pytest.approx(wait) for wait in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0)
    ]
    assert [shortest.failed(LOST, now=0.0).seconds for _ in range(3)] == [0.05, 0.1, 0.2]


def test_a_call_may_be_tried_thousands_of_times():
    exchange = an_exchange(LOOK, retry_for=1e9)
    assert [exchange.failed(LOST, now=0.0) for _ in range(3_000)][-1] == Wait(5.0)


@pytest.mark.parametrize(
    ("retry_after", "asked"), [("2", 2.0), ("Mon, 12 Jan 1970 13:46:45 GMT", 5.0), ("soon", 0.0), ("", 0.0)]
)
def test_a_retry_after_is_waited_for_and_a_little_longer(retry_after, asked):
    answer = a_problem(503, "overloaded", headers={"retry-after": retry_after})
    assert answered(an_exchange(LOOK), answer) == Wait(asked + 0.1)


def test_no_try_begins_after_the_time_for_retries_is_over_and_the_last_refusal_is_raised():
    exchange = an_exchange(LOOK, retry_for=10.0)
    assert answered(exchange, UNAVAILABLE, now=9.9) == Wait(0.1)
    with pytest.raises(Unavailable):
        answered(exchange, UNAVAILABLE, now=9.9)
    with pytest.raises(Unavailable):  # a wait that would be useless is not begun
        answered(an_exchange(LOOK), a_problem(503, "storage_full", headers={"retry-after": "60"}))
    with pytest.raises(Unreachable):
        an_exchange(LOOK, retry_for=0.0).failed(NEVER_SENT, now=0.0)


def test_what_an_earlier_try_has_deleted_is_deleted():
    exchange = an_exchange(DELETE)
    exchange.failed(LOST, now=0.0)
    assert answered(exchange, a_problem(404, "not_found")) is None
    with pytest.raises(NotFound):
        answered(an_exchange(DELETE), a_problem(404, "not_found"))
    never_sent = an_exchange(DELETE)
    never_sent.failed(NEVER_SENT, now=0.0)
    with pytest.raises(NotFound):
        answered(never_sent, a_problem(404, "not_found"))


PUBLISHED = {"id": "evt_1", "type": "a", "account": "default", "created_at": "2026-01-31T12:00:00.000000Z"}


@pytest.mark.parametrize(("key", "is_duplicate"), [(None, False), ("mine", True)])
def test_a_duplicate_of_a_key_that_was_made_for_the_call_is_its_own_earlier_try(key, is_duplicate):
    call = publish(NewEvent(type="a", payload={}, idempotency_key=key))
    body = msgspec.json.encode({**PUBLISHED, "deliveries": 1, "duplicate": True})
    published = answered(an_exchange(call), HttpAnswer(202, {}, body))
    assert isinstance(published, Published)
    assert published.duplicate is is_duplicate


def test_a_refusal_carries_all_fields_of_the_problem():
    answer = a_problem(422, "invalid_field", errors=[{"pointer": "/url", "detail": "Not a URL.", "new": 1}])
    with pytest.raises(ApiError) as raised:
        answered(an_exchange(CREATE), answer)
    error = raised.value
    assert (error.status, error.code, error.detail) == (422, "invalid_field", "It will not do.")
    assert (error.request_id, error.title) == ("req_1", "No")
    assert [(each.pointer, each.detail) for each in error.errors] == [("/url", "Not a URL.")]
    assert str(error) == "It will not do. (/url) [invalid_field, req_1]"


@pytest.mark.parametrize(
    "answer",
    [
        HttpAnswer(200, {"content-type": "text/html"}, b"<h1>Welcome</h1>"),
        HttpAnswer(200, {"content-type": "application/json"}, b'{"hello": "world"}'),
        HttpAnswer(200, {}, b""),
        HttpAnswer(302, {"location": "https://elsewhere.example/"}, b""),
        HttpAnswer(404, {"content-type": "application/json"}, b'{"error": "no such page"}'),
        HttpAnswer(404, {"content-type": "application/problem+json"}, b"not JSON"),
        HttpAnswer(404, {"content-type": "application/problem+json"}, b"[]"),
    ],
)
def test_what_is_not_hookline_is_told_apart(answer):
    with pytest.raises(UnexpectedAnswer) as raised:
        answered(an_exchange(LOOK), answer)
    assert raised.value.status == answer.status


def test_fields_that_the_server_has_gained_or_lacks_do_no_harm():
    fields = {"id": "dlv_1", "event_id": "evt_1", "endpoint_id": "ep_1", "account": "a", "state": "brand_new"}
    body = msgspec.json.encode({**fields, "event_type": "b", "mood": {"is": "good"}})
    delivery = answered(
        an_exchange(calls.get("/v1/deliveries/dlv_1", Delivery)),
        HttpAnswer(200, {}, body),
    )
    assert delivery == Delivery(**fields, event_type="b")
