"""What an answer means for its delivery depends on the endpoint's own settings."""

import asyncio
from email.utils import formatdate

import pytest

from hookline.model import ErrorKind, Outcome, Reason, State
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

QUICK = {"schedule": [0, 1, 2, 4], "jitter": "none"}


async def test_503_twice_then_200_gets_three_requests_with_growing_delays(world: World, receiver: Receiver):
    world.step = 0.02
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK)
    receiver.answers["/"] = [Answer(503), Answer(503), Answer(200)]
    event = await hooks.publish("order.paid", {})
    delivery = await world.until_state(hooks, event.id, State.DELIVERED)
    first, second, third = await hooks.store.attempts(delivery.id)
    assert 1 <= second.at - first.at < 2
    assert 2 <= third.at - second.at < 3


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_a_floor_and_the_whole_lane_rests(world: World, receiver: Receiver, status: int):
    world.step = 0.02
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK)
    receiver.answers["/"] = [Answer(status, {"Retry-After": "3"}), Answer(200)]
    event = await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    first_at = world.clock.now()
    for _ in range(10):
        await world.tick()
    other = await world.pass_until(hooks.publish("order.late", {}))
    delivery = await world.until_state(hooks, event.id, State.DELIVERED)
    late = await world.until_state(hooks, other.id, State.DELIVERED)
    throttled, accepted = await hooks.store.attempts(delivery.id)
    (only,) = await hooks.store.attempts(late.id)
    assert throttled.outcome is Outcome.THROTTLED
    assert accepted.at - throttled.at >= 3
    assert only.at >= first_at + 2.9


async def test_an_endpoint_decides_which_statuses_are_tried_again(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, retry_statuses=[404])
    receiver.answers["/"] = [Answer(404), Answer(500)]
    event = await hooks.publish("order.paid", {})
    delivery = await world.until_state(hooks, event.id, State.DEAD)
    assert (delivery.reason, delivery.attempts, delivery.last_status) == (Reason.REJECTED, 2, 500)


async def test_410_disables_the_endpoint_and_keeps_what_waits(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=1)
    receiver.answers["/"] = [Answer(410)]
    first = await hooks.publish("order.paid", {})
    dead = await world.until_state(hooks, first.id, State.DEAD)
    assert (dead.reason, dead.last_error) == (Reason.GONE, ErrorKind.HTTP_410)

    async def is_disabled() -> bool:
        (found,) = (await hooks.store.catalogue()).endpoints
        return not found.enabled

    await world.until(is_disabled)
    (found,) = (await hooks.store.catalogue()).endpoints
    assert "410" in found.disabled_reason
    after = await world.pass_until(hooks.publish("order.paid", {}))
    assert after.deliveries == 0
    receiver.answers["/"] = [Answer(200)]
    await world.pass_until(hooks.update_endpoint(endpoint.id, enabled=True))
    again = await world.pass_until(hooks.publish("order.paid", {}))
    await world.until_state(hooks, again.id, State.DELIVERED)


async def test_410_from_the_url_it_had_before_does_not_disable_it_at_the_new_one(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url("/old"), events=["*"], max_in_flight=1)
    answer = asyncio.Event()
    receiver.answers["/old"] = [Answer(410, hold=answer)]
    first = await hooks.publish("order.paid", {})
    waiting = await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    await world.pass_until(hooks.update_endpoint(endpoint.id, url=receiver.url("/new")))
    answer.set()
    dead = await world.until_state(hooks, first.id, State.DEAD)
    assert dead.reason is Reason.GONE
    await world.until_state(hooks, waiting.id, State.DELIVERED)
    (found,) = (await hooks.store.catalogue()).endpoints
    assert found.enabled
    assert receiver.requests[-1].path == "/new"


