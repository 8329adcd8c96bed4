"""A process knows whose a key is, and learns of changes in time."""

import asyncio
import contextlib

import msgspec
import pytest

from factories import NOW, a_key
from hookline.admin.key_cache import MOST_WAITING, TRUSTED_S, KeyCache
from hookline.errors import StoreUnavailable
from hookline.model import Scope
from hookline.store.sqlite.store import SqliteStore
from hookline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio

QUIET = 10  # turns of the event loop without a read, after which nothing is under way


def revoked(key):
    return msgspec.structs.replace(key, revoked_at=NOW)


class Flaky:
    """A store that answers only while the test allows it."""

    def __init__(self, store):
        self._store = store
        self.is_up = True
        self.looks = 0
        self.is_reading = False
        self.flow = None  # an event to wait for before an answer

    async def changed_keys(self, *, after):
        self.looks += 1
        if not self.is_up:
            raise StoreUnavailable("It does not answer.")
        self.is_reading = True
        try:
            found = await self._store.changed_keys(after=after)
        finally:
            self.is_reading = False
        if self.flow is not None:
            await self.flow.wait()
        return found


class Ring:
    """A key cache at work on a clock that the test moves."""

    def __init__(self, store, clock):
        self.store = store
        self.clock = clock
        self.flaky = Flaky(store)
        self.key_cache = KeyCache(self.flaky, clock)
        self.forgotten = 0
        self.key_cache.on_change = self._forget

    def _forget(self):
        self.forgotten += 1

    async def passes(self, seconds, *, until=lambda: False):
        """Let time pass in small steps; each waits for the work it starts."""
        for _ in range(round(seconds / 0.05)):
            if until():
                return
            self.clock.advance(0.05)
            await self._rest()

    async def _rest(self):
        quiet = 0
        while quiet < QUIET:
            await asyncio.sleep(0.001 if self.flaky.is_reading else 0)
            quiet = 0 if self.flaky.is_reading else quiet + 1

    async def ends(self, work):
        task = asyncio.ensure_future(work)
        async with asyncio.timeout(120):
            while not task.done():
                await self.passes(0.05)
        return await task


@pytest.fixture
async def ring(sqlite_path):
    clock = ManualClock()
    store = SqliteStore(str(sqlite_path), clock=clock)
    await store.open()
    ring = Ring(store, clock)
    running = asyncio.create_task(ring.key_cache.run())
    yield ring
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await store.close()


async def test_nothing_is_read_before_somebody_asks_for_keys(ring):
    await ring.passes(5)
    assert ring.flaky.looks == 0


async def test_a_key_made_elsewhere_is_found_by_whoever_waits_for_a_look(ring):
    ring.key_cache.use()
    await ring.ends(ring.key_cache.refresh())
    key = a_key(scopes=(Scope.PUBLISH,), account="acme")
    await ring.store.create_key(key)
    assert ring.key_cache.find(key.digest) is None
    await ring.ends(ring.key_cache.refresh())
    caller = ring.key_cache.find(key.digest)
    assert (caller.account, caller.key_id, caller.may_publish) == ("acme", key.id, True)
    assert [scope for scope in Scope if caller.may(scope)] == [Scope.PUBLISH]


async def test_a_key_revoked_elsewhere_is_gone_within_five_seconds(ring):
    key = a_key()
    await ring.store.create_key(key)
    ring.key_cache.use()
    await ring.ends(ring.key_cache.refresh())
    await ring.store.revoke_key(key.id, now=NOW)
    before = ring.forgotten
    await ring.passes(5, until=lambda: ring.key_cache.find(key.digest) is None)
    assert ring.key_cache.find(key.digest) is None
    assert ring.key_cache.is_revoked(key.digest)
    assert ring.forgotten > before


async def test_a_key_is_known_at_once_to_the_process_that_made_it(ring):
    key = a_key()
    ring.key_cache.learn(key)
    assert ring.key_cache.find(key.digest).key_id == key.id
    ring.key_cache.learn(revoked(key))
    assert ring.key_cache.find(key.digest) is None


async def test_an_old_reading_does_not_bring_a_revoked_key_back(ring):
    key = a_key()
    ring.key_cache.learn(key)
    ring.key_cache.learn(revoked(key))
    ring.key_cache.learn(key)
    assert ring.key_cache.find(key.digest) is None
    assert ring.key_cache.is_revoked(key.digest)


async def test_a_copy_that_cannot_be_compared_is_distrusted_before_five_seconds_are_over(ring):
    ring.key_cache.use()
    await ring.ends(ring.key_cache.refresh())
    ring.flaky.is_up = False
    lost_at, before = ring.clock.monotonic(), ring.forgotten
    await ring.passes(6, until=lambda: ring.forgotten > before)
    assert TRUSTED_S - 1 < ring.clock.monotonic() - lost_at < 5
    assert not ring.key_cache.is_trusted()
    with pytest.raises(StoreUnavailable):
        await ring.ends(ring.key_cache.refresh())
    ring.flaky.is_up = True
    await ring.ends(ring.key_cache.refresh())
    assert ring.key_cache.is_trusted()


async def test_however_many_wait_there_are_ten_looks_a_second_at_most(ring):
    ring.key_cache.use()
    await ring.ends(ring.key_cache.refresh())
    before = ring.flaky.looks

    async def ask():
        while True:
            await ring.key_cache.refresh()

    asking = [asyncio.create_task(ask()) for _ in range(50)]
    await ring.passes(3)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert 10 <= ring.flaky.looks - before <= 31


async def test_who_comes_during_a_look_waits_for_the_next_one(ring):
    ring.key_cache.use()
    await ring.ends(ring.key_cache.refresh())
    ring.flaky.flow = asyncio.Event()
    looks = ring.flaky.looks
    await ring.passes(3, until=lambda: ring.flaky.looks > looks)
    key = a_key()
    await ring.store.create_key(key)
    waiting = asyncio.create_task(ring.key_cache.refresh())
    ring.flaky.flow.set()
    await ring.ends(waiting)
    assert ring.key_cache.find(key.digest) is not None


async def test_more_callers_than_may_wait_are_not_kept_waiting(ring):
    waiting = [asyncio.create_task(ring.key_cache.refresh()) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    await asyncio.wait_for(ring.key_cache.refresh(), 30)
    assert not any(task.done() for task in waiting)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_who_waits_when_it_stops_is_told(sqlite_path):
    clock = ManualClock()
    key_cache = KeyCache(SqliteStore(str(sqlite_path), clock=clock), clock)  # not open: the first look fails
    key_cache.use()
    running = asyncio.create_task(key_cache.run())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(key_cache.refresh())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(StoreUnavailable, match="stopping"):
        await asyncio.wait_for(waiting, 120)
    with contextlib.suppress(asyncio.CancelledError):
        await running
