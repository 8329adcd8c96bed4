"""Answers the call that accounts for every delivery that was ever accepted."""

import msgspec

from hookline import rfc3339
from hookline.api.call import Call, CallRequest, CallScope
from hookline.api.request.parameters import Account
from hookline.app import Hookline
from hookline.reports.views import ConservationReport


class ConservationQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose deliveries."""

    account: Account | None = None


class ConservationCalls:
    """The call `/v1/conservation`."""

    def __init__(self, hookline: Hookline) -> None:
        self._figures = hookline.figures

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="GET",
                path="/v1/conservation",
                summary="Count all deliveries ever accepted by state; the result may be a few seconds old",
                scope=CallScope.READ,
                handler=self.show,
                query=ConservationQuery,
                answer=ConservationReport,
            )
        ]

    async def show(self, asked: CallRequest[ConservationQuery, None]) -> ConservationReport:
        counted = await self._figures.conservation(asked.query.account)
        return ConservationReport(
            account=asked.query.account,
            accepted=counted.value.accepted,
            **msgspec.structs.asdict(counted.value),
            as_of=rfc3339.show(counted.as_of),
        )
