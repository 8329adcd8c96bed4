"""Collects what this process knows of itself.

Nothing here asks the database, so it is there whatever else fails.
"""

from collections.abc import Iterable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from hookline.api.metrics.families import counter, counters, gauge, gauges, histogram
from hookline.app import Hookline
from hookline.pipeline.measuring.latency_distribution import LatencyDistribution
from hookline.rules.client_connections import Full
from hookline.rules.latency_buckets import LatencyKind
from hookline.rules.people import Channel
from hookline.version import VERSION


class ProcessMetrics(Collector):
    """The figures of this process since its start, and its state now."""

    def __init__(self, hookline: Hookline, *, codes: Iterable[str]) -> None:
        self._hookline = hookline
        self._codes = sorted(codes)  # of a publish that is refused: each is shown from the start, with 0

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        yield gauges("hookline_info", "The version of this process; always 1.", "version", {VERSION: 1})
        yield gauge(
            "hookline_ready",
            "Whether this process answers /readyz with 200.",
            int(self._hookline.is_ready),
        )
        yield from self._publishing()
        yield from self._delivering()
        yield from self._notifying()
        yield from self._sessions()
        yield histogram(
            "hookline_loop_lag_seconds",
            "How late the event loop woke a task that slept for a second.",
            self._hookline.loop_lag,
        )

    def _publishing(self) -> Iterator[Metric]:
        intake, refused = self._hookline.intake, self._hookline.publish_refused
        yield histogram(
            "hookline_publish_seconds",
            "Time from the arrival of a publish to the commit that made its event durable, per event.",
            intake.seconds,
        )
        yield counters(
            "hookline_publish_refused",
            "Publishes that the API refused, and events refused in batches, by problem code.",
            "code",
            {code: refused[code] for code in [*self._codes, *sorted(refused.keys() - self._codes)]},
        )
        yield counters(
            "hookline_connections_refused",
            "Connections of clients that were over a limit, by whose limit.",
            "limit",
            {limit.value: self._hookline.connections_refused[limit.value] for limit in Full},
        )
        yield histogram("hookline_accept_batch_size", "Events per commit of publishes.", intake.batches)

    def _delivering(self) -> Iterator[Metric]:
        worker = self._hookline.worker
        settler = worker.settler
        yield counters(
            "hookline_deliveries",
            "Attempts settled, by what became of the delivery.",
            "outcome",
            {
                "delivered": settler.delivered,
                "retry": settler.retried,
                "dead": settler.died + worker.events.recovery.condemned,
                "late": settler.late,
            },
        )
        measured = settler.meter.since_start()
        yield histogram(
            "hookline_attempt_duration_seconds",
            "Response times of attempts that were settled.",
            LatencyDistribution(measured, LatencyKind.RESPONSE),
        )
        yield histogram(
            "hookline_end_to_end_seconds",
            "Time from publishing to delivered, of deliveries that were not replayed.",
            LatencyDistribution(measured, LatencyKind.END_TO_END),
        )
        yield histogram("hookline_settle_batch_size", "Attempts per commit of results.", settler.batches)
        yield gauge("hookline_lanes_owned", "Lanes that this process owns.", len(worker.ownership.lanes))
        yield gauge(
            "hookline_requests_in_flight", "Requests to endpoints under way.", worker.dispatcher.in_flight
        )
        yield gauge(
            "hookline_request_slots",
            "Requests to endpoints that may be under way at once.",
            worker.dispatcher.slots,
        )
        yield counters(
            "hookline_set_aside_rows",
            "Rows that the database refused and that were set aside.",
            "kind",
            {"settlement": settler.set_aside, "lane": worker.ownership.set_aside},
        )
        yield counter(
            "hookline_sender_shortages",
            "Connections that could not be opened for lack of a descriptor, port or memory.",
            self._hookline.shortages,
        )

    def _notifying(self) -> Iterator[Metric]:
        found = self._hookline.notifications
        yield counters(
            "hookline_notifications_sent",
            "Messages to people that were sent, by channel.",
            "channel",
            {channel.value: found.sent[channel] for channel in Channel},
        )
        yield counters(
            "hookline_notifications_failed",
            "Messages to people that could not be sent and are tried again or given up, by channel.",
            "channel",
            {channel.value: found.failed[channel] for channel in Channel},
        )

    def _sessions(self) -> Iterator[Metric]:
        """The database sessions; SQLite has none."""
        uses = self._hookline.store.sessions()
        if not uses:
            return
        yield gauges(
            "hookline_store_sessions",
            "Database sessions that this process may have.",
            "pool",
            {use.role: use.limit for use in uses},
        )
        yield gauges(
            "hookline_store_sessions_in_use",
            "Database sessions that a call uses now.",
            "pool",
            {use.role: use.in_use for use in uses},
        )
        yield gauges(
            "hookline_store_sessions_waiting",
            "Calls that wait for a database session.",
            "pool",
            {use.role: use.waiting for use in uses},
        )
