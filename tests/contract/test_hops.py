"""The store keeps how often an event was forwarded."""

import pytest

from factories import NOW, a_publication
from hookline.store.contract import Want
from scenes import a_lane_in, accepted

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("all_hops", [[0], [2], [0, 3, 0, 1], [0] * 300 + [2]])
async def test_the_hops_of_an_event_come_back_with_it_and_its_deliveries(store, all_hops):
    lane = await a_lane_in(store)
    publications = [a_publication(lane, hops=hops) for hops in all_hops]
    await accepted(store, *publications)
    loaded = await store.load([Want(lane, len(all_hops), 0)], known=[], now=NOW)
    assert [delivery.hops for delivery in loaded] == all_hops
    for publication in publications[-4:]:
        assert await store.event(publication.event.id) == publication.event


async def test_a_repeat_of_the_same_batch_keeps_them(store):
    lane = await a_lane_in(store)
    publication = a_publication(lane, hops=2, idempotency_key="k", digest=b"d")
    for _ in range(2):
        await accepted(store, publication)
    [loaded] = await store.load([Want(lane, 5, 0)], known=[], now=NOW)
    assert loaded.hops == 2
