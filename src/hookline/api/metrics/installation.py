"""Collects the figures of the whole installation, which are the same from every process.

They have to be counted, and are some seconds old (see `hookline.reports.counts`). A scrape waits only a moment for new
ones: if the database is stuck, the last ones are shown and `hookline_counted_age_seconds` grows. A figure that this
process never counted has no sample.
"""

from collections.abc import Iterator

import msgspec
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from hookline.api.metrics.families import gauge, gauges
from hookline.clock import Clock
from hookline.reports.counts import Figures, InstallationHealth, Newest
from hookline.store.contract import Bloat

WITHIN = 1.0  # seconds that a scrape waits for new counts; Prometheus gives up after 10

_NOTHING = Newest(conservation=None, health=None, bloat=None)


class InstallationMetrics(Collector):
    """The newest figures, as of the last `renew`."""

    def __init__(self, figures: Figures, clock: Clock) -> None:
        self._figures = figures
        self._clock = clock
        self._newest = _NOTHING

    async def renew(self) -> None:
        """Count again if it is time to."""
        self._newest = await self._figures.newest(within=WITHIN)

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        yield from self._conservation()
        yield from self._health(self._newest.health)
        if self._newest.bloat is not None:
            yield from _of_the_store(self._newest.bloat)

    def _conservation(self) -> Iterator[Metric]:
        counted = self._newest.conservation
        yield gauge(
            "hookline_accepted_deliveries",
            "Deliveries that were ever accepted: the sum of hookline_deliveries over its states.",
            None if counted is None else counted.value.accepted,
        )
        yield gauges(
            "hookline_deliveries",
            "Where the deliveries are that were ever accepted.",
            "state",
            {} if counted is None else msgspec.structs.asdict(counted.value),
        )
        yield gauge(
            "hookline_deliveries_counted_at_seconds",
            "When the deliveries were counted, in seconds since 1970.",
            None if counted is None else counted.as_of,
        )

    def _health(self, health: InstallationHealth | None) -> Iterator[Metric]:
        yield gauge(
            "hookline_counted_age_seconds",
            "For how long the counted figures of the installation have not been counted again.",
            float("inf") if health is None else self._age(health.at),
        )
        yield gauge(
            "hookline_pending",
            "Deliveries that are pending, new ones and those that wait for a retry.",
            None if health is None else health.pending,
        )
        yield gauge(
            "hookline_dead_letters", "Deliveries that are dead.", None if health is None else health.dead
        )
        yield gauge(
            "hookline_oldest_pending_age_seconds",
            "For how long the oldest pending delivery has been accepted, due or not; 0: none is pending.",
            None if health is None else self._age(health.oldest_pending),
        )
        yield gauge(
            "hookline_oldest_due_age_seconds",
            "For how long the oldest delivery that is due and not held back has been waiting; 0: none is.",
            None if health is None else self._age(health.oldest_due),
        )
        yield gauge(
            "hookline_circuits_open",
            "Endpoints whose circuit is open or half-open.",
            None if health is None else health.circuits_open,
        )

        yield gauge(
            "hookline_outbox_waiting",
            "Rows of outboxes that wait, when they were last looked at.",
            None if health is None else health.outbox_waiting,
        )
        yield gauge(
            "hookline_outbox_late_seconds",
            "For how long the oldest row of an outbox has waited, or an outbox was not read; 0: none is late.",
            None if health is None else self._age(health.outbox_late_since),
        )
        yield gauge(
            "hookline_outbox_refused",
            "Rows of outboxes that were refused and wait for a decision.",
            None if health is None else health.outbox_refused,
        )

    def _age(self, since: float | None) -> float:
        return 0.0 if since is None else max(0.0, self._clock.now() - since)


def _of_the_store(bloat: Bloat) -> Iterator[Metric]:
    """Figures that should not grow; each store has its own."""
    if bloat.log_bytes is not None:
        yield gauge("hookline_store_log_bytes", "Length of SQLite's write-ahead log.", bloat.log_bytes)
        return
    yield gauge(
        "hookline_store_oldest_snapshot_age_seconds",
        "For how long somebody has kept dead rows of the database from being cleaned up.",
        bloat.oldest_seconds,
    )
    yield gauge(
        "hookline_store_oldest_snapshot_age_transactions",
        "How many transactions began since; replication slots and standbys count here too.",
        bloat.oldest_transactions,
    )
    yield gauges(
        "hookline_store_dead_rows",
        "Rows that are dead and not cleaned up, as PostgreSQL estimates it.",
        "table",
        dict(sorted(bloat.dead_rows.items())),
    )
