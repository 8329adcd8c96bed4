"""The flow is counted from the newest events and the stored minutes, of one account or of all."""

from random import Random

import pytest

from contract.test_board import a_day
from contract.test_health_reads import write_minutes
from factories import NOW, a_publication
from hookline.ids import Ids
from hookline.model import DEFAULT_ACCOUNT
from hookline.store.contract import EVERY_ENDPOINT
from hookline.store.contract.measuring.flow import CountedEvents, MinuteAttempts
from hookline.testing.clock import ManualClock
from scenes import a_lane_in, accepted

pytestmark = pytest.mark.anyio

MINUTE = 60.0


async def test_events_are_counted_from_one_id_to_before_another(store):
    made = Ids(ManualClock(NOW), Random(1))
    lane = await a_lane_in(store, account="acme")
    ids = [made.event() for _ in range(9)]
    names = ["acme", "acme", DEFAULT_ACCOUNT] * 3
    events = [a_publication(lane, id=id, account=name) for id, name in zip(ids, names, strict=True)]
    await accepted(store, *events)

    async def counted(limit=100, account=None):
        return await store.count_events(first=ids[1], beyond=ids[8], limit=limit, account=account)

    assert await counted() == CountedEvents(7, is_more=False)
    assert await counted(limit=7) == CountedEvents(7, is_more=False)
    assert await counted(limit=6) == CountedEvents(6, is_more=True)
    assert await counted(account="acme") == CountedEvents(5, is_more=False)
    assert await counted(account="acme", limit=4) == CountedEvents(4, is_more=True)
    assert await counted(account=DEFAULT_ACCOUNT) == CountedEvents(2, is_more=False)
    assert await counted(account="nobody") == CountedEvents(0, is_more=False)


async def test_minutes_are_summed_over_the_endpoints_of_an_account(store):
    mine, also_mine, other = [await a_lane_in(store, account=name) for name in ("acme", "acme", "other")]
    write_minutes(
        store,
        [
            (EVERY_ENDPOINT, NOW, 1.0, 60, 50),
            (EVERY_ENDPOINT, NOW + MINUTE, 1.0, 6, 6),
            (EVERY_ENDPOINT, NOW + 2 * MINUTE, 1.0, 1, 1),
            (mine, NOW - MINUTE, 1.0, 100, 100),
            (mine, NOW, 1.0, 10, 5),
            (also_mine, NOW, 1.0, 20, 20),
            (also_mine, NOW + MINUTE, 1.0, 6, 6),
            (other, NOW, 1.0, 30, 25),
        ],
    )

    async def minutes(account=None):
        return await store.minute_attempts(since=NOW, until=NOW + 2 * MINUTE, account=account)

    assert await minutes() == [MinuteAttempts(NOW, 60, 50), MinuteAttempts(NOW + MINUTE, 6, 6)]
    assert await minutes("acme") == [MinuteAttempts(NOW, 30, 25), MinuteAttempts(NOW + MINUTE, 6, 6)]
    assert await minutes("other") == [MinuteAttempts(NOW, 30, 25)]
    assert await minutes("nobody") == []


async def test_the_busiest_endpoints_are_those_of_the_account_alone(store):
    first, second, third, silent = [await a_lane_in(store, account="acme") for _ in range(4)]
    other = await a_lane_in(store, account="other")
    days = {first: 5, second: 9, third: 5, other: 100}
    await store.write_latency_days([a_day(id, attempts=number) for id, number in days.items()])
    assert await store.busiest_endpoints(account="acme", limit=9) == [second, first, third, silent]
    assert await store.busiest_endpoints(account="acme", limit=2) == [second, first]
    assert await store.busiest_endpoints(account="nobody", limit=2) == []
