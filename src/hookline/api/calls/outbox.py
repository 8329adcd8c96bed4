"""Answers the calls about outboxes, and about rows of theirs that were refused."""

from hookline import ids, rfc3339
from hookline.api.call import Call, CallRequest, CallScope, Nothing, Page, Paged
from hookline.api.request.parameters import (
    Account,
    EventType,
    RefusalCode,
    RefusedSince,
    RefusedUntil,
    SourceName,
)
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.model import EventId
from hookline.reports.outboxes.refused_rows import RefusedRowReport, refused_row_report
from hookline.reports.outboxes.sources import OutboxesReport
from hookline.reports.views import PublishedReport
from hookline.store.contract import RefusedFilter


class RefusedRowsQuery(Paged, frozen=True, kw_only=True):
    """Which refused rows? `since` and `until` are of their refusal."""

    account: Account | None = None
    event_type: EventType | None = None
    code: RefusalCode | None = None
    source: SourceName | None = None
    since: RefusedSince | None = None
    until: RefusedUntil | None = None


class OutboxCalls:
    """The calls under `/v1/outbox`."""

    def __init__(self, hookline: Hookline, pages: Pages) -> None:
        self._store = hookline.store
        self._clock = hookline.clock
        self._admin = hookline.refused_rows
        self._outboxes = hookline.outboxes
        self._pages = pages

    def table(self) -> list[Call]:
        """The calls."""
        one = "/v1/outbox/refused/{row_id}"
        return [
            Call(
                method="GET",
                path="/v1/outbox",
                summary="Get the outboxes: whether each can be read, and what waits there",
                scope=CallScope.READ,
                handler=self.show_sources,
                answer=OutboxesReport,
            ),
            Call(
                method="GET",
                path="/v1/outbox/refused",
                summary="List rows of outboxes that were refused, newest first, without payloads",
                scope=CallScope.READ,
                handler=self.list_refused,
                query=RefusedRowsQuery,
                answer=Page[RefusedRowReport],
            ),
            Call(
                method="GET",
                path=one,
                summary="Get a refused row with its payload",
                scope=CallScope.READ,
                handler=self.show,
                answer=RefusedRowReport,
            ),
            Call(
                method="POST",
                path=f"{one}/retry",
                summary="Publish a refused row under its id; its place in the order is lost",
                scope=CallScope.ADMIN,
                handler=self.retry,
                body=Nothing,
                answer=PublishedReport,
                status=202,
                problems=(
                    "idempotency_conflict",
                    "id_conflict",
                    "fanout_limit",
                    "loop_detected",
                    "schema_mismatch",
                ),
            ),
            Call(
                method="POST",
                path=f"{one}/discard",
                summary="Discard a refused row; it is never sent",
                scope=CallScope.ADMIN,
                handler=self.discard,
                body=Nothing,
                answer=RefusedRowReport,
            ),
        ]

    async def show_sources(self, asked: CallRequest[Nothing, None]) -> OutboxesReport:
        return await self._outboxes.report()

    async def list_refused(self, asked: CallRequest[RefusedRowsQuery, None]) -> Page[RefusedRowReport]:
        query, after = asked.query, self._pages.after(asked)
        chosen = RefusedFilter(
            account=query.account,
            type=query.event_type,
            code=query.code,
            source=query.source,
            since=None if query.since is None else self._clock.asked(query.since),
            until=None if query.until is None else self._clock.asked(query.until),
        )
        found = await self._store.refused_rows(
            chosen, after=None if after is None else int.from_bytes(after), limit=query.limit + 1
        )
        shown = [refused_row_report(each, shown=self._clock.shown) for each in found[: query.limit]]
        return self._pages.page(asked, found, id=lambda row: row.n.to_bytes(16), shown=shown)

    async def show(self, asked: CallRequest[Nothing, None]) -> RefusedRowReport:
        row = await self._admin.read(EventId(asked.id("row")), account=asked.account)
        return refused_row_report(row, shown=self._clock.shown, is_whole=True)

    async def retry(self, asked: CallRequest[Nothing, Nothing]) -> PublishedReport:
        done = await self._admin.retry(EventId(asked.id("row")), account=asked.account)
        return PublishedReport(
            id=ids.show("event", done.id),
            type=done.type,
            account=done.account,
            created_at=rfc3339.show(self._clock.shown(done.created_at)),
            deliveries=done.deliveries,
            duplicate=done.duplicate,
        )

    async def discard(self, asked: CallRequest[Nothing, Nothing]) -> RefusedRowReport:
        row = await self._admin.discard(EventId(asked.id("row")), account=asked.account)
        return refused_row_report(row, shown=self._clock.shown, is_whole=True)
