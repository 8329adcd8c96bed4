"""Decides whether another worker is dead.

A worker is dead when its heartbeat has not changed for a whole lease of uninterrupted looks by one observer. No
worker's timestamp decides, so a clock that jumps cannot bury a live worker. An observer that was itself asleep starts
its watch again.

Where the store has sessions, a death is seen sooner. The session of a worker's heartbeat holds a lock. The lock is
freed at once when the process ends, and stays held while the process is only stopped. It has to be free at every look
for a sixth of a lease, seen from one session of the observer. A database restart frees all locks, but it ends the
observer's session too.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from hookline.model import WorkerId

MISSED = 2.5  # heartbeats; a worker that is silent for longer may be dead, and is shown as stale
FRESH = 1.0  # seconds after the start of a good heartbeat in which attempts may start
_SHARE = 6  # of a lease


class Condition(StrEnum):
    """A worker's condition as it is shown to people; it decides nothing."""

    RUNNING = "running"
    DRAINING = "draining"
    STALE = "stale"  # silent lately, or considered dead


class By(StrEnum):
    """How a death was seen."""

    LEASE = "lease"
    SESSION = "session"
    FILE = "file"  # this process alone owns the file: any other listed worker is dead
    OTHERS = "others"  # other workers, who did not finish burying it


class DeadWorker(NamedTuple):
    """A worker to be buried, with the last heartbeat count that was seen."""

    id: WorkerId
    beat: int
    by: By


class Seen(NamedTuple):
    """A worker at one look."""

    id: WorkerId
    beat: int
    is_gone: bool = False  # it has a session that should hold a lock, and the lock is free


class _Stillness(NamedTuple):
    beat: int
    since: float  # when this heartbeat count was first seen
    gone_since: float  # since when every look saw the lock free; FOREVER: it is held


class Watch(msgspec.Struct, frozen=True):
    """What an observer remembers of the other workers."""

    looked_at: float = float("-inf")  # the observer's monotonic time of its last look
    session: int | None = None  # the observer's own, at that look
    stillness: dict[WorkerId, _Stillness] = {}
    verdict_at: float = float("inf")  # when a look may next find somebody dead by its session


def patience(lease: float) -> float:
    """For how many seconds a lock has to be free.

    However short the lease is: after this time a worker that still lives starts no more attempts, because its last good
    heartbeat began before its session ended.
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
    """The watch after this look, and the dead workers.

    `session` is the number of the observer's session for this look; None: it has no session of its own.
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
    """The condition of a worker last heard from `silent` seconds ago, with a heartbeat every `heartbeat` seconds."""
    if is_buried or silent > MISSED * heartbeat:
        return Condition.STALE
    return Condition.DRAINING if is_draining else Condition.RUNNING
