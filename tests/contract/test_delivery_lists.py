"""Which deliveries a list shows."""

import itertools

import msgspec
import pytest

from factories import NOW, a_publication, a_settlement, an_attempt
from hookline.ids import delivery_of
from hookline.model import Reason, State
from hookline.store.contract import DeliveryFilter
from hookline.store.contract.events import EventFilter
from scenes import a_lane_in, accepted, an_owned_lane, died, settled

pytestmark = pytest.mark.anyio

ACCOUNTS = ("one", "two")
TYPES = ("a", "b")


@pytest.fixture
async def deliveries(store):
    """Deliveries in every state of every account and type, over two lanes, newest first."""
    lanes = [await an_owned_lane(store) for _ in range(2)]
    publications = []
    for n, (state, account, type) in enumerate(itertools.product(State, ACCOUNTS, TYPES)):
        publication = a_publication(
            *(lane.endpoint_id for _, lane in lanes), account=account, type=type, created_at=NOW + n
        )
        publications.append((publication, state))
    # Not in the order of their ids: a list goes by id, not by the order of insertion.
    await accepted(store, *(publication for publication, _ in reversed(publications)))
    for publication, state in publications:
        for ordinal, (worker, lane) in enumerate(lanes):
            id = delivery_of(publication.event.id, ordinal)
            if state is State.DELIVERED:
                await settled(store, worker, lane, id)
            elif state is State.DEAD:
                await died(store, worker, lane, id)
            elif state is State.CANCELLED:
                await store.cancel(id, now=NOW)
    # Each kind of life: died once and pending again, died twice, died and then delivered.
    for n, lives in enumerate((2, 3, 2)):
        publication = a_publication(lanes[n % 2][1].endpoint_id, account="two", type="b", created_at=NOW + 5)
        publications.append((publication, State.DEAD))
        await accepted(store, publication)
        id, (worker, lane) = delivery_of(publication.event.id, 0), lanes[n % 2]
        for life in range(lives - 1):
            reason = (Reason.EXHAUSTED, Reason.GONE)[life]
            await died(store, worker, lane, id, replays=life, now=NOW + 1 + life, reason=reason)
            if (n, life) != (1, 1):
                await store.redrive(id, now=NOW + 2)
    last = an_attempt(id, replays=1)
    await store.settle(worker, [a_settlement(id, lane.endpoint_id, epoch=lane.epoch, attempt=last)], now=NOW)
    ids = [delivery_of(p.event.id, n) for p, _ in publications for n in range(2)]
    found = [await store.delivery(id) for id in sorted(ids, reverse=True)]
    return [delivery for delivery in found if delivery is not None]


def matches(delivery, filter):
    death = delivery.last_death
    died_at = delivery.done_at if delivery.state is State.DEAD else death and death.at
    reason = delivery.reason
    if filter.is_replayed:
        if delivery.state is not State.PENDING or death is None:
            return False
        filter, reason = msgspec.structs.replace(filter, state=None), death.reason
    if filter.died_since is not None and (died_at is None or died_at < filter.died_since):
        return False
    if filter.died_until is not None and (died_at is None or died_at >= filter.died_until):
        return False
    return (
        filter.state in (None, delivery.state)
        and filter.reason in (None, reason)
        and filter.account in (None, delivery.account)
        and filter.endpoint_id in (None, delivery.endpoint_id)
        and filter.event_id in (None, delivery.event_id)
        and filter.event_type in (None, delivery.event_type)
        and (filter.since is None or delivery.created_at >= filter.since)
        and (filter.until is None or delivery.created_at < filter.until)
    )


def filters(deliveries):
    """Every combination of the filters, each on or off."""
    one = deliveries[7]
    for values in itertools.product(
        (None, *State),
        (None, "two", "nobody"),
        (None, one.endpoint_id),
        (None, one.event_id),
        (None, "b"),
        (None, (NOW + 3, NOW + 12)),
    ):
        state, account, endpoint, event, type, times = values
        since, until = times or (None, None)
        yield DeliveryFilter(
            state=state,
            account=account,
            endpoint_id=endpoint,
            event_id=event,
            event_type=type,
            since=since,
            until=until,
        )


