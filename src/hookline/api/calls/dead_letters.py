"""Answers the calls that list, analyse, replay and discard dead letters."""

from typing import Annotated

import msgspec

from hookline.api.call import Call, CallRequest, CallScope, Nothing, Page, Paged
from hookline.api.calls.deliveries import DeliveryCalls
from hookline.api.request.parameters import (
    Account,
    DeadReason,
    DiedSince,
    DiedUntil,
    EventType,
    OfEndpoint,
    Window,
)
from hookline.app import Hookline
from hookline.model import State
from hookline.reports.views import AnalysisReport, DeliveryReport
from hookline.store.contract import DeliveryFilter


class DeadLetters(Paged, frozen=True, kw_only=True):
    """Which dead letters? `since` and `until` are of their death; with `replayed` those that were replayed."""

    account: Account | None = None
    endpoint_id: OfEndpoint | None = None
    event_type: EventType | None = None
    reason: DeadReason | None = None
    since: DiedSince | None = None
    until: DiedUntil | None = None
    replayed: Annotated[
        bool,
        msgspec.Meta(description="true: those that died and were replayed, instead of those that are dead"),
    ] = False


class AnalysisQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters? Those that died within the window that ends now."""

    window: Window = "24h"
    account: Account | None = None
    endpoint_id: OfEndpoint | None = None


class DeadLetterCalls:
    """The calls under `/v1/dead-letters`."""

    def __init__(self, hookline: Hookline, deliveries: DeliveryCalls) -> None:
        self._admin = hookline.dead_letters
        self._analysis = hookline.analysis
        self._deliveries = deliveries

    def table(self) -> list[Call]:
        """The calls."""
        return [
            Call(
                method="GET",
                path="/v1/dead-letters",
                summary="List dead letters",
                scope=CallScope.READ,
                handler=self.list_dead_letters,
                query=DeadLetters,
                answer=Page[DeliveryReport],
            ),
            Call(
                method="GET",
                path="/v1/dead-letters/analysis",
                summary="Analyse dead letters: what those of each endpoint have in common, and what to do about it",
                scope=CallScope.READ,
                handler=self.analyse,
                query=AnalysisQuery,
                answer=AnalysisReport,
            ),
            Call(
                method="POST",
                path="/v1/dead-letters/{delivery_id}/replay",
                summary="Replay a dead letter; its retry schedule starts again",
                scope=CallScope.ADMIN,
                handler=self.replay,
                body=Nothing,
                answer=DeliveryReport,
                status=202,
                problems=("wrong_state",),
            ),
            Call(
                method="POST",
                path="/v1/dead-letters/{delivery_id}/discard",
                summary="Discard a dead letter",
                scope=CallScope.ADMIN,
                handler=self.discard,
                body=Nothing,
                answer=DeliveryReport,
                problems=("wrong_state",),
            ),
        ]

    async def list_dead_letters(self, asked: CallRequest[DeadLetters, None]) -> Page[DeliveryReport]:
        query = asked.query
        chosen = DeliveryFilter(
            state=None if query.replayed else State.DEAD,
            is_replayed=query.replayed,
            account=query.account,
            endpoint_id=query.endpoint_id,
            event_type=query.event_type,
            reason=query.reason,
            died_since=query.since,
            died_until=query.until,
        )
        return await self._deliveries.page(asked, chosen)

    async def analyse(self, asked: CallRequest[AnalysisQuery, None]) -> AnalysisReport:
        query = asked.query
        return await self._analysis.of(query.window, account=query.account, endpoint=query.endpoint_id)

    async def replay(self, asked: CallRequest[Nothing, Nothing]) -> DeliveryReport:
        id = asked.delivery_id
        await self._admin.replay(id)
        return await self._deliveries.report(id)

    async def discard(self, asked: CallRequest[Nothing, Nothing]) -> DeliveryReport:
        id = asked.delivery_id
        await self._admin.discard(id)
        return await self._deliveries.report(id)
