"""Serves the metrics that monitoring reads.

Prometheus' text format. The figures are those of the whole installation, the same from every process unless they say
otherwise. No label names an account or an endpoint. Figures that have to be counted are some seconds old
(see `hookline.reports.counts`).
"""

from collections.abc import Iterator, Mapping

import msgspec
from starlette.responses import Response

from hookline.api.call import Call, CallRequest, CallScope, Nothing
from hookline.app import Hookline
from hookline.store.contract import Bloat

MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class MetricCalls:
    """The call `/metrics`."""

    def __init__(self, hookline: Hookline) -> None:
        self._figures = hookline.figures
        self._hookline = hookline
        self._scope = CallScope.OPEN if hookline.settings.open_metrics else CallScope.READ

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="GET",
                path="/metrics",
                summary="Get the metrics of all processes in Prometheus format",
                scope=self._scope,
                for_accounts=False,
                handler=self.show,
                media="text/plain",
            )
        ]

    async def show(self, asked: CallRequest[Nothing, None]) -> Response:
        counted = await self._figures.conservation()
        oldest = await self._figures.oldest_due_age()
        where = {f'state="{name}"': number for name, number in msgspec.structs.asdict(counted.value).items()}
        lines = [
            *_gauge(
                "hookline_accepted_deliveries",
                "Deliveries that were ever accepted: the sum of hookline_deliveries over its states.",
                {"": counted.value.accepted},
            ),
            *_gauge("hookline_deliveries", "Where the deliveries are that were ever accepted.", where),
            *_gauge(
                "hookline_deliveries_counted_at_seconds",
                "When the deliveries were counted, in seconds since 1970.",
                {"": counted.as_of},
            ),
            *_gauge(
                "hookline_oldest_due_age_seconds",
                "For how long the oldest delivery that is due and not held back has been waiting.",
                {"": oldest},
            ),
            *_metric(
                "hookline_set_aside_rows_total",
                "Rows that the database refused and that were set aside, by this process since it started.",
                {
                    'kind="settlement"': self._hookline.worker.settler.set_aside,
                    'kind="lane"': self._hookline.worker.ownership.set_aside,
                },
                type="counter",
            ),
            *_of_the_store(await self._figures.bloat()),
            *_metric(
                "hookline_sender_shortages_total",
                "Connections that the answering process could not open for lack of a descriptor, port or memory.",
                {"": self._hookline.shortages},
                type="counter",
            ),
        ]
        return Response("\n".join([*lines, ""]), headers={"cache-control": "no-store"}, media_type=MEDIA)


def _of_the_store(bloat: Bloat) -> Iterator[str]:
    """Figures that should not grow; each store has its own."""
    if bloat.log_bytes is not None:
        yield from _gauge(
            "hookline_store_log_bytes", "Length of SQLite's write-ahead log.", {"": bloat.log_bytes}
        )
        return
    yield from _gauge(
        "hookline_store_oldest_snapshot_age_seconds",
        "For how long somebody has kept dead rows of the database from being cleaned up.",
        {"": bloat.oldest_seconds},
    )
    yield from _gauge(
        "hookline_store_oldest_snapshot_age_transactions",
        "How many transactions began since; replication slots and standbys count here too.",
        {"": bloat.oldest_transactions},
    )
    yield from _gauge(
        "hookline_store_dead_rows",
        "Rows that are dead and not cleaned up, as PostgreSQL estimates it.",
        {f'table="{name}"': number for name, number in sorted(bloat.dead_rows.items())},
    )


def _gauge(name: str, help: str, values: Mapping[str, float]) -> Iterator[str]:
    return _metric(name, help, values, type="gauge")


def _metric(name: str, help: str, values: Mapping[str, float], *, type: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {type}"
    for labels, value in values.items():
        yield f"{name}{{{labels}}} {value!r}" if labels else f"{name} {value!r}"
