"""One step of a list reads little of an SQLite file, even when nothing matches.

It is counted in instructions of SQLite's virtual machine, which are the same everywhere. All reads share one
connection: while one step runs, every other call waits.
"""

import pytest

from factories import NOW, a_job, a_publication
from hookline.model import Reason, State
from hookline.store.contract import DeliveryFilter
from hookline.store.contract.events import EventFilter
from hookline.store.sqlite.driver.writer import Inline
from hookline.store.sqlite.measuring.deaths import STEP_ROWS
from hookline.store.sqlite.store import SqliteStore
from scenes import a_lane_in, accepted

pytestmark = pytest.mark.anyio

EVENTS = 12_000
MOST_INSTRUCTIONS = 200_000  # a hundred for each row that a step may read: two searches and some comparisons

DIED = {
    "dead": "UPDATE deliveries SET state = 'dead', reason = 'rejected', done_at = 1",
    "cancelled": "UPDATE deliveries SET state = 'cancelled', reason = 'cancelled', done_at = 1",
    "delivered": "UPDATE deliveries SET state = 'delivered', done_at = 1",
    "replayed": "UPDATE deliveries SET death_at = 1, death_reason = 'rejected'",
    "pending": "UPDATE deliveries SET queue = iif(seq % 2, 'ready', 'timed')",
}


class Counting(Inline):
    """Counts the instructions of every piece of work."""

    steps: list[int]

    async def run(self, work, *, transacts=True):
        count = 0

        def tell():
            nonlocal count
            count += 1

        self._connection.set_progress_handler(tell, 100)
        try:
            return await super().run(work, transacts=transacts)
        finally:
            self._connection.set_progress_handler(None, 0)
            Counting.steps.append(count * 100)


@pytest.fixture
async def counted(sqlite_path):
    Counting.steps = []
    store = SqliteStore(str(sqlite_path), executor=Counting)
    await store.open()
    store.lane = await a_lane_in(store)
    for first in range(0, EVENTS, 1_000):
        number = min(1_000, EVENTS - first)
        await accepted(store, *(a_publication(store.lane, account="a", type="some") for _ in range(number)))
    Counting.steps.clear()
    yield store
    await store.close()


async def make(store, state):
    await store._write(lambda connection: connection.execute(DIED[state]))
    Counting.steps.clear()


@pytest.mark.parametrize(
    ("state", "filter"),
    [
        ("delivered", {}),
        ("delivered", {"account": "a"}),
        ("delivered", {"account": "a", "state": State.DELIVERED}),
        ("delivered", {"state": State.DELIVERED}),
        ("delivered", {"endpoint": True}),
        ("delivered", {"endpoint": True, "account": "a"}),
        ("dead", {"state": State.DEAD}),
        ("dead", {"state": State.DEAD, "account": "a"}),
        ("dead", {"state": State.DEAD, "endpoint": True}),
        ("dead", {"state": State.DEAD, "reason": Reason.EXHAUSTED}),
        ("cancelled", {"state": State.CANCELLED}),
        ("cancelled", {"state": State.CANCELLED, "endpoint": True}),
        ("replayed", {"is_replayed": True}),
        ("pending", {"state": State.PENDING}),
        ("pending", {"state": State.PENDING, "account": "a"}),
        ("pending", {"state": State.PENDING, "endpoint": True}),
    ],
)
async def test_a_list_of_deliveries_that_match_nothing_looks_at_a_few_rows_at_a_time(counted, state, filter):
    await make(counted, state)
    fields = {name: value for name, value in filter.items() if name != "endpoint"}
    endpoint = {"endpoint_id": counted.lane} if "endpoint" in filter else {}
    asked = DeliveryFilter(**fields, **endpoint, event_type="another")
    assert await counted.list_deliveries(asked, after=None, limit=51) == []
    assert len(Counting.steps) > 5
    assert max(Counting.steps) < MOST_INSTRUCTIONS


@pytest.mark.parametrize("account", [None, "a"])
async def test_a_list_of_events_that_match_nothing_looks_at_a_few_rows_at_a_time(counted, account):
    asked = EventFilter(account=account, type="another")
    assert await counted.list_events(asked, after=None, limit=51) == []
    assert len(Counting.steps) > 5
    assert max(Counting.steps) < MOST_INSTRUCTIONS


