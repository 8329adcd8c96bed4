"""Which events a list shows, with the states of their deliveries and their attempts."""

import itertools
from random import Random

import pytest

from factories import NOW, a_publication, a_settlement, an_attempt
from hookline.ids import Ids, delivery_of
from hookline.model import State
from hookline.store.contract.events import SHOWN_PAYLOAD_BYTES, EventFilter
from hookline.testing.clock import ManualClock
from scenes import accepted, an_owned_lane, died, settled

pytestmark = pytest.mark.anyio

ACCOUNTS = ("default", "one", "two")
TYPES = ("a", "b.c")


@pytest.fixture
async def events(store):
    """Events of every account and type with and without a key, a minute apart, newest first."""
    clock = ManualClock(NOW)
    ids = Ids(clock, Random(0))
    publications = []
    for n, (account, type, key) in enumerate(itertools.product(ACCOUNTS, TYPES, (None, "key", "other"))):
        clock.advance(60.0)
        key = None if key is None else f"{key}-{type}"
        publication = a_publication(
            id=ids.event(),
            account=account,
            type=type,
            idempotency_key=key,
            created_at=clock.now(),
            deliver_at=None if n % 2 else clock.now() + 5,
            payload=b'"%d"' % n,
        )
        publications.append(publication)
    # Not in the order of their ids: a list goes by id, not by the order of insertion.
    await accepted(store, *reversed(publications))
    return [publication.event for publication in reversed(publications)]


def matches(event, filter):
    return (
        filter.account in (None, event.account)
        and filter.type in (None, event.type)
        and filter.idempotency_key in (None, event.idempotency_key)
        and (filter.since is None or event.created_at >= filter.since)
        and (filter.until is None or event.created_at < filter.until)
    )


def filters(events):
    """Every combination of the filters, each on or off."""
    times = ((None, None), (events[9].created_at, None), (None, events[4].created_at))
    for account, type, key, (since, until) in itertools.product(
        (None, *ACCOUNTS, "nobody"),
        (None, "a", "a.b"),
        (None, "key-a", "key-b.c", "unknown"),
        (*times, (events[9].created_at, events[4].created_at)),
    ):
        yield EventFilter(account=account, type=type, idempotency_key=key, since=since, until=until)


async def test_every_combination_of_filters_shows_what_matches_newest_first(store, events):
    shown = 0
    for filter in filters(events):
        expected = [event.id for event in events if matches(event, filter)]
        found = await store.list_events(filter, after=None, limit=100)
        assert [event.id for event in found] == expected, filter
        shown += len(found)
    assert shown


async def test_pages_join_without_gap_or_overlap_under_every_filter(store, events):
    for filter in filters(events):
        expected = [event.id for event in events if matches(event, filter)]
        got, after = [], None
        while page := await store.list_events(filter, after=after, limit=2):
            assert len(page) <= 2
            got += [event.id for event in page]
            after = page[-1].id
        assert got == expected, filter


async def test_a_listed_event_has_everything_the_event_has(store, events):
    listed = await store.list_events(EventFilter(), after=None, limit=100)
    for event, shown in zip(events, listed, strict=True):
        assert (shown.account, shown.type, shown.payload, shown.payload_bytes) == (
            event.account,
            event.type,
            event.payload,
            len(event.payload),
        )
        assert (shown.idempotency_key, shown.deliver_at, shown.created_at) == (
            event.idempotency_key,
            event.deliver_at,
            event.created_at,
        )


async def test_a_large_payload_is_left_out_and_its_size_told(store):
    payloads = [b'"%b"' % (b"x" * (size - 2)) for size in (SHOWN_PAYLOAD_BYTES, SHOWN_PAYLOAD_BYTES + 1)]
    await accepted(store, *(a_publication(payload=payload) for payload in payloads))
    listed = await store.list_events(EventFilter(), after=None, limit=100)
    assert sorted((event.payload_bytes, event.payload) for event in listed if event.payload) == [
        (SHOWN_PAYLOAD_BYTES, payloads[0])
    ]
    assert [event.payload_bytes for event in listed if event.payload is None] == [SHOWN_PAYLOAD_BYTES + 1]


async def test_deliveries_are_counted_by_state_for_each_event(store):
    lanes = [await an_owned_lane(store) for _ in range(4)]
    to_all = a_publication(*(lane.endpoint_id for _, lane in lanes))
    to_one, to_none = a_publication(lanes[0][1].endpoint_id), a_publication()
    await accepted(store, to_all, to_one, to_none)
    (worker, lane), (second_worker, second_lane) = lanes[:2]
    await settled(store, worker, lane, delivery_of(to_all.event.id, 0))
    await died(store, second_worker, second_lane, delivery_of(to_all.event.id, 1))
    await store.cancel(delivery_of(to_all.event.id, 2), now=NOW)
    found = await store.count_by_state([event.event.id for event in (to_all, to_one, to_none)])
    assert found == {
        to_all.event.id: dict.fromkeys(State, 1),
        to_one.event.id: {**dict.fromkeys(State, 0), State.PENDING: 1},
        to_none.event.id: dict.fromkeys(State, 0),
    }
    assert await store.count_by_state([]) == {}


async def test_the_attempts_of_an_event_are_those_of_all_its_deliveries_newest_first(store):
    lanes = [await an_owned_lane(store) for _ in range(2)]
    publication, other = (a_publication(*(lane.endpoint_id for _, lane in lanes)) for _ in range(2))
    await accepted(store, publication, other)
    made = []
    for each in (publication, other):
        for ordinal, (worker, lane) in enumerate(lanes):
            attempt = an_attempt(delivery_of(each.event.id, ordinal))
            settlement = a_settlement(
                attempt.delivery_id, lane.endpoint_id, epoch=lane.epoch, attempt=attempt
            )
            await store.settle(worker, [settlement], now=NOW)
            if each is publication:
                made.append(attempt)
    expected = sorted(made, key=lambda attempt: attempt.id, reverse=True)
    assert await store.list_attempts(publication.event.id, after=None, limit=10) == expected
    assert await store.list_attempts(publication.event.id, after=None, limit=1) == expected[:1]
    assert await store.list_attempts(publication.event.id, after=expected[0].id, limit=10) == expected[1:]
    assert await store.list_attempts(publication.event.id, after=expected[1].id, limit=10) == []
