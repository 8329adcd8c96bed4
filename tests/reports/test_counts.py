"""Nothing is counted more often than needed."""

import asyncio

import pytest

from hookline.errors import StoreUnavailable
from hookline.reports.counts import GOOD_FOR, GOOD_FOR_TIMES, MOST_ACCOUNTS, Counted, Figures, Newest
from hookline.store.contract.figures import Bloat, Conservation
from hookline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio


class Slow:
    """A store that takes its time to count, and has one delivery more each time."""

    def __init__(self, clock):
        self.clock = clock
        self.took = 0.0
        self.counts = []
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def conservation(self, *, account=None):
        self.counts.append(account)
        self.was_asked.set()
        number = len(self.counts)
        await self.may_answer.wait()
        self.clock.advance(self.took)
        return Conservation(pending=number)

    async def oldest_pending(self):
        self.counts.append("pending")

    async def oldest_due(self, *, now):
        self.counts.append("due")

    async def circuits_open(self):
        self.counts.append("circuits")
        return 0

    async def outbox_sources(self):
        self.counts.append("outboxes")
        return []

    async def count_refused(self):
        self.counts.append("refused")
        return []

    async def bloat(self):
        return Bloat(log_bytes=7)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(clock):
    return Slow(clock)


@pytest.fixture
def figures(store, clock):
    return Figures(store, clock)


async def test_what_was_counted_is_good_for_a_while_and_says_when_it_was_right(figures, store, clock):
    began = clock.now()
    assert await figures.conservation() == Counted(Conservation(pending=1), began)
    clock.advance(GOOD_FOR - 0.001)
    assert await figures.conservation() == Counted(Conservation(pending=1), began)
    clock.advance(0.001)
    assert await figures.conservation() == Counted(Conservation(pending=2), clock.now())


async def test_what_takes_long_to_count_is_good_for_longer(figures, store, clock):
    store.took = 2.0
    await figures.conservation()
    clock.advance(GOOD_FOR_TIMES * store.took - 0.001)
    await figures.conservation()
    assert len(store.counts) == 1
    clock.advance(0.001)
    await figures.conservation()
    assert len(store.counts) == 2


async def test_those_who_ask_at_once_wait_for_one_count(figures, store):
    store.may_answer.clear()
    asking = [asyncio.create_task(figures.conservation()) for _ in range(10)]
    await store.was_asked.wait()
    store.may_answer.set()
    assert {counted.value.pending for counted in await asyncio.gather(*asking)} == {1}
    assert len(store.counts) == 1


async def test_accounts_are_counted_apart_and_only_so_many_are_remembered(figures, store):
    for account in ("a", "b", "a", None):
        await figures.conservation(account)
    assert store.counts == ["a", "b", None]
    for number in range(MOST_ACCOUNTS - 1):
        await figures.conservation(f"n{number}")
    await figures.conservation("a")  # asked for again meanwhile: not the one that was forgotten
    assert store.counts[-1] != "a"
    await figures.conservation("b")
    assert store.counts[-1] == "b"


async def test_a_count_that_failed_is_tried_again_by_the_next_who_asks(figures, store):
    real = store.conservation

    async def refuse(*, account=None):
        raise StoreUnavailable("away")

    store.conservation = refuse
    with pytest.raises(StoreUnavailable):
        await figures.conservation()
    store.conservation = real
    assert (await figures.conservation()).value == Conservation(pending=1)


async def test_metrics_get_what_is_known_and_a_slow_count_goes_on_for_later(figures, store, clock):
    store.may_answer.clear()
    assert await clock.pass_until(figures.newest(within=1.0)) == Newest(
        conservation=None, health=None, bloat=Bloat(log_bytes=7)
    )
    counted_at = clock.now()
    store.may_answer.set()
    newest = await clock.pass_until(figures.newest(within=1.0))
    assert newest.conservation.value == Conservation(pending=1)
    assert newest.health.pending == 1
    assert newest.health.at == newest.conservation.as_of < counted_at
    asked = [None, "outboxes", "pending", "due", "circuits", "refused"]
    assert store.counts == asked, "one count for all who asked"


async def test_metrics_keep_the_last_figures_when_the_store_is_away(figures, store, clock):
    before = await figures.newest(within=1.0)
    clock.advance(GOOD_FOR)

    async def refuse(*, account=None):
        raise StoreUnavailable("away")

    store.conservation = refuse
    assert await figures.newest(within=1.0) == before


async def test_a_count_that_goes_on_ends_with_the_process(figures, store, clock):
    store.may_answer.clear()
    before = asyncio.all_tasks()
    await clock.pass_until(figures.newest(within=1.0))
    assert asyncio.all_tasks() > before, "it goes on"
    await figures.close()
    assert asyncio.all_tasks() == before
