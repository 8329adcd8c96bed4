"""Is another worker dead?

A worker is dead when its beat has not changed over a lease of the observer's own, unbroken looks. No
timestamp of anybody's decides, so no clock that jumps can bury a live worker; and an observer that was itself
asleep starts its watch again.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from hookline.model import WorkerId

MISSED = 2.5  # heartbeats; a worker that is silent for longer may be dead, and people are told so


class Condition(StrEnum):
    """How a worker stands, as people are shown it; nothing is decided by it."""

    RUNNING = "running"
    DRAINING = "draining"
    STALE = "stale"  # not heard of lately, or taken for dead


class Watch(msgspec.Struct, frozen=True):
    """What an observer remembers of the others."""

    looked_at: float = float("-inf")  # the observer's monotonic time of its last look
    beats: dict[WorkerId, tuple[int, float]] = {}  # beat, and when it was first seen at that count


def look(
    watch: Watch, workers: Iterable[tuple[WorkerId, int]], *, at: float, lease: float, gap: float
) -> tuple[Watch, list[tuple[WorkerId, int]]]:
    """The watch after this look, and who is dead with the beat it died at.

    `gap` is the longest pause between two looks that still counts as unbroken.
    """
    unbroken = at - watch.looked_at <= gap
    beats: dict[WorkerId, tuple[int, float]] = {}
    dead: list[tuple[WorkerId, int]] = []
    for id, beat in workers:
        before = watch.beats.get(id)
        since = before[1] if unbroken and before is not None and before[0] == beat else at
        beats[id] = (beat, since)
        if at - since >= lease:
            dead.append((id, beat))
    return Watch(at, beats), dead


def condition(*, silent: float, is_draining: bool, is_buried: bool, heartbeat: float) -> Condition:
    """How a worker stands that was last heard of `silent` seconds ago and should be heard every `heartbeat`."""
    if is_buried or silent > MISSED * heartbeat:
        return Condition.STALE
    return Condition.DRAINING if is_draining else Condition.RUNNING
