# Generated from client/aio by scripts/mirror_client.py: change that, and run it.
"""Calls about outboxes."""

from datetime import datetime

from hookline.client import call as calls
from hookline.client.answers import Published
from hookline.client.blocking.listing import Listing, Sends
from hookline.client.call import step
from hookline.client.outbox import Outboxes, RefusedRow


class OutboxMethods(Sends):
    """See the outboxes, and list, retry and discard their rows that were refused."""

    def outboxes(self) -> Outboxes:
        """Get whether each outbox can be read, and what waits there."""
        return self.send(calls.get("/v1/outbox", Outboxes))

    def refused_rows(
        self,
        *,
        account: str | None = None,
        event_type: str | None = None,
        code: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Listing[RefusedRow]:
        """List rows that were refused, without payloads; `since` and `until` refer to the time of the refusal."""
        return Listing(
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

    def refused_row(self, id: str) -> RefusedRow:
        """Get a refused row with its payload."""
        return self.send(calls.get(f"/v1/outbox/refused/{step(id)}", RefusedRow))

    def retry_refused_row(self, id: str) -> Published:
        """Publish a refused row under its id. Refused again, it stays, and the error says why."""
        return self.send(calls.post(f"/v1/outbox/refused/{step(id)}/retry", Published))

    def discard_refused_row(self, id: str) -> RefusedRow:
        """Discard a refused row for good."""
        return self.send(calls.post(f"/v1/outbox/refused/{step(id)}/discard", RefusedRow))
