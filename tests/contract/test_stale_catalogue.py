"""When an event must be fanned out again."""

import pytest
from msgspec.structs import replace

from factories import NOW, a_publication
from hookline.store.contract import Acceptance
from scenes import a_lane_in, accepted, an_endpoint_in, published

pytestmark = pytest.mark.anyio

STALE = Acceptance(stale=True)


async def test_nothing_is_written_when_an_endpoint_came_meanwhile(store):
    lane = await a_lane_in(store)
    seen = (await store.catalogue()).n
    await a_lane_in(store)
    publication = a_publication(lane, idempotency_key="k")
    assert await store.accept([publication], catalogue=seen, now=NOW) == STALE
    assert await store.event(publication.event.id) is None
    assert (await accepted(store, publication)).priors == {}


async def test_nothing_is_written_when_an_endpoint_changed_meanwhile(store):
    endpoint = await an_endpoint_in(store)
    seen = (await store.catalogue()).n
    await store.update_endpoint(endpoint, was=endpoint.updated_at, now=NOW)
    assert await store.accept([a_publication(endpoint.id)], catalogue=seen, now=NOW) == STALE


async def test_nothing_is_written_when_an_endpoint_went_meanwhile(store):
    endpoint = await an_endpoint_in(store)
    seen = (await store.catalogue()).n
    await store.delete_endpoint(endpoint.id, now=NOW)
    assert await store.accept([a_publication(endpoint.id)], catalogue=seen, now=NOW) == STALE


async def test_changed_deliveries_make_nothing_stale(store):
    lane = await a_lane_in(store)
    seen = (await store.catalogue()).n
    await store.cancel(await published(store, lane), now=NOW)
    acceptance = await store.accept([a_publication(lane)], catalogue=seen, now=NOW)
    assert not acceptance.stale


async def test_a_batch_that_was_written_before_an_endpoint_changed_is_answered_as_the_first_time(store):
    lane = await a_lane_in(store)
    seen = (await store.catalogue()).n
    batch = [a_publication(lane, idempotency_key="k"), a_publication(lane)]
    first = await store.accept(batch, catalogue=seen, now=NOW)
    await a_lane_in(store)
    repeats = frozenset(each.event.id for each in batch)
    assert await store.accept(batch, catalogue=seen, now=NOW) == replace(first, repeats=repeats)


async def test_a_batch_of_which_only_a_part_was_written_is_stale(store):
    lane = await a_lane_in(store)
    seen = (await store.catalogue()).n
    old, new = a_publication(lane), a_publication(lane)
    await store.accept([old], catalogue=seen, now=NOW)
    await a_lane_in(store)
    assert await store.accept([old, new], catalogue=seen, now=NOW) == STALE
    assert await store.event(new.event.id) is None
