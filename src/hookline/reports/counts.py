"""Caches counts for reports and metrics.

Counting a million deliveries takes a moment, and monitoring asks every few seconds. A count is used for five seconds,
or for fifty times as long as it took, so that at most a fiftieth of the time is spent counting however much there is.
A caller that asks during a count waits for the same answer. Metrics wait only a moment: a locked database must not keep
monitoring from what the process knows.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, Protocol, TypeVar

import msgspec

from hookline.clock import Clock
from hookline.errors import HooklineError
from hookline.rules.outbox_state import is_stale, late_since
from hookline.store.contract.figures import Bloat, Conservation, FiguresStore
from hookline.store.contract.outbox import OutboxStore

GOOD_FOR = 5.0  # seconds
GOOD_FOR_TIMES = 50.0  # as long as it took
MOST_ACCOUNTS = 1_000  # whose figures are remembered

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Counted(msgspec.Struct, Generic[T], frozen=True):
    """A figure, and when it was right."""

    value: T
    as_of: float


class InstallationHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How the whole installation is, as one process counted it for all."""

    at: float  # when it was counted
    pending: int
    dead: int
    oldest_pending: float | None  # when it was accepted; None: nothing is pending
    oldest_due: float | None  # when it became due; None: nothing waits that is not held back
    circuits_open: int
    outbox_waiting: int = 0  # rows of all outboxes, as of their last look
    outbox_late_since: float | None = None  # the latest outbox; None: none is late
    outbox_refused: int = 0


class Newest(msgspec.Struct, frozen=True, kw_only=True):
    """The newest figures that are known; None: never counted here."""

    conservation: Counted[Conservation] | None
    health: InstallationHealth | None
    bloat: Bloat | None


class CountedStore(FiguresStore, OutboxStore, Protocol):
    """What is counted here."""


class Figures:
    """The recent counts, and how to count again."""

    def __init__(self, store: CountedStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._of_accounts: dict[str, Remembered[Conservation]] = {}
        self._bloat = Remembered(clock, self._look_at_bloat)
        self._health = Remembered(clock, self._look_at_health)
        self._of_all: Remembered[Conservation] = Remembered(clock, self._count_all)

    async def conservation(self, account: str | None = None) -> Counted[Conservation]:
        """Where all deliveries are, of one account or of all."""
        if account is None:
            return await self._of_all.get()
        found = self._of_accounts.pop(account, None)
        if found is None:
            if len(self._of_accounts) >= MOST_ACCOUNTS:
                del self._of_accounts[next(iter(self._of_accounts))]  # the one not asked for the longest
            found = Remembered(self._clock, lambda: self._store.conservation(account=account))
        self._of_accounts[account] = found
        return await found.get()

    async def newest(self, *, within: float) -> Newest:
        """All that is known, after waiting so many seconds for new counts where they are due."""
        where, health, bloat = await asyncio.gather(
            self._of_all.known(within), self._health.known(within), self._bloat.known(within)
        )
        return Newest(
            conservation=where,
            health=None if health is None else health.value,
            bloat=None if bloat is None else bloat.value,
        )

    async def close(self) -> None:
        """End the counts that nobody waits for any more."""
        for each in (self._of_all, self._health, self._bloat):
            await each.close()

    async def _count_all(self) -> Conservation:
        return await self._store.conservation()

    async def _look_at_bloat(self) -> Bloat:
        return await self._store.bloat()

    async def _look_at_health(self) -> InstallationHealth:
        where = await self._of_all.get()
        outboxes, now = await self._store.outbox_sources(), self._clock.now()
        late = [
            late_since(
                looked_at=each.looked_at,
                oldest_at=each.oldest_at,
                known_since=now,
                is_unread=is_stale(each.looked_at, now=now),
                now=now,
            )
            for each in outboxes
        ]
        return InstallationHealth(
            at=where.as_of,
            pending=where.value.pending,
            dead=where.value.dead,
            oldest_pending=await self._store.oldest_pending(),
            oldest_due=await self._store.oldest_due(now=self._clock.now()),
            circuits_open=await self._store.circuits_open(),
            outbox_waiting=sum(each.waiting for each in outboxes),
            outbox_late_since=min((each for each in late if each is not None), default=None),
            outbox_refused=sum(each.rows for each in await self._store.count_refused()),
        )


class Remembered(Generic[T]):
    """One figure."""

    def __init__(
        self,
        clock: Clock,
        count: Callable[[], Awaitable[T]],
        *,
        good_for: float = GOOD_FOR,
        good_for_times: float = GOOD_FOR_TIMES,
    ) -> None:
        self._clock = clock
        self._count = count
        self._good_for = good_for
        self._good_for_times = good_for_times
        self._counted: Counted[T] | None = None
        self._good_until = 0.0  # of the monotonic clock
        self._turn = asyncio.Lock()
        self._counting: asyncio.Task[None] | None = None  # for callers that wait only a moment
        self._ended = asyncio.Event()

    async def get(self) -> Counted[T]:
        """The last count if it is still good, else a new one."""
        async with self._turn:
            if self._is_due():
                as_of, began = self._clock.now(), self._clock.monotonic()
                self._counted = Counted(await self._count(), as_of)
                ended = self._clock.monotonic()
                self._good_until = ended + max(self._good_for, self._good_for_times * (ended - began))
            assert self._counted is not None  # noqa: S101 - counted just now, or good
            return self._counted

    async def known(self, within: float) -> Counted[T] | None:
        """The last count, or a new one if that takes only so many seconds; None: there is none yet.

        A count that takes longer goes on, for a later caller.
        """
        if self._is_due():
            if self._counting is None:
                self._ended = asyncio.Event()
                self._counting = asyncio.get_running_loop().create_task(self._count_for_later())
            await self._clock.wait(self._ended, within)
        return self._counted

    def is_good(self) -> bool:
        """Is there a count that need not be renewed yet?"""
        return not self._is_due()

    def is_counting(self) -> bool:
        """Does a count go on?"""
        return self._counting is not None

    async def close(self) -> None:
        """End the count that goes on."""
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.gather(self._counting, return_exceptions=True)

    def _is_due(self) -> bool:
        return self._counted is None or self._clock.monotonic() >= self._good_until

    async def _count_for_later(self) -> None:
        try:
            # The pulse logs a store that does not answer. What was counted before says how old it is.
            with contextlib.suppress(HooklineError):
                await self.get()
        finally:
            self._counting = None
            self._ended.set()


class RememberedByKey(Generic[K, T]):
    """Many figures of one kind, such as one for each account; those that nobody asks for are forgotten."""

    def __init__(
        self,
        clock: Clock,
        count: Callable[[K], Awaitable[T]],
        *,
        most: int,
        good_for: float = GOOD_FOR,
        good_for_times: float = GOOD_FOR_TIMES,
    ) -> None:
        self._clock = clock
        self._count = count
        self._most = most
        self._good_for = good_for
        self._good_for_times = good_for_times
        self._figures: dict[K, Remembered[T]] = {}

    def of(self, key: K) -> Remembered[T]:
        """The figure of this key."""
        found = self._figures.pop(key, None)
        if found is None:
            found = Remembered(
                self._clock,
                lambda: self._count(key),
                good_for=self._good_for,
                good_for_times=self._good_for_times,
            )
        self._figures[key] = found
        for oldest in list(self._figures)[: -self._most]:
            if not self._figures[oldest].is_counting():
                del self._figures[oldest]
        return found

    async def close(self) -> None:
        """End the counts that nobody waits for any more."""
        for each in self._figures.values():
            await each.close()
