"""What is stored of event types, and which processes learn of a change."""

import pytest

from factories import NOW, a_publication, an_event_type
from hookline.store.contract import Acceptance, Change
from hookline.store.contract.workers import NO_ENDPOINT
from scenes import a_lane_in

pytestmark = pytest.mark.anyio

SCHEMA = '{"type":"object","required":["id","\\u0000"]}'


async def test_a_described_type_is_read_as_it_was_written(store):
    described = an_event_type(schema=SCHEMA, description="Paid in full")
    assert await store.put_event_type(described, now=NOW) == described
    assert await store.event_type("order.paid") == described
    assert await store.event_type("order.Paid") is None


async def test_describing_a_type_anew_replaces_everything_but_when_it_first_was(store):
    await store.put_event_type(an_event_type(schema=SCHEMA, description="old"), now=NOW)
    anew = an_event_type(created_at=NOW + 5, updated_at=NOW + 5)
    kept = await store.put_event_type(anew, now=NOW + 5)
    assert kept == an_event_type(created_at=NOW, updated_at=NOW + 5)
    assert await store.event_types() == [kept]


async def test_types_are_listed_by_the_bytes_of_their_names(store):
    for name in ("b", "a.b", "_x", "B", "a", "a_b"):
        await store.put_event_type(an_event_type(name=name), now=NOW)
    assert [each.name for each in await store.event_types()] == ["B", "_x", "a", "a.b", "a_b", "b"]
    assert [each.name for each in await store.event_types(after="_x", limit=2)] == ["a", "a.b"]
    assert await store.event_types(after="b", limit=2) == []


async def test_a_deleted_type_is_gone_and_deleting_it_again_says_so(store):
    await store.put_event_type(an_event_type(), now=NOW)
    assert await store.delete_event_type("order.paid", now=NOW)
    assert not await store.delete_event_type("order.paid", now=NOW)
    assert await store.event_types() == []


async def test_each_change_of_a_type_is_numbered_and_what_changed_nothing_is_not(store):
    await store.put_event_type(an_event_type(), now=NOW)
    await store.put_event_type(an_event_type(), now=NOW)
    await store.delete_event_type("order.paid", now=NOW)
    await store.delete_event_type("order.paid", now=NOW)
    expected = tuple(Change(n, NO_ENDPOINT, "event_type") for n in (1, 2, 3))
    assert (await store.pulse(seen=0)).changes == expected
    assert (await store.catalogue()).n == 3


@pytest.mark.parametrize("verb", ["put", "delete"])
async def test_nothing_is_written_when_a_type_changed_meanwhile(store, verb):
    lane = await a_lane_in(store)
    await store.put_event_type(an_event_type(), now=NOW)
    seen = (await store.catalogue()).n
    if verb == "put":
        await store.put_event_type(an_event_type(schema=SCHEMA), now=NOW)
    else:
        await store.delete_event_type("order.paid", now=NOW)
    publication = a_publication(lane)
    assert await store.accept([publication], catalogue=seen, now=NOW) == Acceptance(stale=True)
    assert await store.event(publication.event.id) is None


async def test_another_process_sees_the_change(store, second_store):
    await store.put_event_type(an_event_type(), now=NOW)
    assert [change.kind for change in (await second_store.pulse(seen=0)).changes] == ["event_type"]
    assert await second_store.event_types() == [an_event_type()]
