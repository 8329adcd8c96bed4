"""Counts the attempts that were settled, by endpoint and minute.

Every batch of settlements is logged in its own commit. After the answer, never before, its attempts are added to cells in
memory: those that were applied, by this call or by an earlier one whose answer was lost. From time to time the cells are
written whole, and in the same commit the log up to there is deleted. A worker that dies in between leaves its log to
whoever buries it. A worker that was taken for dead forgets its cells: all they have beyond the stored minutes is in the
log, which others turn into minutes.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import structlog

from hookline.clock import Clock
from hookline.errors import HooklineError
from hookline.model import EndpointId, Outcome, State, Timings, WorkerId
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS, cell_of
from hookline.rules.latency_buckets import (
    FIRST,
    FIRST_ANSWER,
    KIND_BITS,
    LONGEST,
    NOTHING,
    PER_E,
    SHORTEST,
    LatencyKind,
    answer_key,
    bucket_of,
)
from hookline.rules.latency_samples import keys_by_endpoint, pack
from hookline.store.contract import EVERY_ENDPOINT, LatencyCell, LatencyLog, Settlement, Store, Verdict

FLUSH_EVERY = 10.0  # seconds
FLUSH_MANY_EVERY = 30.0  # a worker of many endpoints writes as many rows each time
MANY_CELLS = 500

ADDED_UP_AT = 2_000  # keys of a cell: counting many at once costs a third of counting them batch by batch
MOST_NEW = 50_000  # keys of all cells that are not counted yet: 2 MB

_MINUTE = 60.0
_Place = tuple[EndpointId, float]  # an endpoint and the beginning of a minute
_LAST = bucket_of(LONGEST)
_KEY_OF_WAIT = LatencyKind.QUEUE_WAIT << KIND_BITS
_KEY_OF_WHOLE = LatencyKind.END_TO_END << KIND_BITS
_KEY_OF_FIRST_BYTE = LatencyKind.FIRST_BYTE << KIND_BITS
_FIRST_WAIT, _FIRST_WHOLE, _FIRST_FIRST_BYTE = (
    FIRST + key for key in (_KEY_OF_WAIT, _KEY_OF_WHOLE, _KEY_OF_FIRST_BYTE)
)

log = structlog.get_logger()


class MeasuredBatch:
    """The measurements of a batch of settlements."""

    __slots__ = ("endpoints", "log", "pairs", "words")

    def __init__(self, settlements: Sequence[Settlement], *, n: int, minute: float) -> None:
        self.endpoints, self.words, self.pairs = measure(settlements)
        samples = pack(self.endpoints, self.words, self.pairs)
        self.log = LatencyLog(n, minute, samples) if settlements else None

    def keys(self, *, skipped: frozenset[int]) -> dict[EndpointId, list[int]]:
        """The keys of the attempts that are not skipped, by endpoint."""
        return keys_by_endpoint(self.endpoints, self.words, self.pairs, skipped=skipped)


class _Life:
    """What was counted under one id of the worker."""

    def __init__(self, worker: WorkerId | None) -> None:
        self.worker = worker
        self.source: int | None = None
        self.n = self.flushed = 0  # the last batch that was counted, and the last one of the last flush
        self._cells: dict[_Place, Counter[int]] = {}
        self._new: dict[_Place, list[int]] = {}  # keys that are in no cell yet
        self._number_new = 0  # of them
        self._dirty: set[_Place] = set()

    @property
    def is_flushed(self) -> bool:
        return self.n == self.flushed

    def count(self, place: _Place, keys: list[int]) -> None:
        """Count these, for the endpoint and for all together; the list is kept."""
        self._number_new += len(keys)
        new = self._new.get(place)
        if new is None:
            self._new[place] = keys
            self._dirty |= {place, (EVERY_ENDPOINT, place[1])}
        else:
            new += keys
            if len(new) >= ADDED_UP_AT:
                self._add_up(place)
        while self._number_new > MOST_NEW:
            self._add_up(next(iter(self._new)))

    def dirty(self) -> list[LatencyCell]:
        """The cells that changed since the last flush."""
        self._add_up_all()
        return [cell_of(endpoint, at, self._cells[endpoint, at]) for endpoint, at in sorted(self._dirty)]

    def wrote(self, *, minute: float) -> Counter[int]:
        """Everything is written; nothing is counted in a minute before this one. What is forgotten of the sum of all."""
        self.flushed = self.n
        self._dirty.clear()
        forgotten: Counter[int] = Counter()
        for place in [place for place in self._cells if place[1] < minute]:
            cell = self._cells.pop(place)
            if place[0] == EVERY_ENDPOINT:
                forgotten.update(cell)
        return forgotten

    def sums(self) -> Iterator[Counter[int]]:
        """What is in memory of all endpoints together."""
        self._add_up_all()
        return (cell for (endpoint, _), cell in self._cells.items() if endpoint == EVERY_ENDPOINT)

    def __len__(self) -> int:
        return len(self._dirty)

    def _add_up_all(self) -> None:
        for place in list(self._new):
            self._add_up(place)

    def _add_up(self, place: _Place) -> None:
        keys = self._new.pop(place)
        self._number_new -= len(keys)
        new = Counter(keys)
        new.pop(NOTHING, None)
        for each in (place, (EVERY_ENDPOINT, place[1])):
            self._cells.setdefault(each, Counter()).update(new)


class LatencyMeter:
    """The latencies of this process's attempts."""

    def __init__(self, store: Store, clock: Clock, *, worker: Callable[[], WorkerId]) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._n = 0  # never starts over: it is unique under each id of the process
        self._minute = 0.0  # never goes back: what was flushed and forgotten is never counted on
        self._life = _Life(None)
        self._forgotten: Counter[int] = Counter()  # of all endpoints together, and no longer in memory
        self._since: WorkerId | None = None
        self._flushed_at = clock.monotonic()
        self._is_failing = False

    def begin(self) -> None:
        """Settlements are about to be written, none of which was sent under an earlier id of this process."""
        self._since = self._worker()

    def measure(self, settlements: Sequence[Settlement]) -> MeasuredBatch:
        """Measure a batch before it is sent for the first time."""
        self._n += 1
        return MeasuredBatch(settlements, n=self._n, minute=self._this_minute())

    def settled(self, batch: MeasuredBatch, verdicts: Sequence[Verdict], *, worker: WorkerId) -> None:
        """Count what was applied under this id. What was applied under an earlier one is in its log: others count it."""
        if batch.log is None or worker != self._worker():
            return
        if self._life.worker != worker:
            self._begin_life(worker)
        life = self._life
        if life.is_flushed:
            self._flushed_at = self._clock.monotonic()
        life.n = batch.log.n
        skipped: frozenset[int] = frozenset()
        if verdicts.count(Verdict.APPLIED) != len(verdicts):
            counts = {Verdict.APPLIED, Verdict.REPEATED} if self._since == worker else {Verdict.APPLIED}
            skipped = frozenset(n for n, verdict in enumerate(verdicts) if verdict not in counts)
        for endpoint, keys in batch.keys(skipped=skipped).items():
            if keys:
                life.count((endpoint, batch.log.minute), keys)

    def flush_in(self) -> float:
        """Seconds until the next flush; infinite if there is nothing to write."""
        if self._life.is_flushed:
            return math.inf
        every = FLUSH_MANY_EVERY if len(self._life) > MANY_CELLS else FLUSH_EVERY
        return max(0.0, self._flushed_at + every - self._clock.monotonic())

    async def flush(self) -> bool:
        """Write what was counted since the last flush; whether nothing is left. If it fails, the next one writes it."""
        life = self._life
        self._flushed_at = self._clock.monotonic()
        if life.worker is None or life.is_flushed:
            return True
        if life.worker != self._worker():
            self._begin_life(None)
            return True
        minute, cells = self._this_minute(), life.dirty()
        try:
            if life.source is None:
                life.source = await self._store.new_latency_source()
            is_alive = await self._store.flush_latencies(
                life.worker,
                cells,
                source=life.source,
                n=life.n,
                math=LATENCY_COUNTS,
                now=self._clock.now(),
            )
        except HooklineError as error:
            if not self._is_failing:
                self._is_failing = True
                log.warning("latency.unflushed", cells=len(cells), error=str(error))
            return False
        self._is_failing = False
        if is_alive:
            self._forgotten.update(life.wrote(minute=minute))
        else:
            self._begin_life(None)
        return True

    def since_start(self) -> Counter[int]:
        """What this process counted since it started, of all endpoints together."""
        counts = Counter(self._forgotten)
        for cell in self._life.sums():
            counts.update(cell)
        return counts

    def _begin_life(self, worker: WorkerId | None) -> None:
        for cell in self._life.sums():
            self._forgotten.update(cell)
        self._life = _Life(worker)

    def _this_minute(self) -> float:
        self._minute = max(self._minute, self._clock.now() // _MINUTE * _MINUTE)
        return self._minute


def measure(settlements: Sequence[Settlement]) -> tuple[list[EndpointId], list[int], list[int]]:
    """The endpoints, words and pairs of a batch (`latency_samples`).

    One loop without calls of ours, `bucket_of` written out: this is done for every attempt.
    """
    log, accepted, delivered = math.log, Outcome.ACCEPTED, State.DELIVERED
    places: dict[EndpointId, int] = {}
    words: list[int] = []
    pairs: list[int] = []
    for position, settlement in enumerate(settlements):
        attempt = settlement.attempt
        endpoint, took, timings = settlement.endpoint_id, attempt.duration, attempt.timings
        place = places.get(endpoint)
        if place is None:
            place = places[endpoint] = len(places)
        if SHORTEST < took < LONGEST:
            response = int(log(took) * PER_E + FIRST)
        else:
            response = _LAST if took >= LONGEST else 0
        wait = whole = first_byte = NOTHING
        since = settlement.waited_since
        if since is not None:
            seconds = attempt.at - since
            if SHORTEST < seconds < LONGEST:
                wait = int(log(seconds) * PER_E + _FIRST_WAIT)
            else:
                wait = _KEY_OF_WAIT + _LAST if seconds >= LONGEST else _KEY_OF_WAIT
        since = settlement.published_at
        if since is not None and settlement.state is delivered:
            seconds = attempt.at + took - since
            if SHORTEST < seconds < LONGEST:
                whole = int(log(seconds) * PER_E + _FIRST_WHOLE)
            else:
                whole = _KEY_OF_WHOLE + _LAST if seconds >= LONGEST else _KEY_OF_WHOLE
        first = timings.first_byte
        if first is not None:
            if SHORTEST < first < LONGEST:
                first_byte = int(log(first) * PER_E + _FIRST_FIRST_BYTE)
            else:
                first_byte = _KEY_OF_FIRST_BYTE + _LAST if first >= LONGEST else _KEY_OF_FIRST_BYTE
        status = attempt.status
        if attempt.outcome is accepted and status is not None:
            answer = FIRST_ANSWER + status
        else:
            answer = answer_key(status, attempt.error)
        words += (place, response, wait, whole, first_byte, answer)
        if timings.connect is not None or timings.dns is not None:
            pairs += _connecting(position, timings)
    return list(places), words, pairs


def _connecting(position: int, timings: Timings) -> Iterator[int]:
    """The pairs of an attempt on a new connection."""
    for kind, seconds in (
        (LatencyKind.DNS, timings.dns),
        (LatencyKind.CONNECT, timings.connect),
        (LatencyKind.TLS, timings.tls),
    ):
        if seconds is not None:
            yield position
            yield kind << KIND_BITS | bucket_of(seconds)
