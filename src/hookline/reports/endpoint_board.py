"""Answers which endpoints there are and how each does, the worst first.

The figures of all endpoints of an account, or of the installation, are read a slice at a time and used for some seconds,
so a page costs about the same for ten thousand endpoints as for ten. What is listed of the shown rows alone is read for
every page: the hours of a day, the requests under way and what is wrong with their fields.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from heapq import merge

import msgspec

from hookline import ids
from hookline.clock import Clock
from hookline.errors import Invalid
from hookline.model import CircuitState, EndpointId, WorkerId
from hookline.reports.counts import RememberedByKey
from hookline.reports.owners import LaneOwners
from hookline.rules.endpoint_state import BoardSort, EndpointFacts, EndpointState, sort_key, state_of
from hookline.rules.fanout import matches
from hookline.store.contract import Store
from hookline.store.contract.measuring.board import BoardFigures
from hookline.validate.stored_endpoint import EndpointJudge

MOST_ROWS = 200  # of a page
BARS = 24  # of a row, one an hour
SLICE = 500  # endpoints that are read, sorted or searched before others have their turn
MOST_REMEMBERED = 100  # accounts
GOOD_FOR, GOOD_FOR_TIMES = 2.0, 20.0  # seconds, and times as long as it took
WITH_DEAD = "dead"  # asks for the endpoints with dead letters, in any state
_QUARTER, _HOUR, _MINUTE = 900.0, 3_600.0, 60.0


class BoardCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many endpoints are in each state."""

    all: int
    failing: int
    slow: int
    paused: int
    disabled: int
    idle: int
    healthy: int
    dead: int  # with dead letters, in any state


class HourOfAttempts(msgspec.Struct, frozen=True):
    """The attempts of an hour."""

    attempts: int
    accepted: int


