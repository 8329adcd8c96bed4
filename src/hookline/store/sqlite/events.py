"""Shows events on SQLite."""

import sqlite3
from collections.abc import Sequence
from functools import partial

from hookline.errors import NotFound
from hookline.ids import show
from hookline.model import Attempt, AttemptId, Event, EventId, State
from hookline.store import spoiled_rows
from hookline.store.contract.events import EventFilter, ListedEvent
from hookline.store.sqlite import sql
from hookline.store.sqlite.deliveries import read_attempt
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_loader
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS, delivery_range
from hookline.store.sqlite.lists.conditions import STEP_ROWS
from hookline.store.sqlite.lists.events import event_list, look_ahead

COUNT_BY_STATE = "SELECT state, count(*) FROM deliveries WHERE id BETWEEN :first AND :last GROUP BY state"

LIST_ATTEMPTS = f"""
SELECT {sql.ATTEMPT_COLUMNS} FROM attempts
WHERE (delivery_id, id) IN (
  SELECT a.delivery_id, a.id FROM attempts a
  WHERE a.delivery_id BETWEEN :first AND :last AND a.id < :before ORDER BY a.id DESC LIMIT :limit)
ORDER BY id DESC
"""

_STATES = frozenset(State)


class SqliteEvents(SqliteConnections):
    """The contract's verbs about events."""

    @on_lister
    def event(self, connection: sqlite3.Connection, event: EventId) -> Event | None:
        """One event with its payload."""
        row = connection.execute(sql.READ_EVENT, {"id": event}).fetchone()
        return None if row is None else read_event(row)

    @on_loader
    def payload(self, connection: sqlite3.Connection, event: EventId) -> bytes:
        """The payload of an event whose row exists."""
        row = connection.execute(sql.READ_PAYLOAD, {"id": event}).fetchone()
        if row is None:
            raise NotFound("event", show("event", event))
        payload: bytes = row[0]
        return payload

    async def list_events(
        self, filter: EventFilter, *, after: EventId | None, limit: int
    ) -> list[ListedEvent]:
        """See the contract."""
        return await self._list(partial(_list_step, filter=filter), after=after, limit=limit)

    @on_lister
    def count_by_state(
        self, connection: sqlite3.Connection, events: Sequence[EventId]
    ) -> dict[EventId, dict[State, int]]:
        """See the contract."""
        return {
            event: dict.fromkeys(State, 0)
            | {
                State(state): n
                for state, n in connection.execute(COUNT_BY_STATE, delivery_range(event))
                if state in _STATES  # a row may hold any word
            }
            for event in events
        }

    @on_lister
    def list_attempts(
        self, connection: sqlite3.Connection, event: EventId, *, after: AttemptId | None, limit: int
    ) -> list[Attempt]:
        """See the contract."""
        values = delivery_range(event) | {"before": after or ABOVE_ALL_IDS, "limit": limit}
        return spoiled_rows.read_all(map(read_attempt, connection.execute(LIST_ATTEMPTS, values)))


def _list_step(
    connection: sqlite3.Connection, filter: EventFilter, *, after: EventId | None, limit: int
) -> tuple[list[ListedEvent], EventId | None]:
    """What one step finds, and the id to continue from; None: nothing is left."""
    names = ListedEvent.__struct_fields__
    floor: EventId | None = None
    if (ahead := look_ahead(filter, after=after)) is not None:
        looked_at, lowest = connection.execute(*ahead).fetchone()
        floor = lowest if looked_at == STEP_ROWS else None
    found = connection.execute(*event_list(filter, after=after, limit=limit, floor=floor))
    return [ListedEvent(**dict(zip(names, row, strict=True))) for row in found], floor


def read_event(row: Row) -> Event:
    id, account, type, payload, idempotency_key, deliver_at, hops, trace, created_at = row
    return Event(
        id=id,
        account=account,
        type=type,
        payload=payload,
        idempotency_key=idempotency_key,
        deliver_at=deliver_at,
        hops=hops,
        trace=trace,
        created_at=created_at,
    )
