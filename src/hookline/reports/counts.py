"""Caches counts for reports and metrics.

Counting a million deliveries takes a moment, and monitoring asks every few seconds. A count is used for five seconds,
or for fifty times as long as it took, so that at most a fiftieth of the time is spent counting however much there is.
A caller that asks during a count waits for the same answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from hookline.clock import Clock
from hookline.store.contract.figures import Bloat, Conservation, FiguresStore

GOOD_FOR = 5.0  # seconds
GOOD_FOR_TIMES = 50.0  # as long as it took
MOST_ACCOUNTS = 1_000  # whose figures are remembered

T = TypeVar("T")


class Counted(msgspec.Struct, Generic[T], frozen=True):
    """A figure, and when it was right."""

    value: T
    as_of: float


class Figures:
    """The recent counts, and how to count again."""

    def __init__(self, store: FiguresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._of_accounts: dict[str | None, Remembered[Conservation]] = {}
        self._bloat = Remembered(clock, self._look_at_bloat)
        self._due = Remembered(clock, self._count_due)

    async def conservation(self, account: str | None = None) -> Counted[Conservation]:
        """Where all deliveries are, of one account or of all."""
        found = self._of_accounts.pop(account, None)
        if found is None:
            if len(self._of_accounts) >= MOST_ACCOUNTS:
                del self._of_accounts[next(iter(self._of_accounts))]  # the one not asked for the longest
            found = Remembered(self._clock, lambda: self._store.conservation(account=account))
        self._of_accounts[account] = found
        return await found.get()

    async def bloat(self) -> Bloat:
        """What the database keeps although nobody needs it."""
        return (await self._bloat.get()).value

    async def oldest_due_age(self) -> float:
        """For how long the oldest delivery that is due and not held back has waited; 0: none waits."""
        counted = await self._due.get()
        return 0.0 if counted.value is None else max(0.0, self._clock.now() - counted.value)

    async def _look_at_bloat(self) -> Bloat:
        return await self._store.bloat()

    async def _count_due(self) -> float | None:
        return await self._store.oldest_due(now=self._clock.now())


class Remembered(Generic[T]):
    """One figure."""

    def __init__(self, clock: Clock, count: Callable[[], Awaitable[T]]) -> None:
        self._clock = clock
        self._count = count
        self._counted: Counted[T] | None = None
        self._good_until = 0.0  # of the monotonic clock
        self._turn = asyncio.Lock()

    async def get(self) -> Counted[T]:
        """The last count if it is still good, else a new one."""
        async with self._turn:
            if self._counted is None or self._clock.monotonic() >= self._good_until:
                as_of, began = self._clock.now(), self._clock.monotonic()
                self._counted = Counted(await self._count(), as_of)
                ended = self._clock.monotonic()
                self._good_until = ended + max(GOOD_FOR, GOOD_FOR_TIMES * (ended - began))
            return self._counted
