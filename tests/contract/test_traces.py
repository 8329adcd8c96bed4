"""The store keeps the trace that an event belongs to."""

import pytest

from factories import NOW, a_publication
from hookline.store.contract import Want
from scenes import a_lane_in, accepted

pytestmark = pytest.mark.anyio

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 a=1"


@pytest.mark.parametrize("traces", [[None], [TRACE], [None, TRACE, None], [None] * 300 + [TRACE]])
async def test_the_trace_of_an_event_comes_back_with_it_and_its_deliveries(store, traces):
    lane = await a_lane_in(store)
    publications = [a_publication(lane, trace=trace, hops=n % 2) for n, trace in enumerate(traces)]
    await accepted(store, *publications)
    loaded = await store.load([Want(lane, len(traces), 0)], known=[], now=NOW)
    assert [delivery.trace for delivery in loaded] == traces
    for publication in publications[-4:]:
        assert await store.event(publication.event.id) == publication.event


async def test_a_repeat_of_the_same_batch_keeps_it(store):
    lane = await a_lane_in(store)
    publication = a_publication(lane, trace=TRACE, idempotency_key="k", digest=b"d")
    for _ in range(2):
        await accepted(store, publication)
    [loaded] = await store.load([Want(lane, 5, 0)], known=[], now=NOW)
    assert loaded.trace == TRACE
