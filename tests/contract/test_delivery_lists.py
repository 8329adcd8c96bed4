"""Which deliveries does a list show?"""

import itertools

import pytest

from factories import NOW, a_publication
from hookline.ids import delivery_of
from hookline.model import State
from hookline.store.contract import DeliveryFilter
from scenes import accepted, an_owned_lane, died, settled

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
    # Not in the order of their ids: a list goes by id, not by when a row came.
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
    ids = [delivery_of(p.event.id, n) for p, _ in publications for n in range(2)]
    return [await store.delivery(id) for id in sorted(ids, reverse=True)]


def matches(delivery, filter):
    return (
        filter.state in (None, delivery.state)
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
