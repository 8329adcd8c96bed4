"""Is another worker dead?

A worker is dead when its beat has not changed over a lease of the observer's own, unbroken looks. No
timestamp of anybody's decides, so no clock that jumps can bury a live worker; and an observer that was itself
asleep starts its watch again.

It is seen dead sooner by its session, where the store has such: the session of its pulse holds a lock, which goes with the
process at once and stays with one that is stopped. The lock has to be free at every look for a sixth of a lease, on one
session of the observer's own. A database that starts again frees all locks, but it ends the observer's session too.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from hookline.model import WorkerId

MISSED = 2.5  # heartbeats; a worker that is silent for longer may be dead, and people are told so
FRESH = 1.0  # seconds after the beginning of a good pulse in which attempts may start
_SHARE = 6  # of a lease


class Condition(StrEnum):
    """How a worker stands, as people are shown it; nothing is decided by it."""

    RUNNING = "running"
    DRAINING = "draining"
    STALE = "stale"  # not heard of lately, or taken for dead


class By(StrEnum):
    """What a death was seen by."""

    LEASE = "lease"
    SESSION = "session"
    FILE = "file"  # it is this process's alone: whoever is listed died
    OTHERS = "others"  # who did not come to the end of burying it


class DeadWorker(NamedTuple):
    """A worker to be buried, with the beat it was last seen at."""

    id: WorkerId
    beat: int
    by: By


class Seen(NamedTuple):
    """A worker at one look."""

    id: WorkerId
    beat: int
    is_gone: bool = False  # it has a session that holds a lock, and the lock is free


class _Stillness(NamedTuple):
    beat: int
    since: float  # when the beat was first seen at this count
    gone_since: float  # when the lock was first seen free, of all looks since; FOREVER: it is held


class Watch(msgspec.Struct, frozen=True):
    """What an observer remembers of the others."""

    looked_at: float = float("-inf")  # the observer's monotonic time of its last look
    session: int | None = None  # the observer's own, at that look
    stillness: dict[WorkerId, _Stillness] = {}
    verdict_at: float = float("inf")  # when a look may next find somebody dead by its session


def patience(lease: float) -> float:
    """Seconds that a lock has to be free.

    However short the lease is: by then its worker starts no attempt any more, if it lives. Its last good pulse began
    before its session ended.
    """
    return max(lease / _SHARE, FRESH)


def look(
    watch: Watch,
    workers: Iterable[Seen],
    *,
    began: float,
    ended: float,
    lease: float,
    session: int | None = None,
) -> tuple[Watch, list[DeadWorker]]:
    """The watch after this look, and who is dead.

    `session` is the number of the observer's session that it looked on; None: it has none of its own.
    """
    pause = ended - watch.looked_at
    unbroken = pause <= lease / 2
    enough = patience(lease)
    on_one_session = session is not None and session == watch.session and pause <= enough / 2
    stillness: dict[WorkerId, _Stillness] = {}
    dead: list[DeadWorker] = []
    verdict_at = float("inf")
    for id, beat, is_gone in workers:
        before = watch.stillness.get(id)
        if before is None or before.beat != beat:
            before = _Stillness(beat, ended, float("inf"))
        since = before.since if unbroken else ended
        gone_since = float("inf")
        if is_gone and session is not None:
            gone_since = min(before.gone_since, ended) if on_one_session else ended
        stillness[id] = _Stillness(beat, since, gone_since)
        if ended - since >= lease:
            dead.append(DeadWorker(id, beat, By.LEASE))
        elif began - gone_since >= enough:
            dead.append(DeadWorker(id, beat, By.SESSION))
        else:
            verdict_at = min(verdict_at, gone_since + enough)
    return Watch(ended, session, stillness, verdict_at), dead


def condition(*, silent: float, is_draining: bool, is_buried: bool, heartbeat: float) -> Condition:
    """How a worker stands that was last heard of `silent` seconds ago and should be heard every `heartbeat`."""
    if is_buried or silent > MISSED * heartbeat:
        return Condition.STALE
    return Condition.DRAINING if is_draining else Condition.RUNNING
