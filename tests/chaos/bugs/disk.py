"""Bugs: a write that failed counts as done."""

from collections.abc import Callable
from typing import Any

from hookline.errors import StorageFull
from hookline.pipeline.intake import accept
from hookline.store.contract import Acceptance
from hookline.store.sqlite.store import SqliteStore


def accept_when_full() -> None:
    """A publish is answered with 202 although there was no room for it."""
    store = accept.Intake._store_batch

    async def blind(self: Any, entries: list[Any], now: float, seen: int) -> Acceptance:
        try:
            return await store(self, entries, now, seen)
        except StorageFull:
            self._drop_reservations(entries)
            for entry in entries:
                entry.endpoints = ()
            return Acceptance(stale=False)

    accept.Intake._store_batch = blind


def prune_by_copying() -> None:
    """Pruning begins with a smaller copy of everything, which needs room."""
    prune = SqliteStore.prune

    async def copied(self: Any, **named: Any) -> Any:
        await self._write(
            lambda connection: connection.execute("CREATE TABLE IF NOT EXISTS kept AS SELECT * FROM events")
        )
        return await prune(self, **named)

    SqliteStore.prune = copied


BUGS: dict[str, Callable[[], None]] = {
    "accept-when-full": accept_when_full,
    "prune-by-copying": prune_by_copying,
}
