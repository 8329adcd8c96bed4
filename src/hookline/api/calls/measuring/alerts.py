"""Answers the call that lists alerts."""

from enum import StrEnum
from typing import Annotated

import msgspec

from hookline.api.call import Call, CallRequest, CallScope, Page, Paged
from hookline.api.request.parameters import Account, OfEndpoint
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.model import AlertId, AlertKind
from hookline.reports.alerts import alert_report
from hookline.reports.views import AlertReport
from hookline.store.contract import AlertFilter


class AlertState(StrEnum):
    """Whether it still holds."""

    FIRING = "firing"
    RESOLVED = "resolved"


class AlertQuery(Paged, frozen=True, kw_only=True):
    """Which alerts? A key that is bound to an account sees those of this account."""

    state: Annotated[
        AlertState | None,
        msgspec.Meta(description="only those that are firing, or only those that are resolved"),
    ] = None
    kind: Annotated[AlertKind | None, msgspec.Meta(description="only those of this condition")] = None
    account: Account | None = None
    endpoint_id: OfEndpoint | None = None


class AlertCalls:
    """The call `/v1/alerts`."""

    def __init__(self, hookline: Hookline, pages: Pages) -> None:
        self._store = hookline.store
        self._clock = hookline.clock
        self._pages = pages

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="GET",
                path="/v1/alerts",
                summary="List alerts, newest first; resolved ones are kept for 90 days",
                scope=CallScope.READ,
                handler=self.list_alerts,
                query=AlertQuery,
                answer=Page[AlertReport],
            )
        ]

    async def list_alerts(self, asked: CallRequest[AlertQuery, None]) -> Page[AlertReport]:
        query, after = asked.query, self._pages.after(asked)
        chosen = AlertFilter(
            is_firing=None if query.state is None else query.state is AlertState.FIRING,
            kind=query.kind,
            account=query.account,
            endpoint_id=query.endpoint_id,
        )
        found = await self._store.list_alerts(
            chosen, after=None if after is None else AlertId(after), limit=query.limit + 1
        )
        shown = [alert_report(each, shown=self._clock.shown) for each in found[: query.limit]]
        return self._pages.page(asked, found, id=lambda row: row.id, shown=shown)
