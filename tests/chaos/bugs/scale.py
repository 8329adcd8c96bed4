"""Bugs: what large numbers need is missing."""

from collections.abc import Callable
from typing import Any

from hookline.pipeline.lanes import buffers, lane, loader
from hookline.store.contract import Want
from hookline.store.postgres import lanes as postgres_lanes
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.store import SqliteStore

BACKLOG = 200  # deliveries of a lane, with more to come


def read_from_the_beginning() -> None:
    """A lane's rows are searched from the first one on, as if nothing were known of how far it was read.

    Where backlogs are measured, the row also makes an index of all rows instead of the pending ones.
    """
    want = lane.Lane.want

    def floorless(self: Any, room: int, *, at: float) -> Want:
        asked = want(self, room, at=at)
        return Want(asked.endpoint_id, asked.ready, asked.timed)

    lane.Lane.want = floorless


def let_all_out_at_once() -> None:
    """A lane whose circuit has just closed sends as much as ever at once."""
    landed = lane.Lane.landed

    def rampless(self: Any, outcome: Any, **named: Any) -> None:
        landed(self, outcome, **named)
        self.window = self.cap

    lane.Lane.landed = rampless


def serve_first_come_first() -> None:
    """While one lane has a backlog, nothing is read for the others, as in one queue ordered by due time."""
    ask = loader.Loader._ask
    seen: set[Any] = set()

    def of_the_first(self: Any, at: float) -> list[Any]:
        asked = ask(self, at)
        seen.update(each for each, _, _ in asked)
        first = {each for each in seen if each.behind and not each.is_lost and each.sends > BACKLOG}
        for each, _, _ in asked:
            if first and each not in first:
                self._look_at(each, at + self._poll)
        return [one for one in asked if not first or one[0] in first]

    loader.Loader._ask = of_the_first


def keep_all_payloads() -> None:
    """Everything that fits into a lane is read with its payload, however large, and everything fits."""
    postgres_lanes.INLINE_PAYLOAD_BYTES = 1 << 30
    buffers.Buffers.room = lambda self, health: 1 << 30


def prune_all_at_once() -> None:
    """All old rows are deleted in one transaction, however many they are."""
    for store in (PostgresStore, SqliteStore):
        _prune_all(store)


def _prune_all(store: Any) -> None:
    prune = store.prune

    async def all_of_it(self: Any, *, limit: int, **named: Any) -> Any:
        return await prune(self, limit=1 << 30, **named)

    store.prune = all_of_it


BUGS: dict[str, Callable[[], None]] = {
    "read-from-the-beginning": read_from_the_beginning,
    "no-ramp": let_all_out_at_once,
    "keep-all-payloads": keep_all_payloads,
    "first-come-first": serve_first_come_first,
    "prune-all-at-once": prune_all_at_once,
}
