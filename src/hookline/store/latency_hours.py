"""Decides which hours a change of minutes concerns, for both stores.

Hours are added up once they ended. Minutes that come later belong to an hour that was added up without them: it is added
up again, or, when its other minutes are gone, only added to.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from hookline.model import EndpointId
from hookline.store.contract.measuring.latency import MINUTES_KEPT, ROLL_AFTER, LatencyCell, LatencyMath

HOUR = 3_600.0
Place = tuple[EndpointId, float]  # an endpoint and the beginning of an hour


def hour_of(at: float) -> float:
    """The beginning of the hour."""
    return at // HOUR * HOUR


def next_hour(at: float) -> float:
    """The first beginning of an hour that is not before this."""
    return -(-at // HOUR) * HOUR


def place_of(cell: LatencyCell) -> Place:
    """The hour of a cell."""
    return cell.endpoint_id, hour_of(cell.at)


def in_order(cell: LatencyCell) -> tuple[EndpointId, float]:
    """By endpoint, then by time."""
    return cell.endpoint_id, cell.at


def may_be_rolled(cells: Iterable[LatencyCell], *, now: float) -> list[Place]:
    """The hours of these cells that another clock, which is ahead, may have found to be over."""
    return sorted({place_of(cell) for cell in cells if now >= hour_of(cell.at) + HOUR + ROLL_AFTER / 2})


def minutes_end(now: float) -> float:
    """Minutes before this are deleted.

    An hour later than they are needed: who adds up an hour again by a clock that is behind finds all of its minutes.
    """
    return hour_of(now - MINUTES_KEPT) - HOUR


def to_roll_again(
    places: Iterable[Place], rolled: Mapping[EndpointId, float], *, now: float
) -> tuple[list[Place], set[Place]]:
    """The hours to add up again, and those whose minutes may be gone; `rolled`: until when they were added up."""
    late = [(id, hour) for id, hour in sorted(places) if hour < rolled.get(id, float("-inf"))]
    fresh = hour_of(now - MINUTES_KEPT)
    return [place for place in late if place[1] >= fresh], {place for place in late if place[1] < fresh}


class Placed(NamedTuple):
    """Where the minutes of a dead worker go."""

    minutes: list[LatencyCell]
    again: list[Place]  # hours to add up again
    old: dict[Place, list[LatencyCell]]  # hours to add to


def placed(cells: Sequence[LatencyCell], rolled: Mapping[EndpointId, float], *, now: float) -> Placed:
    """Where these minutes go; `rolled`: until when the endpoints' hours were added up."""
    again, old = to_roll_again({place_of(cell) for cell in cells}, rolled, now=now)
    ordered = sorted(cells, key=in_order)
    return Placed(
        [cell for cell in ordered if place_of(cell) not in old],
        again,
        {place: list(each) for place, each in groupby(ordered, key=place_of) if place in old},
    )


def by_hour(minutes: Sequence[LatencyCell], math: LatencyMath) -> list[LatencyCell]:
    """The hours of minutes that are in order."""
    return [math.hour(list(each)) for _, each in groupby(minutes, key=place_of)]
