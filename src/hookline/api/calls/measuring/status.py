"""Answers the call about how the installation is."""

import msgspec

from hookline.api.call import Call, CallRequest, CallScope
from hookline.api.request.parameters import Account
from hookline.app import Hookline
from hookline.reports.status import SituationReport


class StatusQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose endpoints."""

    account: Account | None = None


class StatusCalls:
    """The call `/v1/status`."""

    def __init__(self, hookline: Hookline) -> None:
        self._status = hookline.status

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="GET",
                path="/v1/status",
                summary="Get how the installation is, in a sentence, and what fails; some seconds old",
                scope=CallScope.READ,
                handler=self.show,
                query=StatusQuery,
                answer=SituationReport,
            )
        ]

    async def show(self, asked: CallRequest[StatusQuery, None]) -> SituationReport:
        return await self._status.report(asked.query.account, is_tenant=asked.account is not None)
