"""Publishes events in an application's own transaction: an event exists exactly if that commits.

It imports nothing of the server and no database driver. The workers read the table (`pipeline/outbox/`).
"""

from hookline.outbox.drafts import Draft, EventId, Payload
from hookline.outbox.errors import (
    NotInTransaction,
    OutboxBusy,
    OutboxError,
    OutboxForbidden,
    OutboxMissing,
    TransactionFailed,
)
from hookline.outbox.kinds import AsyncConnection, SyncConnection
from hookline.outbox.nudging import nudge
from hookline.outbox.publishing import apublish, apublish_many, publish, publish_many
from hookline.outbox.table import ddl

__all__ = [
    "AsyncConnection",
    "Draft",
    "EventId",
    "NotInTransaction",
    "OutboxBusy",
    "OutboxError",
    "OutboxForbidden",
    "OutboxMissing",
    "Payload",
    "SyncConnection",
    "TransactionFailed",
    "apublish",
    "apublish_many",
    "ddl",
    "nudge",
    "publish",
    "publish_many",
]
