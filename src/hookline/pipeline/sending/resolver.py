"""Looks names up without letting one delay the others.

Requests for one name share one lookup, and its answer for a few seconds. A lookup that does not return is abandoned:
requests that wait for it fail after the budget, and it keeps its place only in its own class of names.
"""

import asyncio

from hookline.clock import Clock
from hookline.pipeline.sending.net import Net, is_shortage
from hookline.rules.lookups import AT_ONCE, BUDGET_S, FOUND_S, GIVEN_UP_S, NOT_FOUND_S, LookupResult

REMEMBERED = 20_000  # names

_OVERDUE = "the lookup did not come back in time"


class NameNotFound(OSError):
    """The name has no address, or it was not found in time."""


class _Answer:
    """What is known about a name, and until when that is used."""

    __slots__ = ("found", "until")

    def __init__(self, found: list[str] | str, until: float) -> None:
        self.found = found  # a text: why there is no address
        self.until = until

    @property
    def standing(self) -> LookupResult:
        return LookupResult.FAILING if isinstance(self.found, str) else LookupResult.FOUND


class _Lookup:
    __slots__ = ("began", "has_place", "task", "waiting")

    def __init__(self, began: float) -> None:
        self.began = began
        self.waiting = 0  # requests
        self.has_place = False
        self.task: asyncio.Task[list[str] | str | None]


class Names:
    """Looks names up."""

    def __init__(self, net: Net, clock: Clock, *, budget: float = BUDGET_S) -> None:
        self._net = net
        self._clock = clock
        self._budget = budget
        self._answers: dict[str, _Answer] = {}
        self._under_way: dict[str, _Lookup] = {}
        self._tasks: set[asyncio.Task[list[str] | str | None]] = set()
        self._places = {standing: asyncio.Semaphore(most) for standing, most in AT_ONCE.items()}

    async def find(self, host: str, port: int) -> list[str]:
        """The addresses of a name; `NameNotFound` when there are none, or not within the budget."""
        now = self._clock.monotonic()
        answer = self._answers.get(host)
        if answer is None or now >= answer.until:
            found = await self._ask(host, port, now)
        else:
            found = answer.found
        if isinstance(found, str):
            raise NameNotFound(found)
        return found

    async def close(self) -> None:
        """Stop waiting for lookups."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(self, host: str, port: int, now: float) -> list[str] | str:
        lookup = self._under_way.get(host)
        if lookup is None or now - lookup.began > GIVEN_UP_S:
            lookup = self._begin(host, port, now)
        lookup.waiting += 1
        try:
            async with asyncio.timeout(self._budget):
                found = await asyncio.shield(lookup.task)
        except TimeoutError:
            # A lookup that still waits for its place says nothing about the name.
            if lookup.has_place and self._under_way.get(host) is lookup:
                self._remember(host, _OVERDUE)
            return _OVERDUE
        finally:
            lookup.waiting -= 1
        return _OVERDUE if found is None else found

    def _begin(self, host: str, port: int, now: float) -> _Lookup:
        lookup = self._under_way[host] = _Lookup(now)
        known = self._answers.get(host)
        standing = LookupResult.UNTRIED if known is None else known.standing
        lookup.task = asyncio.get_running_loop().create_task(self._look_up(host, port, lookup, standing))
        self._tasks.add(lookup.task)
        lookup.task.add_done_callback(self._tasks.discard)
        return lookup

    async def _look_up(
        self, host: str, port: int, lookup: _Lookup, standing: LookupResult
    ) -> list[str] | str | None:
        """The addresses, why there are none, or None if nobody waited any more at its turn."""
        found: list[str] | str
        try:
            async with self._places[standing]:
                if not lookup.waiting:
                    return None
                lookup.has_place = True
                try:
                    found = await self._net.resolve(host, port) or "the name has no address"
                except (OSError, UnicodeError) as error:
                    if is_shortage(error):
                        raise  # it says nothing about the name
                    found = str(error) or type(error).__name__
            self._remember(host, found)
            return found
        finally:
            if self._under_way.get(host) is lookup:
                del self._under_way[host]

    def _remember(self, host: str, found: list[str] | str) -> None:
        if host not in self._answers and len(self._answers) >= REMEMBERED:
            del self._answers[next(iter(self._answers))]
        good_for = NOT_FOUND_S if isinstance(found, str) else FOUND_S
        self._answers[host] = _Answer(found, self._clock.monotonic() + good_for)
