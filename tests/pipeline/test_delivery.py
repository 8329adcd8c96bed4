"""A published event is delivered."""

import hashlib
import hmac
from datetime import UTC, datetime, timedelta, timezone

import pytest
from standardwebhooks.webhooks import Webhook

from hookline.errors import Invalid
from hookline.ids import read
from hookline.model import EndpointId, ErrorKind, Outcome, Reason, State
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


async def test_an_event_arrives_as_it_was_published(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url("/in"), events=["order.*"])
    body = b'{ "id":42,\t"price": 1.50e1 }'
    event = await hooks.publish("order.paid", body)
    await world.until(lambda: receiver.requests)
    (request,) = receiver.requests
    assert (request.path, request.body) == ("/in", body)
    assert request.headers["webhook-id"] == event.id
    assert request.headers["webhook-event"] == "order.paid"
    assert request.headers["webhook-attempt"] == "1"
    assert request.headers["content-type"] == "application/json"
    assert event.deliveries == 1


async def test_receivers_are_told_whom_to_ask_when_there_is_somebody(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url("/"), events=["*"])
    await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    assert receiver.requests[0].headers["user-agent"] == "hookline/0.1"
    await world.stop(hooks)
    hooks = await world.start(contact="https://example.com/hooks")
    await hooks.publish("order.paid", {})
    await world.until(lambda: len(receiver.requests) == 2)
    assert receiver.requests[1].headers["user-agent"] == "hookline/0.1 (+https://example.com/hooks)"


async def test_the_delivery_and_its_attempt_are_recorded(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(202, body=b"thanks")]
    event = await hooks.publish("order.paid", {"id": 1})
    delivery = await world.until_state(hooks, event.id, State.DELIVERED)
    (attempt,) = await hooks.store.attempts(delivery.id)
    assert (delivery.attempts, delivery.last_status, delivery.reason) == (1, 202, None)
    assert (attempt.number, attempt.status, attempt.outcome, attempt.response_body, attempt.late) == (
        1,
        202,
        Outcome.ACCEPTED,
        b"thanks",
        False,
    )


async def test_the_standard_signature_verifies_with_the_published_verifier(world: World, receiver: Receiver):
    world.clock = type(world.clock)(datetime.now(UTC).timestamp())
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await hooks.publish("order.paid", {"id": 42})
    await world.until(lambda: receiver.requests)
    (request,) = receiver.requests
    assert Webhook(endpoint.secret).verify(request.body, request.headers) == {"id": 42}


async def test_the_classic_signature_is_the_bodys_hmac_under_the_secret_as_shown(world, receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], signing="classic")
    event = await hooks.publish("order.paid", {"id": 42}, idempotency_key="k-1")
    await world.until(lambda: receiver.requests)
    (request,) = receiver.requests
    digest = hmac.new(endpoint.secret.encode(), request.body, hashlib.sha256).hexdigest()
    assert request.headers["x-webhook-signature"] == f"sha256={digest}"
    assert request.headers["x-event-id"] == event.id
    assert request.headers["x-idempotency-key"] == "k-1"
    assert request.headers["x-webhook-id"].startswith("dlv_")
    assert request.headers["x-webhook-timestamp"] == request.headers["x-delivery-timestamp"]


async def test_an_event_goes_to_every_endpoint_of_its_account_that_asked_for_it(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url("/all"), events=["*"])
    await hooks.create_endpoint(url=receiver.url("/orders"), events=["order.*"])
    await hooks.create_endpoint(url=receiver.url("/users"), events=["user.*"])
    await hooks.create_endpoint(url=receiver.url("/other"), events=["*"], account="acme")
    await hooks.create_endpoint(url=receiver.url("/off"), events=["*"], enabled=False)
    event = await hooks.publish("order.paid", {})
    for ordinal in range(event.deliveries):
        await world.until_state(hooks, event.id, State.DELIVERED, ordinal=ordinal)
    assert sorted(r.path for r in receiver.requests) == ["/all", "/orders"]


async def test_the_endpoints_own_headers_are_sent(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], headers={"X-Team": "blue"})
    await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    assert receiver.requests[0].headers["x-team"] == "blue"


