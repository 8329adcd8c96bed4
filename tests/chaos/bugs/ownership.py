"""Bugs: a lane does not belong to one worker."""

from collections.abc import Callable
from typing import Any

from hookline import failpoints
from hookline.pipeline import worker
from hookline.pipeline.lanes import circuit_breaker
from hookline.store.postgres import sql as postgres_sql


def settle_unfenced() -> None:
    """A worker that lost its lane settles anyway, whatever others settled before."""
    fence = "JOIN lanes l ON l.endpoint_id = s.endpoint_id AND l.epoch = s.epoch\n  WHERE l.owner IS NOT DISTINCT FROM me.id AND d.id"
    guard = "AND d.state = 'pending' AND d.attempts = s.number - 1 AND d.replays = s.replays"
    if fence not in postgres_sql.SETTLE or guard not in postgres_sql.SETTLE:
        raise SystemExit("the statement to be broken has changed: planted.py must follow")
    postgres_sql.SETTLE = postgres_sql.SETTLE.replace(fence, "\n  WHERE d.id").replace(guard, "")


def take_what_is_taken() -> None:
    """Lanes are taken even if they have an owner."""
    free = "WHERE owner IS NULL AND NOT paused AND wake_at < 'infinity' AND wake_at <= to_timestamp($2) AND"
    if free not in postgres_sql.TAKE:
        raise SystemExit("the statement to be broken has changed: planted.py must follow")
    postgres_sql.TAKE = postgres_sql.TAKE.replace(
        free, "WHERE owner IS DISTINCT FROM $1 AND NOT paused AND $2 > 0 AND"
    )


def bury_without_freeing() -> None:
    """A dead worker's row is deleted, and it still owns its lanes."""

    async def careless(store: Any, clock: Any, dead: Any) -> None:
        for id, beat in dead:
            if await store.bury(id, beat=beat, now=clock.now()):
                failpoints.failpoint("bury.after")

    worker.bury = careless


def probe_unwritten() -> None:
    """A probe is sent before it is written down: the next owner does not know of it."""

    async def at_once(self: Any, lane: Any) -> None:
        lane.flow.begin_probe()
        lane.flow.written = lane.flow.version
        lane.flow.grant_probe()
        self._offer(lane)

    circuit_breaker.CircuitProbes.send = at_once


BUGS: dict[str, Callable[[], None]] = {
    "settle-unfenced": settle_unfenced,
    "take-what-is-taken": take_what_is_taken,
    "bury-without-freeing": bury_without_freeing,
    "probe-unwritten": probe_unwritten,
}