class BoardRow(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint on the board. Times are those to show (`Clock.shown`), in seconds since 1970."""

    id: str
    url: str
    description: str
    account: str
    state: EndpointState
    circuit: CircuitState
    opened_at: float | None
    next_probe_at: float | None
    enabled: bool
    disabled_reason: str | None
    paused: bool
    waiting: int  # pending or awaiting a retry
    dead: int
    in_flight: int
    p95_24h: float | None  # seconds
    attempts_1h: int
    accepted_1h: int
    last_success_at: float | None
    last_failure_at: float | None
    has_problems: bool  # fields that cannot be read or are invalid today
    spark: tuple[HourOfAttempts, ...]  # 24 hours of the clock, the last one not over yet


class BoardPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the board."""

    rows: tuple[BoardRow, ...]
    total: int  # endpoints
    matching: int  # of them, what was asked for
    counts: BoardCounts
    as_of: float  # when the figures were read, as it is to be shown
    spark_since: float  # when the first bar begins, likewise


class BoardEntry(msgspec.Struct, frozen=True, gc=False):
    """An endpoint as it is remembered."""

    figures: BoardFigures
    facts: EndpointFacts
    state: EndpointState
    text: str  # what is searched


class EndpointBoard:
    """The endpoints of an account or of the installation."""

    def __init__(self, store: Store, owners: LaneOwners, judge: EndpointJudge, clock: Clock) -> None:
        self._store = store
        self._owners = owners
        self._judge = judge
        self._clock = clock
        self._remembered = RememberedByKey(
            clock, self._gathered, most=MOST_REMEMBERED, good_for=GOOD_FOR, good_for_times=GOOD_FOR_TIMES
        )

    async def page(
        self,
        account: str | None = None,
        *,
        state: str | None = None,
        q: str = "",
        event_type: str | None = None,
        worker: WorkerId | None = None,
        sort: str = BoardSort.WORST,
        offset: int = 0,
        limit: int = 25,
    ) -> BoardPage:
        """A page of the endpoints of an account, or of all.

        `state` is a state or "dead" (has dead letters). `q` is a part of the URL, description or account, or the
        beginning of the id. `event_type` leaves those that would get an event of this type, `worker` those whose lane
        it owns now.
        """
        owned = None if worker is None else {each.endpoint_id for each in await self._store.owned(worker)}
        asked = _Asked(state=state, q=q, event_type=event_type, owned=owned)
        order = _sort(sort)
        known = await self._remembered.of(account).get()
        board = known.value
        matching = [
            each
            async for some in self._slices(await board.ordered(order, self._clock))
            for each in some
            if asked.is_met(each)
        ]
        offset = max(0, offset)
        chosen = matching[offset : offset + max(0, min(limit, MOST_ROWS))]
        now = self._clock.now()
        since = (now // _HOUR - BARS + 1) * _HOUR
        return BoardPage(
            rows=await self._rows(chosen, since=since, until=(now // _MINUTE + 1) * _MINUTE),
            total=board.counts.all,
            matching=len(matching),
            counts=board.counts,
            as_of=self._clock.shown(known.as_of),
            spark_since=self._clock.shown(since),
        )

    async def close(self) -> None:
        """Forget what is being read."""
        await self._remembered.close()

    async def _gathered(self, account: str | None) -> "Board":
        now = self._clock.now()
        entries: list[BoardEntry] = []
        after: EndpointId | None = None
        while True:
            found = await self._store.board_figures(
                after=after,
                limit=SLICE,
                hour=(now - _HOUR) // _MINUTE * _MINUTE,
                quarter=(now - _QUARTER) // _MINUTE * _MINUTE,
                account=account,
            )
            entries += map(_entry, found)
            if len(found) < SLICE:
                return Board(entries)
            after = found[-1].endpoint_id
            await self._clock.sleep(0.0)

    async def _slices(self, entries: Sequence[BoardEntry]) -> AsyncIterator[Sequence[BoardEntry]]:
        for start in range(0, len(entries), SLICE):
            if start:
                await self._clock.sleep(0.0)
            yield entries[start : start + SLICE]

    async def _rows(
        self, chosen: Sequence[BoardEntry], *, since: float, until: float
    ) -> tuple[BoardRow, ...]:
        if not chosen:
            return ()
        of = [each.figures.endpoint_id for each in chosen]
        lanes = {each.endpoint_id: each for each in await self._store.lanes(of)}
        owners = await self._owners.of(lanes.values())
        problems = {each.id: bool(self._judge.faults(each)) for each in await self._store.endpoints_by_id(of)}
        bars: dict[EndpointId, dict[float, HourOfAttempts]] = {id: {} for id in of}
        for hour in await self._store.hourly_attempts(of, since=since, until=until):
            bars[hour.endpoint_id][hour.at] = HourOfAttempts(hour.attempts, hour.accepted)
        rows = []
        for each in chosen:
            id = each.figures.endpoint_id
            circuit = self._owners.here.circuit_of(id) or (lanes[id].circuit if id in lanes else None)
            rows.append(
                self._row(
                    each,
                    in_flight=owners.in_flight(id),
                    last_success_at=None if circuit is None else circuit.last_success_at,
                    last_failure_at=None if circuit is None else circuit.last_failure_at,
                    has_problems=problems.get(id, False),
                    spark=_spark(bars[id], since=since),
                )
            )
        return tuple(rows)

    def _row(
        self,
        entry: BoardEntry,
        *,
        in_flight: int,
        last_success_at: float | None,
        last_failure_at: float | None,
        has_problems: bool,
        spark: tuple[HourOfAttempts, ...],
    ) -> BoardRow:
        figures = entry.figures
        return BoardRow(
            id=ids.show("endpoint", figures.endpoint_id),
            url=figures.url,
            description=figures.description,
            account=figures.account,
            state=entry.state,
            circuit=figures.circuit,
            opened_at=self._shown(figures.opened_at),
            next_probe_at=None if figures.circuit is CircuitState.CLOSED else self._shown(figures.probe_at),
            enabled=figures.enabled,
            disabled_reason=figures.disabled_reason,
            paused=figures.paused,
            waiting=figures.waiting,
            dead=figures.dead,
            in_flight=in_flight,
            p95_24h=figures.p95_24h,
            attempts_1h=figures.attempts_1h,
            accepted_1h=figures.accepted_1h,
            last_success_at=self._shown(last_success_at),
            last_failure_at=self._shown(last_failure_at),
            has_problems=has_problems,
            spark=spark,
        )

    def _shown(self, at: float | None) -> float | None:
        return None if at is None else self._clock.shown(at)


class Board:
    """All endpoints at one moment."""

    def __init__(self, entries: Sequence[BoardEntry]) -> None:
        self._entries = entries
        self._ordered: dict[BoardSort, list[BoardEntry]] = {}
        states = Counter(each.state for each in entries)
        self.counts = BoardCounts(
            all=len(entries),
            failing=states[EndpointState.FAILING],
            slow=states[EndpointState.SLOW],
            paused=states[EndpointState.PAUSED],
            disabled=states[EndpointState.DISABLED],
            idle=states[EndpointState.IDLE],
            healthy=states[EndpointState.HEALTHY],
            dead=sum(each.facts.dead > 0 for each in entries),
        )

    async def ordered(self, sort: BoardSort, clock: Clock) -> list[BoardEntry]:
        """The endpoints in this order, sorted once: in slices, which are then merged."""
        if (known := self._ordered.get(sort)) is not None:
            return known
        runs = []
        for start in range(0, len(self._entries), SLICE):
            if start:
                await clock.sleep(0.0)
            runs.append(
                sorted(
                    (sort_key(each.facts, each.state, sort), start + n)
                    for n, each in enumerate(self._entries[start : start + SLICE])
                )
            )
        found = []
        for n, (_, place) in enumerate(merge(*runs), start=1):
            found.append(self._entries[place])
            if n % SLICE == 0:
                await clock.sleep(0.0)
        self._ordered[sort] = found
        return found


class _Asked:
    """What an endpoint has to meet."""

    def __init__(
        self, *, state: str | None, q: str, event_type: str | None, owned: Set[EndpointId] | None
    ) -> None:
        allowed = [*map(str, EndpointState), WITH_DEAD]
        if state is not None and state not in allowed:
            raise _not_one_of("state", allowed)
        self._state = state
        self._text = q.strip().casefold()
        self._ids = ids.read_prefix(q.strip().lower())
        self._event_type = event_type
        self._owned = owned

    def is_met(self, entry: BoardEntry) -> bool:
        """Whether the endpoint is asked for."""
        return (
            (self._state is None or self._is_in_state(entry, self._state))
            and (not self._text or self._text in entry.text or self._is_id_of(entry))
            and (self._event_type is None or _gets(entry.figures, self._event_type))
            and (self._owned is None or entry.figures.endpoint_id in self._owned)
        )

    def _is_in_state(self, entry: BoardEntry, state: str) -> bool:
        return entry.facts.dead > 0 if state == WITH_DEAD else entry.state == state

    def _is_id_of(self, entry: BoardEntry) -> bool:
        return (
            self._ids is not None
            and self._ids.noun == "endpoint"
            and self._ids.low <= entry.figures.endpoint_id <= self._ids.high
        )


def _gets(figures: BoardFigures, event_type: str) -> bool:
    """Whether an event of this type would go to the endpoint; to a disabled one none goes."""
    return figures.enabled and any(matches(pattern, event_type) for pattern in figures.events)


def _entry(figures: BoardFigures) -> BoardEntry:
    facts = EndpointFacts(
        id=figures.endpoint_id,
        url=figures.url,
        is_enabled=figures.enabled,
        is_paused=figures.paused,
        is_circuit_closed=figures.circuit is CircuitState.CLOSED,
        attempts_15m=figures.attempts_15m,
        accepted_15m=figures.accepted_15m,
        is_back=figures.is_back,
        attempts_1h=figures.attempts_1h,
        accepted_1h=figures.accepted_1h,
        attempts_24h=figures.attempts_24h,
        p95_24h=figures.p95_24h,
        waiting=figures.waiting,
        dead=figures.dead,
    )
    text = "\n".join((figures.url, figures.description, figures.account)).casefold()
    return BoardEntry(figures, facts, state_of(facts), text)


def _spark(bars: Mapping[float, HourOfAttempts], *, since: float) -> tuple[HourOfAttempts, ...]:
    nothing = HourOfAttempts(0, 0)
    return tuple(bars.get(since + n * _HOUR, nothing) for n in range(BARS))


def _sort(sort: str) -> BoardSort:
    try:
        return BoardSort(sort)
    except ValueError:
        raise _not_one_of("sort", list(BoardSort)) from None


def _not_one_of(name: str, allowed: Sequence[str]) -> Invalid:
    return Invalid(f"{name} is one of {', '.join(allowed)}.", pointer=name, code="invalid_parameter")
