"""A free strict lane whose head an operator moved is taken at once."""

import msgspec
import pytest

from factories import NOW, a_publication
from hookline.ids import delivery_of
from hookline.model import Ordering
from hookline.store.contract import Release
from scenes import a_note, a_worker_in, an_owned_lane

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("verb", ["cancel", "retry"])
async def test_a_lane_that_waits_for_its_head_is_found_when_the_head_is_moved(store, verb):
    worker, lane = await an_owned_lane(store, ordering=Ordering.STRICT)
    publication = a_publication(lane.endpoint_id)
    n = (await store.catalogue()).n
    await store.accept([publication], catalogue=n, now=NOW)
    head = delivery_of(publication.event.id, 0)
    note = msgspec.structs.replace(a_note(lane, hold_until=NOW + 600), head=head)
    assert await store.note(worker, [note], now=NOW)
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW + 600)], now=NOW)
    await store.wake([lane.endpoint_id], now=NOW)
    finder = await a_worker_in(store)
    assert await store.take(finder, limit=10, now=NOW + 1) == []
    await getattr(store, verb)(head, now=NOW + 1)
    assert [taken.endpoint_id for taken in await store.take(finder, limit=10, now=NOW + 1)] == [
        lane.endpoint_id
    ]