async def test_dead_letters_are_counted_a_few_at_a_time(counted):
    await make(counted, "dead")
    assert await counted.count_dead(DeliveryFilter(event_type="another")) == 0
    assert await counted.count_dead(DeliveryFilter(event_type="some")) == EVENTS
    assert max(Counting.steps) < MOST_INSTRUCTIONS


@pytest.mark.parametrize("asked", [{}, {"account": "a"}, {"account": "b"}, {"endpoint": True}])
@pytest.mark.parametrize("since", [0.0, 2.0])
async def test_causes_of_death_are_counted_a_few_dead_letters_at_a_time(counted, asked, since):
    await make(counted, "dead")
    asked = {name: counted.lane if name == "endpoint" else value for name, value in asked.items()}
    found, after = 0, None
    while True:
        step = await counted.count_deaths(since=since, after=after, **asked)
        found += sum(each.count for each in step.counts)
        if (after := step.after) is None:
            break
    # The endpoint is the default account's: letters belong to the account of their endpoint.
    assert found == (EVENTS if since == 0.0 and asked.get("account") is None else 0)
    assert len(Counting.steps) == EVENTS // STEP_ROWS + 1
    assert max(Counting.steps) < MOST_INSTRUCTIONS


async def test_a_list_of_what_is_pending_is_gathered_only_where_that_is_little(counted):
    await make(counted, "delivered")
    asked = DeliveryFilter(state=State.PENDING)
    few = [a_publication(counted.lane) for _ in range(3)]
    await accepted(counted, *few)
    Counting.steps.clear()
    found = await counted.list_deliveries(asked, after=None, limit=51)
    assert [each.event_id for each in found] == [each.event.id for each in reversed(few)]
    assert len(Counting.steps) == 1
    await make(counted, "pending")
    await counted.list_deliveries(asked, after=None, limit=51)
    assert len(Counting.steps) == 1
    assert max(Counting.steps) < MOST_INSTRUCTIONS


async def test_an_event_for_many_endpoints_is_looked_at_in_several_steps(counted):
    lanes = [counted.lane, *[await a_lane_in(counted) for _ in range(299)]]
    for _ in range(30):
        await accepted(counted, a_publication(*lanes, account="wide"))
    await make(counted, "delivered")
    for fields in ({"account": "wide"}, {"account": "wide", "state": State.DELIVERED}):
        Counting.steps.clear()
        asked = DeliveryFilter(**fields, event_type="another")
        assert await counted.list_deliveries(asked, after=None, limit=51) == []
        assert max(Counting.steps) < MOST_INSTRUCTIONS
    pages, after = [], None
    while page := await counted.list_deliveries(DeliveryFilter(account="wide"), after=after, limit=700):
        pages += [each.id for each in page]
        after = page[-1].id
    assert len(pages) == 9_000
    assert pages == sorted(set(pages), reverse=True)


async def test_a_job_counts_its_dead_letters_a_few_at_a_time(counted):
    await make(counted, "dead")
    for type, matched in (("another", 0), ("some", EVENTS)):
        job = a_job(filter=DeliveryFilter(event_type=type), created_at=NOW + 10)
        assert (await counted.create_job(job, now=NOW + 10)).matched == matched
    assert max(Counting.steps) < MOST_INSTRUCTIONS


async def test_a_page_that_is_filled_by_several_steps_is_the_same_as_by_one(counted):
    await make(counted, "delivered")
    rare = [a_publication(counted.lane, account="a", type="rare") for _ in range(3)]
    for publication in rare:
        await accepted(counted, publication)
        await accepted(counted, *(a_publication(counted.lane, account="a") for _ in range(900)))
    await make(counted, "delivered")
    for fields in ({}, {"account": "a"}, {"endpoint_id": counted.lane}, {"state": State.DELIVERED}):
        asked = DeliveryFilter(**fields, event_type="rare")
        found = await counted.list_deliveries(asked, after=None, limit=3)
        assert [each.event_id for each in found] == [each.event.id for each in reversed(rare)]
        [last] = await counted.list_deliveries(asked, after=found[1].id, limit=3)
        assert last == found[2]
    listed = await counted.list_events(EventFilter(type="rare"), after=None, limit=3)
    assert [each.id for each in listed] == [each.event.id for each in reversed(rare)]
