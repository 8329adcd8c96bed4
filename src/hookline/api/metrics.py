"""What does monitoring read?

Prometheus' text format. Figures of the whole installation, the same from every process: no label names an account or an
endpoint. What has to be counted is some seconds old (see `figures`).
"""

from collections.abc import Iterator, Mapping

import msgspec
from starlette.responses import Response

from hookline.api.table import Asked, Call, Nothing, Scope
from hookline.app import Hookline

MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class MetricCalls:
    """The call `/metrics`."""

    def __init__(self, hookline: Hookline) -> None:
        self._figures = hookline.figures
        self._scope = Scope.OPEN if hookline.settings.open_metrics else Scope.READ

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="GET",
                path="/metrics",
                summary="Figures of the whole installation, for Prometheus",
                scope=self._scope,
                for_accounts=False,
                handler=self.show,
                media="text/plain",
            )
        ]

    async def show(self, asked: Asked[Nothing, None]) -> Response:
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
        ]
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        return Response("\n".join([*lines, ""]), headers=headers, media_type=MEDIA)


def _gauge(name: str, help: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} gauge"
    for labels, value in values.items():
        yield f"{name}{{{labels}}} {value!r}" if labels else f"{name} {value!r}"
