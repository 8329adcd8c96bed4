"""Warns about sessions that keep the database from cleaning up.

Every delivering process looks now and then, and warns at most once a minute. `/metrics` has the figures.
"""

import structlog

from hookline.clock import Clock
from hookline.errors import StoreRefused, StoreUnavailable
from hookline.rules.old_snapshots import (
    OLD_S,
    is_long,
    is_old,
)
from hookline.store.contract import Bloat, Snapshot, Store

LOOK_EVERY = 10.0  # seconds
SAY_EVERY = 60.0

REMEDIES = {
    "session": "End it, or have PostgreSQL do so: SELECT pg_terminate_backend(pid).",
    "prepared transaction": "Finish it: COMMIT PREPARED or ROLLBACK PREPARED.",
    "replication slot": "Start what reads from it, or drop it: SELECT pg_drop_replication_slot(name).",
    "standby": "End what is being asked there, or set hot_standby_feedback = off on it.",
}

log = structlog.get_logger()


class SnapshotWatch:
    """Looks, and warns."""

    def __init__(self, store: Store, clock: Clock, *, old_s: float = OLD_S) -> None:
        self._store = store
        self._clock = clock
        self._old_s = old_s
        self._said_at = float("-inf")

    async def run(self) -> None:
        """Look now and then, until cancelled."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            await self.look()

    async def look(self) -> None:
        """Warn if there is a reason and the last warning is not recent."""
        try:
            bloat = await self._store.bloat()
        except (StoreRefused, StoreUnavailable) as error:
            log.debug("store.bloat_unknown", error=str(error))
            return
        old = [
            each
            for each in bloat.snapshots
            if is_old(seconds=each.seconds, transactions=each.transactions, old_s=self._old_s)
        ]
        if not (old or is_long(bloat.log_bytes)) or self._clock.monotonic() < self._said_at + SAY_EVERY:
            return
        self._said_at = self._clock.monotonic()
        if old:
            self._say(max(old, key=_age), bloat)
        else:
            log.warning(
                "store.long_log",
                log_bytes=bloat.log_bytes,
                remedy="End the program that keeps a transaction open on this file.",
            )

    def _say(self, snapshot: Snapshot, bloat: Bloat) -> None:
        log.warning(
            "store.old_snapshot",
            held_by=snapshot.held_by,
            name=snapshot.name,
            pid=snapshot.pid,
            age_s=None if snapshot.seconds is None else round(snapshot.seconds),
            transactions=snapshot.transactions,
            dead_rows=sum(bloat.dead_rows.values()),
            remedy=REMEDIES[snapshot.held_by],
        )


def _age(snapshot: Snapshot) -> tuple[int, float]:
    return snapshot.transactions, snapshot.seconds or 0.0