def dead_letter_filters(deliveries):
    """Every combination of the filters about deaths, each on or off."""
    one = deliveries[7]
    for values in itertools.product(
        (None, State.DEAD, State.PENDING, State.CANCELLED),
        (False, True),
        (None, "two"),
        (None, one.endpoint_id),
        (None, Reason.EXHAUSTED, Reason.REJECTED),
        ((None, None), (NOW + 1, None), (None, NOW + 1), (NOW + 1, NOW + 2)),
    ):
        state, is_replayed, account, endpoint, reason, (died_since, died_until) = values
        yield DeliveryFilter(
            state=state,
            is_replayed=is_replayed,
            account=account,
            endpoint_id=endpoint,
            reason=reason,
            died_since=died_since,
            died_until=died_until,
        )


async def test_every_combination_about_deaths_shows_what_matches_newest_first(store, deliveries):
    shown = 0
    for filter in dead_letter_filters(deliveries):
        expected = [delivery for delivery in deliveries if matches(delivery, filter)]
        assert await store.list_deliveries(filter, after=None, limit=100) == expected, filter
        shown += filter.is_replayed and bool(expected)
    assert shown  # the fixture has replayed ones


async def test_dead_letters_are_counted_under_every_filter(store, deliveries):
    for filter in (*filters(deliveries), *dead_letter_filters(deliveries)):
        if filter.state in (None, State.DEAD) and not filter.is_replayed:
            dead = msgspec.structs.replace(filter, state=State.DEAD)
            expected = sum(matches(delivery, dead) for delivery in deliveries)
            assert await store.count_dead(filter) == expected, filter


async def test_every_combination_of_filters_shows_what_matches_newest_first(store, deliveries):
    for filter in filters(deliveries):
        expected = [delivery for delivery in deliveries if matches(delivery, filter)]
        assert await store.list_deliveries(filter, after=None, limit=100) == expected, filter


async def test_pages_join_without_gap_or_overlap_under_every_filter(store, deliveries):
    for filter in filters(deliveries):
        expected = [delivery for delivery in deliveries if matches(delivery, filter)]
        got, after = [], None
        while page := await store.list_deliveries(filter, after=after, limit=3):
            assert len(page) <= 3
            got += page
            after = page[-1].id
        assert got == expected, filter


async def test_an_empty_store_lists_nothing(store):
    assert await store.list_deliveries(DeliveryFilter(), after=None, limit=10) == []


async def test_what_matches_is_found_however_many_others_lie_above_it(store):
    lane, other = await a_lane_in(store), await a_lane_in(store)
    rare = []
    for _ in range(4):
        rare.append(a_publication(lane, account="one", type="rare"))
        wide = [a_publication(lane, other, account="one") for _ in range(600)]
        nobodys = [a_publication(account="one") for _ in range(600)]
        await accepted(store, rare[-1], *wide, *nobodys)
    expected = [each.event.id for each in reversed(rare)]
    for fields in (
        {},
        {"account": "one"},
        {"endpoint_id": lane},
        {"endpoint_id": lane, "state": State.PENDING},
        {"state": State.PENDING},
        {"state": State.PENDING, "account": "one"},
    ):
        asked = DeliveryFilter(**fields, event_type="rare")
        found = await store.list_deliveries(asked, after=None, limit=4)
        assert [each.event_id for each in found] == expected, fields
        rest = await store.list_deliveries(asked, after=found[0].id, limit=4)
        assert rest == found[1:], fields
        assert await store.list_deliveries(asked, after=found[3].id, limit=4) == [], fields
        none = DeliveryFilter(**fields, event_type="none")
        assert await store.list_deliveries(none, after=None, limit=4) == [], fields
    for account in (None, "one"):
        events = await store.list_events(EventFilter(account=account, type="rare"), after=None, limit=4)
        assert [each.id for each in events] == expected
