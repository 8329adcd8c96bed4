"""Deliveries are counted by state."""

import pytest

from factories import NOW
from hookline.model import State
from scenes import in_state, published

pytestmark = pytest.mark.anyio


async def test_an_empty_store_counts_nothing(store):
    assert await store.counts() == dict.fromkeys(State, 0)


async def test_deliveries_are_counted_by_state(store):
    wanted = {State.PENDING: 3, State.DELIVERED: 4, State.DEAD: 2, State.CANCELLED: 1}
    for state, number in wanted.items():
        for _ in range(number):
            _, lane, _ = await in_state(store, state)
    await published(store, lane.endpoint_id, deliver_at=NOW + 60)
    assert await store.counts() == wanted | {State.PENDING: 4}
