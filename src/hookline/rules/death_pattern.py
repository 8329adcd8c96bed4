"""Finds the pattern in the dead letters of one endpoint.

What most of them (80 %) died of decides. Failures that pass with time (5xx, network errors, timeouts) are an outage if
they come close together, and intermittent if they come a few a day. What fits no pattern is mixed.
"""

from collections import Counter
from enum import StrEnum

import msgspec

from hookline.model import DeliveryId, ErrorKind, Reason

SLOT_S = 60.0  # times of death are counted by the minute
MOST_PERCENT = 80  # of the dead letters are most of them

OUTAGE_DEATHS = 50  # within an hour
OUTAGE_LEAST = 10  # if most of them died within an hour
INTERMITTENT_DAYS = 3  # within seven
INTERMITTENT_A_DAY = 5  # at most

_REFUSED = (401, 403)
_THROTTLED = 429
_GONE = 410

_HOUR = 61  # slots: an hour that begins within a slot ends within the 61st
_DAY = 1_440  # slots
_WEEK = 7  # days


class Pattern(StrEnum):
    """What the dead letters of an endpoint have in common."""

    OUTAGE = "outage"
    CREDENTIALS = "credentials"
    THROTTLED = "throttled"
    INTERMITTENT = "intermittent"
    REJECTED = "rejected"
    GONE = "gone"
    MIXED = "mixed"


class DeathCause(msgspec.Struct, frozen=True):
    """Why a delivery died, and the answer to its last attempt."""

    reason: Reason
    status: int | None = None
    error: ErrorKind | None = None


class DeathFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How many died of a cause, and when."""

    count: int
    attempts: int  # of all of them together
    at_first_attempt: int  # how many of them died there
    first_at: float
    last_at: float
    newest: DeliveryId  # the newest of them

    def __add__(self, other: "DeathFigures") -> "DeathFigures":
        return DeathFigures(
            count=self.count + other.count,
            attempts=self.attempts + other.attempts,
            at_first_attempt=self.at_first_attempt + other.at_first_attempt,
            first_at=min(self.first_at, other.first_at),
            last_at=max(self.last_at, other.last_at),
            newest=max(self.newest, other.newest),
        )


class DeathTally:
    """Adds up the dead letters of one endpoint. They may come in any order and in any parts, but there is one."""

    def __init__(self) -> None:
        self._causes: dict[DeathCause, DeathFigures] = {}
        self._passing: Counter[int] = Counter()  # by the slot in which they died

    def add(self, cause: DeathCause, figures: DeathFigures, *, slot: int) -> None:
        """Add those that died of this cause in this slot: a minute since 1970."""
        known = self._causes.get(cause)
        self._causes[cause] = figures if known is None else known + figures
        if _passes(cause):
            self._passing[slot] += figures.count

    @property
    def causes(self) -> list[tuple[DeathCause, DeathFigures]]:
        """The causes, the commonest first; of two that are as common the later one."""

        def rank(each: tuple[DeathCause, DeathFigures]) -> tuple[int, float, str]:
            cause, figures = each
            return -figures.count, -figures.last_at, repr(cause)

        return sorted(self._causes.items(), key=rank)

    @property
    def total(self) -> DeathFigures:
        """The figures of all of them."""
        first, *others = self._causes.values()
        return sum(others, start=first)

    @property
    def busiest_hour(self) -> int:
        """The most that died within one hour of failures that pass with time."""
        most = within = 0
        slots = sorted(self._passing)
        oldest = 0
        for slot in slots:
            within += self._passing[slot]
            while slots[oldest] <= slot - _HOUR:
                within -= self._passing[slots[oldest]]
                oldest += 1
            most = max(most, within)
        return most

    @property
    def days(self) -> dict[int, int]:
        """How many died on each day (since 1970, UTC) of failures that pass with time."""
        found: Counter[int] = Counter()
        for slot, count in self._passing.items():
            found[slot // _DAY] += count
        return dict(found)


def pattern_of(deaths: DeathTally) -> Pattern:
    """What the dead letters have in common."""
    causes = deaths.causes
    newest, _ = max(causes, key=lambda each: (each[1].last_at, each[1].newest))
    if _is_gone(newest):
        return Pattern.GONE  # that disables the endpoint, whatever went before
    alike: Counter[tuple[Pattern, int | None]] = Counter()
    for cause, figures in causes:
        kind = _kind(cause)
        alike[kind] += figures.at_first_attempt if kind[0] is Pattern.REJECTED else figures.count
    (pattern, _), count = max(alike.items(), key=lambda each: (each[1], repr(each[0])))
    if not _are_most(count, deaths.total.count):
        return Pattern.MIXED
    return _by_time(deaths, count) if pattern is Pattern.OUTAGE else pattern


def _by_time(deaths: DeathTally, count: int) -> Pattern:
    """What kind of passing failures they are, by how close together they come."""
    busiest = deaths.busiest_hour
    if busiest >= OUTAGE_DEATHS or (count >= OUTAGE_LEAST and _are_most(busiest, count)):
        return Pattern.OUTAGE
    days = deaths.days
    recur = any(sum(1 for other in days if day <= other < day + _WEEK) >= INTERMITTENT_DAYS for day in days)
    return Pattern.INTERMITTENT if recur and max(days.values()) <= INTERMITTENT_A_DAY else Pattern.MIXED


def _are_most(some: int, of: int) -> bool:
    return some * 100 >= of * MOST_PERCENT


def _kind(cause: DeathCause) -> tuple[Pattern, int | None]:
    """What counts as the same trouble: outage stands for all passing failures, and rejections have a status each."""
    if _is_gone(cause):
        return Pattern.GONE, None
    if _passes(cause):
        return Pattern.OUTAGE, None
    if cause.reason is Reason.CRASH_LIMIT:
        return Pattern.MIXED, None
    if cause.status in _REFUSED:
        return Pattern.CREDENTIALS, None
    if cause.status == _THROTTLED:
        return Pattern.THROTTLED, None
    return (Pattern.REJECTED, cause.status) if cause.reason is Reason.REJECTED else (Pattern.MIXED, None)


def _is_gone(cause: DeathCause) -> bool:
    return cause.reason is Reason.GONE or (cause.status == _GONE and cause.reason is not Reason.CRASH_LIMIT)


def _passes(cause: DeathCause) -> bool:
    """Whether it is a failure at the receiver that passes with time."""
    return (
        cause.reason is Reason.EXHAUSTED
        and cause.status not in (*_REFUSED, _THROTTLED, _GONE)
        and cause.error not in (ErrorKind.BLOCKED_ADDRESS, ErrorKind.INTERNAL)
    )
