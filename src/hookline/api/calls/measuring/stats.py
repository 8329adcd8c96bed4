"""Answers the call about an endpoint's statistics."""

import msgspec

from hookline.api.call import Call, CallRequest, CallScope
from hookline.api.request.parameters import Window
from hookline.app import Hookline
from hookline.reports import queries
from hookline.reports.stats import StatsReport, endpoint_stats
from hookline.validate.windows import window_seconds


class StatsWindow(msgspec.Struct, frozen=True, kw_only=True):
    """How far does it look back? Minutes, hours or days, up to 90 days."""

    window: Window = "24h"


class StatsCalls:
    """The call `/v1/endpoints/{endpoint_id}/stats`."""

    def __init__(self, hookline: Hookline) -> None:
        self._store = hookline.store
        self._clock = hookline.clock

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="GET",
                path="/v1/endpoints/{endpoint_id}/stats",
                summary="Get an endpoint's latencies and answers over a window",
                scope=CallScope.READ,
                handler=self.show,
                query=StatsWindow,
                answer=StatsReport,
            )
        ]

    async def show(self, asked: CallRequest[StatsWindow, None]) -> StatsReport:
        endpoint = await queries.endpoint(self._store, asked.endpoint_id)
        window = window_seconds(asked.query.window)
        return await endpoint_stats(self._store, self._clock, endpoint.id, window=window)
