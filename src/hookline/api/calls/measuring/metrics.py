"""Serves the metrics that monitoring reads.

Prometheus' text format, made when it is asked for: nothing is observed per attempt. No label names an account or an
endpoint. The figures are those of the answering process, or of the whole installation; `docs/metrics.md` says which.
"""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from starlette.responses import Response

from hookline.api.call import Call, CallRequest, CallScope, Nothing
from hookline.api.metrics.installation import InstallationMetrics
from hookline.api.metrics.process import ProcessMetrics
from hookline.app import Hookline

MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class MetricCalls:
    """The call `/metrics`."""

    def __init__(self, hookline: Hookline, *, codes: Iterable[str]) -> None:
        self._scope = CallScope.OPEN if hookline.settings.open_metrics else CallScope.READ
        self._installation = InstallationMetrics(hookline.figures, hookline.clock)
        self._registry = CollectorRegistry()  # not the library's own, which an application may use
        self._registry.register(self._installation)
        self._registry.register(ProcessMetrics(hookline, codes=codes))
        ProcessCollector(registry=self._registry)

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="GET",
                path="/metrics",
                summary="Get the metrics of this process and of the installation in Prometheus format",
                scope=self._scope,
                for_accounts=False,
                handler=self.show,
                media="text/plain",
            )
        ]

    async def show(self, asked: CallRequest[Nothing, None]) -> Response:
        await self._installation.renew()
        return Response(
            generate_latest(self._registry), headers={"cache-control": "no-store"}, media_type=MEDIA
        )