async def test_410_disables_the_endpoint_also_while_the_process_is_leaving(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    answer = asyncio.Event()
    receiver.answers["/"] = [Answer(410, hold=answer)]
    await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    stopping = asyncio.ensure_future(world.stop(hooks))
    await world.until(lambda: hooks.worker._is_draining)
    answer.set()
    assert await stopping
    hooks = await world.start(deliver=False)
    (found,) = (await hooks.store.catalogue()).endpoints
    assert not found.enabled


async def test_410_disables_the_endpoint_although_the_process_dies_right_after(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(410)]
    settle, settled = hooks.store.settle, asyncio.Event()

    async def and_die(*given, **named):
        verdicts = await settle(*given, **named)
        settled.set()
        await asyncio.Event().wait()
        return verdicts

    hooks.store.settle = and_die
    await hooks.publish("order.paid", {})
    await world.until(settled.is_set)
    await world.crash(hooks)
    hooks = await world.start(deliver=False)
    (found,) = (await hooks.store.catalogue()).endpoints
    assert not found.enabled


async def test_a_redirect_is_a_refusal_unless_the_endpoint_allows_it(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url("/old"), events=["*"])
    receiver.answers["/old"] = [Answer(307, {"Location": "/new"})]
    event = await hooks.publish("order.paid", {})
    delivery = await world.until_state(hooks, event.id, State.DEAD)
    assert (delivery.reason, delivery.last_error) == (Reason.REJECTED, ErrorKind.HTTP_3XX)
    assert [r.path for r in receiver.requests] == ["/old"]


async def test_an_allowed_redirect_is_followed_with_method_and_body(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url("/1"), events=["*"], max_redirects=3, headers={"X-Key": "mine"}
    )
    for n in (1, 2, 3):
        receiver.answers[f"/{n}"] = [Answer(300 + (0, 1, 7, 8)[n], {"Location": f"/{n + 1}"})]
    event = await hooks.publish("order.paid", {"id": 42})
    delivery = await world.until_state(hooks, event.id, State.DELIVERED)
    assert [(r.path, r.body) for r in receiver.requests] == [(f"/{n}", b'{"id":42}') for n in (1, 2, 3, 4)]
    assert {r.headers["webhook-id"] for r in receiver.requests} == {event.id}
    assert all(r.headers["x-key"] == "mine" for r in receiver.requests)
    (attempt,) = await hooks.store.attempts(delivery.id)
    assert attempt.final_url == receiver.url("/4")


async def test_one_redirect_more_than_allowed_is_a_refusal(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url("/a"), events=["*"], max_redirects=1)
    receiver.answers["/a"] = [Answer(307, {"Location": "/b"})]
    receiver.answers["/b"] = [Answer(307, {"Location": "/a"})]
    event = await hooks.publish("order.paid", {})
    delivery = await world.until_state(hooks, event.id, State.DEAD)
    assert delivery.last_error is ErrorKind.HTTP_3XX
    assert [r.path for r in receiver.requests] == ["/a", "/b"]


async def test_a_redirect_to_another_origin_does_not_take_the_endpoints_headers_along(
    world: World, receiver: Receiver
):
    other = Receiver()
    await other.start()
    try:
        hooks = await world.start()
        await hooks.create_endpoint(
            url=receiver.url("/a"), events=["*"], max_redirects=1, headers={"Authorization": "secret"}
        )
        receiver.answers["/a"] = [Answer(307, {"Location": other.url("/b")})]
        event = await hooks.publish("order.paid", {})
        await world.until_state(hooks, event.id, State.DELIVERED)
        assert "authorization" in receiver.requests[0].headers
        assert "authorization" not in other.requests[0].headers
        assert other.requests[0].headers["webhook-id"] == event.id
    finally:
        await other.stop()


async def test_a_redirect_to_a_place_that_may_not_be_sent_to_is_a_refusal(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url("/a"), events=["*"], max_redirects=3)
    receiver.answers["/a"] = [Answer(307, {"Location": "http://user:pw@127.0.0.1:6379/"})]
    event = await hooks.publish("order.paid", {})
    delivery = await world.until_state(hooks, event.id, State.DEAD)
    assert delivery.last_error is ErrorKind.HTTP_3XX


async def test_a_date_to_wait_until_is_read_by_the_stores_clock(
    world: World, receiver: Receiver, monkeypatch
):
    """The wall clock of the machine that sends may be hours off."""
    monkeypatch.setattr(world.clock, "wall", lambda: world.clock.now() - 7_200)
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], retry={"schedule": [0, 1], "jitter": "none"}
    )
    until = world.clock.now() + 20
    receiver.answers["/"] = [Answer(503, {"retry-after": formatdate(until, usegmt=True)}), Answer(200)]
    event = await hooks.publish("order.paid", {})
    await world.until_state(hooks, event.id, State.DELIVERED)
    assert until - 1 <= world.clock.now() < until + 60
