"""Publishes events in an application's own transaction.

`publish` and `apublish` have two names, because a forgotten `await` would lose the event without a word.
"""

from collections.abc import Iterable
from datetime import datetime

from hookline.model import DEFAULT_ACCOUNT
from hookline.outbox import aio, blocking
from hookline.outbox.drafts import Draft, EventId, checked, checked_together, shown
from hookline.outbox.kinds import AsyncConnection, SyncConnection, async_kind_of, sync_kind_of
from hookline.validate.payload_encoding import Payload


def publish(
    connection: SyncConnection,
    type: str,
    payload: Payload,
    *,
    account: str = DEFAULT_ACCOUNT,
    idempotency_key: str | None = None,
    deliver_at: datetime | None = None,
    hops: int = 0,
    table: str | None = None,
) -> EventId:
    """Publish an event exactly if the connection's open transaction commits; returns the event's id.

    One INSERT. Bytes must be one JSON value and are sent unchanged. If the idempotency key was used before, the event
    of its first use stands and the returned id is never seen: find the event by its key.
    `hops` is the hop count (`Verified.hops`) of the webhook that caused this publish. It ends loops.
    `table` is where the outbox is, if not where `ddl` puts it.
    """
    sync_kind_of(connection)
    row = checked(Draft(type, payload, account, idempotency_key, deliver_at, hops))
    blocking.insert(connection, [row], table)
    return shown(row)


async def apublish(
    connection: AsyncConnection,
    type: str,
    payload: Payload,
    *,
    account: str = DEFAULT_ACCOUNT,
    idempotency_key: str | None = None,
    deliver_at: datetime | None = None,
    hops: int = 0,
    table: str | None = None,
) -> EventId:
    """`publish` for asynchronous connections."""
    async_kind_of(connection)
    row = checked(Draft(type, payload, account, idempotency_key, deliver_at, hops))
    await aio.insert(connection, [row], table)
    return shown(row)


def publish_many(
    connection: SyncConnection, drafts: Iterable[Draft], *, table: str | None = None
) -> list[EventId]:
    """Publish up to 1,000 events in their order, all of them or none, exactly if the open transaction commits."""
    sync_kind_of(connection)
    rows = checked_together(drafts)
    if rows:
        blocking.insert(connection, rows, table)
    return [shown(row) for row in rows]


async def apublish_many(
    connection: AsyncConnection, drafts: Iterable[Draft], *, table: str | None = None
) -> list[EventId]:
    """`publish_many` for asynchronous connections."""
    async_kind_of(connection)
    rows = checked_together(drafts)
    if rows:
        await aio.insert(connection, rows, table)
    return [shown(row) for row in rows]