async def test_a_failure_is_tried_again_by_the_schedule_under_the_same_id(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], headers={"X-Key": "top-secret"})
    receiver.answers["/"] = [Answer(500, {"X-Why": "broken"}, b"oops"), Answer(503), Answer(200)]
    event = await hooks.publish("order.paid", {"id": 42})

    async def is_delivered() -> bool:
        await world.skip_wait(hooks, event.id)
        return (await world.delivery(hooks, event.id)).state is State.DELIVERED

    await world.until(is_delivered)
    delivery = await world.delivery(hooks, event.id)
    first, second, third = await hooks.store.attempts(delivery.id)
    assert [r.headers["webhook-attempt"] for r in receiver.requests] == ["1", "2", "3"]
    assert {r.headers["webhook-id"] for r in receiver.requests} == {event.id}
    assert {r.body for r in receiver.requests} == {b'{"id":42}'}
    assert 0 <= second.at - first.at <= 30 + 1
    assert 0 <= third.at - second.at <= 300 + 1
    assert (first.status, first.error, first.outcome) == (500, ErrorKind.HTTP_5XX, Outcome.TRANSIENT)
    assert (first.response_body, first.response_headers["x-why"]) == (b"oops", "broken")
    assert first.request_headers["X-Key"] == "***"
    assert third.request_headers is None


async def test_no_retry_starts_before_it_is_due(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(500)]
    event = await hooks.publish("order.paid", {})

    async def has_failed(times: int) -> bool:
        return (await world.delivery(hooks, event.id)).attempts == times

    await world.until(lambda: has_failed(1))
    due = (await world.delivery(hooks, event.id)).due_at
    await world.until(lambda: has_failed(2))
    delivery = await world.delivery(hooks, event.id)
    first, second = await hooks.store.attempts(delivery.id)
    assert first.at < due <= second.at


async def test_a_rejected_delivery_is_dead_after_one_request(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(404)]
    event = await hooks.publish("order.paid", {})
    delivery = await world.until_state(hooks, event.id, State.DEAD)
    assert (delivery.reason, delivery.attempts, delivery.last_status) == (Reason.REJECTED, 1, 404)


async def test_seven_failures_make_a_dead_letter(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(hang_up=True)]
    event = await hooks.publish("order.paid", {})

    async def is_dead() -> bool:
        await world.skip_wait(hooks, event.id)
        return (await world.delivery(hooks, event.id)).state is State.DEAD

    await world.until(is_dead)
    delivery = await world.delivery(hooks, event.id)
    assert (delivery.reason, delivery.attempts) == (Reason.EXHAUSTED, 7)
    assert [a.number for a in await hooks.store.attempts(delivery.id)] == [1, 2, 3, 4, 5, 6, 7]


async def test_a_payload_too_large_to_keep_in_memory_is_read_when_it_is_sent(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    body = b'"' + b"x" * 200_000 + b'"'
    event = await hooks.publish("order.paid", body)
    await world.until_state(hooks, event.id, State.DELIVERED)
    assert receiver.bodies() == [body]


async def test_a_time_that_could_not_be_shown_is_not_taken(world):
    hooks = await world.start()
    before_the_first_year = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    with pytest.raises(Invalid, match="years 1 to 9999"):
        await hooks.publish("order.paid", {}, deliver_at=before_the_first_year)


async def test_a_scheduled_event_is_sent_when_its_time_has_come_and_not_before(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    at = datetime.fromtimestamp(int(world.clock.now()) + 3_600, UTC)
    event = await hooks.publish("order.paid", {}, deliver_at=at)
    world.clock.advance(3_590)
    for _ in range(100):
        await world.tick()
    assert receiver.requests == []
    delivery = await world.until_state(hooks, event.id, State.DELIVERED)
    (attempt,) = await hooks.store.attempts(delivery.id)
    assert attempt.at >= at.timestamp()


async def test_an_endpoint_that_cannot_be_sent_to_fails_its_own_delivery_and_no_other(world, receiver):
    hooks = await world.start()
    broken = await hooks.create_endpoint(url=receiver.url("/broken"), events=["*"])
    await hooks.create_endpoint(url=receiver.url("/fine"), events=["*"])
    hooks._catalogue.prepared(EndpointId(read("endpoint", broken.id)))._sign = None  # type: ignore[union-attr,assignment]
    event = await hooks.publish("order.paid", {})
    await world.until_state(hooks, event.id, State.DELIVERED, ordinal=1)

    async def has_failed() -> bool:
        return (await world.delivery(hooks, event.id)).attempts == 1

    await world.until(has_failed)
    (attempt,) = await hooks.store.attempts((await world.delivery(hooks, event.id)).id)
    assert attempt.error is ErrorKind.INTERNAL
    assert receiver.bodies("/broken") == []
