"""Decides which events wait for their lanes.

Events wait for a lane that is full because our own loop is short of time. Accepting more would make everything slower,
and their deliveries no sooner.
"""

import asyncio
from collections.abc import Mapping

from hookline.model import EndpointId
from hookline.pipeline.intake.drafts import Entry
from hookline.pipeline.lanes.lane import Lane
from hookline.rules.admission import earned, waits_for_the_loop
from hookline.rules.slots import LaneHealth

_SMOOTHED = 4  # turns
_KEPT = 1_000  # lanes whose credit is remembered


class _Credit:
    """How many events a lane that is behind may be given, for what it sent."""

    __slots__ = ("left", "sends")

    def __init__(self, lane: Lane) -> None:
        self.sends = lane.sends
        self.left = 0.0

    def look(self, lane: Lane) -> float:
        self.left = min(self.left + earned(lane.sends - self.sends), float(lane.capacity))
        self.sends = lane.sends
        return self.left


class Admission:
    """Knows which lanes wait for the loop, and how many events they may still be given."""

    def __init__(self, lanes: Mapping[EndpointId, Lane]) -> None:
        self._lanes = lanes
        self._credits: dict[Lane, _Credit] = {}
        self.turn = 0.0  # seconds that a turn of the loop took recently
        self.has_room = asyncio.Event()  # something was settled since this was cleared

    def turned(self, seconds: float) -> None:
        """A turn of the loop took so long."""
        self.turn += (seconds - self.turn) / _SMOOTHED

    def held_by(self, entry: Entry) -> Lane | None:
        """The lane that the event waits for; only lanes that are behind, or that reserved nothing for it, count."""
        for endpoint, reserved in zip(entry.endpoints, entry.lanes, strict=False):
            lane = self._lanes.get(endpoint) if reserved is None else reserved
            if lane is None or not (lane.behind or reserved is None) or not self._may_hold(lane):
                continue
            if lane.behind:
                credit = self._credit(lane)
                if credit.look(lane) < 1.0:
                    return lane
                credit.left -= 1.0
            elif lane.capacity <= len(lane.known):
                return lane
        return None

    def room(self, lane: Lane) -> int | None:
        """How many events that wait for the lane may continue; None: all of them."""
        if not self._may_hold(lane):
            return None
        return int(self._credit(lane).look(lane)) if lane.behind else max(0, lane.capacity - len(lane.known))

    def _may_hold(self, lane: Lane) -> bool:
        """Whether our own loop is what keeps the lane full."""
        return (
            lane.takes_fresh
            and lane.health is LaneHealth.PROVEN
            and lane.flow.is_plain
            and lane.parked_at is None
            and waits_for_the_loop(lane.flow.durations, turn=self.turn)
        )

    def _credit(self, lane: Lane) -> _Credit:
        credit = self._credits.get(lane)
        if credit is None:
            if len(self._credits) >= _KEPT:
                self._credits.clear()
            credit = self._credits[lane] = _Credit(lane)
        return credit
