"""Calls about outboxes."""

from datetime import datetime

from hookline.client import call as calls
from hookline.client.aio.listing import AsyncListing, AsyncSends
from hookline.client.answers import Published
from hookline.client.call import step
from hookline.client.outbox import Outboxes, RefusedRow


class AsyncOutboxMethods(AsyncSends):
    """See the outboxes, and list, retry and discard their rows that were refused."""

    async def outboxes(self) -> Outboxes:
        """Get whether each outbox can be read, and what waits there."""
        return await self.send(calls.get("/v1/outbox", Outboxes))

    def refused_rows(
        self,
        *,
        account: str | None = None,
        event_type: str | None = None,
        code: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncListing[RefusedRow]:
        """List rows that were refused, without payloads; `since` and `until` refer to the time of the refusal."""
        return AsyncListing(
            self,
            "/v1/outbox/refused",
            RefusedRow,
            account=account,
            event_type=event_type,
            code=code,
            source=source,
            since=since,
            until=until,
        )

    async def refused_row(self, id: str) -> RefusedRow:
        """Get a refused row with its payload."""
        return await self.send(calls.get(f"/v1/outbox/refused/{step(id)}", RefusedRow))

    async def retry_refused_row(self, id: str) -> Published:
        """Publish a refused row under its id. Refused again, it stays, and the error says why."""
        return await self.send(calls.post(f"/v1/outbox/refused/{step(id)}/retry", Published))

    async def discard_refused_row(self, id: str) -> RefusedRow:
        """Discard a refused row for good."""
        return await self.send(calls.post(f"/v1/outbox/refused/{step(id)}/discard", RefusedRow))
