"""Answers the call about health."""

import msgspec

from hookline.api.call import Call, CallRequest, CallScope
from hookline.api.request.parameters import Account
from hookline.app import Hookline
from hookline.reports.views import HealthReport


class HealthQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose endpoints."""

    account: Account | None = None


class HealthCalls:
    """The call `/v1/health`."""

    def __init__(self, hookline: Hookline) -> None:
        self._health = hookline.health

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="GET",
                path="/v1/health",
                summary="Get how much waits, fails and arrives; the counts may be some seconds old",
                scope=CallScope.READ,
                handler=self.show,
                query=HealthQuery,
                answer=HealthReport,
            )
        ]

    async def show(self, asked: CallRequest[HealthQuery, None]) -> HealthReport:
        return await self._health.report(asked.query.account)
