"""The server's answers about outboxes."""

import base64
from datetime import datetime

import msgspec

from hookline.client.answers import ApiObject


class RefusedRow(ApiObject, frozen=True, kw_only=True):
    """A row of an outbox that was refused; its text is what the application wrote."""

    id: str
    source: str
    code: str
    detail: str = ""
    account: str = ""
    type: str = ""
    idempotency_key: str | None = None
    deliver_at: datetime | None = None
    hops: int = 0
    published_at: datetime | None = None
    refused_at: datetime | None = None
    payload: msgspec.Raw = msgspec.Raw(b"null")  # in lists null
    payload_bytes: int | None = None
    payload_base64: str | None = None  # if it is not JSON

    @property
    def body(self) -> bytes:
        """The payload, byte for byte as it was written."""
        return bytes(self.payload) if self.payload_base64 is None else base64.b64decode(self.payload_base64)


class OutboxInfo(ApiObject, frozen=True, kw_only=True):
    """An outbox: a database with a table of events to publish."""

    name: str  # "own" is hookline's own database
    state: str  # "ok", "away", "missing", "forbidden" or "unread"
    detail: str | None = None  # why it cannot be read
    waiting: int | None = None  # rows, when it was last looked at; None: it cannot be read
    oldest_age_s: float | None = None  # of the oldest row
    looked_at: datetime | None = None
    clear_at: datetime | None = None  # what was accepted before has left the outbox


class Outboxes(ApiObject, frozen=True, kw_only=True):
    """All outboxes."""

    data: list[OutboxInfo]
    refused: int = 0  # rows that wait for a decision, of every outbox
