"""Answers the call that lists workers."""

from hookline.api.call import Call, CallRequest, CallScope, Page, Paged
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.model import WorkerId
from hookline.reports.queries import worker_report
from hookline.reports.views import WorkerReport


class WorkerCalls:
    """The call `/v1/workers`."""

    def __init__(self, hookline: Hookline, pages: Pages) -> None:
        self._store = hookline.store
        self._clock = hookline.clock
        self._heartbeat = hookline.settings.heartbeat_s
        self._pages = pages

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="GET",
                path="/v1/workers",
                summary="List workers, the processes that publish and deliver, as of their last heartbeat",
                scope=CallScope.READ,
                handler=self.list_workers,
                query=Paged,
                answer=Page[WorkerReport],
            )
        ]

    async def list_workers(self, asked: CallRequest[Paged, None]) -> Page[WorkerReport]:
        after, limit = self._pages.after(asked), asked.query.limit
        found = await self._store.list_workers(
            after=None if after is None else WorkerId(after), limit=limit + 1
        )
        now = self._clock.now()
        shown = [
            worker_report(each, shown=self._clock.shown, now=now, heartbeat=self._heartbeat)
            for each in found[:limit]
        ]
        return self._pages.page(asked, found, id=lambda row: row.id, shown=shown)
