"""A publish is answered when it is durable, and a repeated key gives the first event back."""

import asyncio
from datetime import datetime

import pytest

from hookline.app import Hookline
from hookline.errors import IdempotencyConflict, Invalid, StoreUnavailable, TooLarge, Unreadable
from hookline.model import State
from hookline.pipeline.intake.drafts import Draft, Published
from hookline.store.contract.events import EventFilter
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


async def test_an_event_that_nobody_asked_for_is_accepted_with_no_deliveries(world: World):
    hooks = await world.start()
    assert (await hooks.publish("order.paid", {})).deliveries == 0


async def test_a_repeated_key_gives_the_first_event_back_and_sends_nothing_twice(world, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    first = await hooks.publish("order.paid", {"id": 1}, idempotency_key="k")
    second = await hooks.publish("order.paid", {"id": 1}, idempotency_key="k")
    assert (second.id, second.duplicate, second.deliveries) == (first.id, True, 1)
    await world.until_state(hooks, first.id, State.DELIVERED)
    assert len(receiver.requests) == 1


async def test_fifty_publishes_under_one_key_at_once_are_one_event(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    published = await asyncio.gather(
        *(hooks.publish_draft(Draft("order.paid", b"{}", idempotency_key="k")) for _ in range(50))
    )
    assert len({p.id for p in published}) == 1
    assert sum(not p.duplicate for p in published) == 1
    assert sum((await hooks.store.counts()).values()) == 1


async def test_a_key_used_for_another_payload_is_a_conflict(world):
    hooks = await world.start()
    await hooks.publish("order.paid", {"id": 1}, idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        await hooks.publish("order.paid", {"id": 2}, idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        await hooks.publish("order.late", {"id": 1}, idempotency_key="k")
    other = await hooks.publish("order.paid", {"id": 2}, idempotency_key="k", account="acme")
    assert not other.duplicate


async def test_the_same_key_twice_in_one_batch_is_a_duplicate_or_a_conflict(world):
    hooks = await world.start()
    first, second, third = await hooks.accept(
        [
            Draft("order.paid", b"1", idempotency_key="k"),
            Draft("order.paid", b"1", idempotency_key="k"),
            Draft("order.paid", b"2", idempotency_key="k"),
        ]
    )
    assert isinstance(first, Published)
    assert isinstance(second, Published)
    assert (second.id, second.duplicate) == (first.id, True)
    assert isinstance(third, IdempotencyConflict)


async def test_an_event_for_more_endpoints_than_allowed_is_refused_and_the_others_are_not(world):
    hooks = await world.start(deliveries_per_event=2)
    for _ in range(3):
        await hooks.create_endpoint(url="http://127.0.0.1:9999/", events=["many"])
    refused, accepted = await hooks.accept([Draft("many", b"1"), Draft("few", b"1")])
    assert isinstance(refused, Invalid)
    assert refused.code == "fanout_limit"
    assert isinstance(accepted, Published)


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (b"{", Unreadable),
        (b"1 2", Unreadable),
        (b"", Unreadable),
        (b'"\xff"', Unreadable),
        (b"[" * 65 + b"]" * 65, Unreadable),
        (b'"' + b"x" * 1_048_576 + b'"', TooLarge),
        (object(), Invalid),
    ],
)
async def test_a_payload_that_is_not_one_json_value_changes_nothing(world, payload, error):
    hooks = await world.start()
    await hooks.create_endpoint(url="http://127.0.0.1:9999/", events=["*"])
    with pytest.raises(error):
        await hooks.publish("order.paid", payload)
    assert sum((await hooks.store.counts()).values()) == 0


async def test_an_endpoint_made_by_another_process_gets_the_next_event(
    shared_world: World, receiver: Receiver
):
    world = shared_world
    hooks, api = await world.start(), await world.start(deliver=False)
    await api.create_endpoint(url=receiver.url(), events=["*"])
    event = await hooks.publish("order.paid", {})
    assert event.deliveries == 1, "although no pulse has told this process yet"
    await world.until_state(hooks, event.id, State.DELIVERED)


async def test_a_key_of_before_is_compared_with_each_draft_of_a_batch_that_names_it(world: World):
    hooks = await world.start()
    right = Draft("order.paid", b"1", idempotency_key="key")
    wrong = Draft("order.paid", b"2", idempotency_key="key")
    (first,) = await hooks.accept([right])
    refused, again = await hooks.accept([wrong, right])
    assert isinstance(refused, IdempotencyConflict)
    assert (again.id, again.duplicate) == (first.id, True)


async def test_a_hookline_that_was_never_started_says_so_and_stores_nothing(world: World, database: str):
    running = await world.start()
    idle = Hookline(database)
    async with asyncio.timeout(120):  # on PostgreSQL it stored the event, and waited for itself
        with pytest.raises(StoreUnavailable, match="inside `async with`"):
            await idle.publish("order.paid", {})
        with pytest.raises(StoreUnavailable, match="inside `async with`"):
            await idle.create_endpoint(url="https://example.com/", events=["*"])
    assert (await running.store.list_events(EventFilter(), after=None, limit=5)) == []


async def test_a_time_that_is_none_is_refused(world: World):
    hooks = await world.start()
    for moment in ("2030-01-01T00:00:00Z", 1_900_000_000, datetime(2030, 1, 1)):  # noqa: DTZ001 - without a zone
        with pytest.raises(Invalid, match="deliver_at is a datetime with a zone"):
            await hooks.publish("order.paid", {}, deliver_at=moment)
