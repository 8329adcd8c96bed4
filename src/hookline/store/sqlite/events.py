"""Lists events on SQLite."""

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Protocol, TypeVar

from hookline.model import Attempt, AttemptId, EventId, State
from hookline.store.contract.events import SHOWN_PAYLOAD_BYTES, EventFilter, ListedEvent
from hookline.store.sqlite.driver.writer import Work
from hookline.store.sqlite.lists import STEP_ROWS, SqliteConditions, Statement
from hookline.store.sqlite.rows import ABOVE_ALL_IDS, delivery_range, read_attempt
from hookline.store.sqlite.sql import ATTEMPT_COLUMNS, LOOK_AHEAD

T = TypeVar("T")

LIST_EVENTS = f"""
SELECT e.id, e.account, e.type, iif(length(e.payload) <= {SHOWN_PAYLOAD_BYTES}, e.payload, NULL), length(e.payload),
       e.idempotency_key, e.deliver_at, e.created_at
FROM {{source}} WHERE {{conditions}} ORDER BY e.id DESC LIMIT :limit
"""
# The key's column comes second in its index, so accounts are gone through one by one, with a lookup each.
BY_KEY = """e.id IN (
  WITH RECURSIVE accounts (account) AS (
    SELECT min(account) FROM idempotency
    UNION ALL
    SELECT (SELECT min(i.account) FROM idempotency i WHERE i.account > a.account)
    FROM accounts a WHERE a.account IS NOT NULL)
  SELECT i.event_id FROM accounts a CROSS JOIN idempotency i ON i.account = a.account AND i.key = :key)"""
BY_KEY_OF_ACCOUNT = (
    "e.id = (SELECT i.event_id FROM idempotency i WHERE i.account = :account AND i.key = :key)"
)

COUNT_BY_STATE = "SELECT state, count(*) FROM deliveries WHERE id BETWEEN :first AND :last GROUP BY state"

LIST_ATTEMPTS = f"""
SELECT {ATTEMPT_COLUMNS} FROM attempts
WHERE (delivery_id, id) IN (
  SELECT a.delivery_id, a.id FROM attempts a
  WHERE a.delivery_id BETWEEN :first AND :last AND a.id < :before ORDER BY a.id DESC LIMIT :limit)
ORDER BY id DESC
"""


class _Readable(Protocol):
    async def _read(self, work: Work[T]) -> T: ...


class SqliteEvents:
    """The contract's verbs about events."""

    async def list_events(
        self: _Readable, filter: EventFilter, *, after: EventId | None, limit: int
    ) -> list[ListedEvent]:
        """See the contract."""
        found: list[ListedEvent] = []
        while True:
            step = partial(_list_events, filter=filter, after=after, limit=limit - len(found))
            more, after = await self._read(step)
            found += more
            if after is None or len(found) == limit:
                return found

    async def count_by_state(self: _Readable, events: Sequence[EventId]) -> dict[EventId, dict[State, int]]:
        """See the contract."""
        return await self._read(partial(_count_by_state, events=events))

    async def list_attempts(
        self: _Readable, event: EventId, *, after: AttemptId | None, limit: int
    ) -> list[Attempt]:
        """See the contract."""
        return await self._read(partial(_list_attempts, event=event, after=after, limit=limit))


def look_ahead(filter: EventFilter, *, after: EventId | None) -> Statement | None:
    """How many events a list reads next, matching or not, and the id of the last; None: by key it finds few."""
    if filter.idempotency_key is not None:
        return None
    asked = SqliteConditions()
    asked.add("e.account = :account", "account", filter.account)
    asked.add("e.id >= :first", "first", filter.first_id)
    asked.add("e.id < :beyond", "beyond", filter.beyond_id)
    asked.add("e.id < :after", "after", after)
    asked.values["limit"] = STEP_ROWS
    source = "events e" if filter.account is None else "events e INDEXED BY events_account"
    return LOOK_AHEAD.format(
        id="e.id", source=source, conditions=asked.also(), order="e.id DESC"
    ), asked.values


def event_list(
    filter: EventFilter, *, after: EventId | None, limit: int, floor: EventId | None = None
) -> Statement:
    """Newest first, from below `after`, not below `floor`, starting where the fewest rows are read."""
    asked = SqliteConditions()
    asked.add("e.account = :account", "account", filter.account)
    asked.add("e.type = :type", "type", filter.type)
    asked.add("e.created_at >= :since", "since", filter.since)
    asked.add("e.created_at < :until", "until", filter.until)
    asked.add("e.id >= :first", "first", filter.first_id)
    asked.add("e.id < :beyond", "beyond", filter.beyond_id)
    asked.add("e.id < :after", "after", after)
    asked.add("e.id >= :floor", "floor", floor)
    asked.values["limit"] = limit
    source = "events e" if filter.account is None else "events e INDEXED BY events_account"
    if filter.idempotency_key is not None:
        by_key = BY_KEY if filter.account is None else BY_KEY_OF_ACCOUNT
        asked.add(by_key, "key", filter.idempotency_key)
        source = "events e"
    return LIST_EVENTS.format(source=source, conditions=asked.also()), asked.values


def _list_events(
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


def _count_by_state(
    connection: sqlite3.Connection, events: Sequence[EventId]
) -> dict[EventId, dict[State, int]]:
    return {
        event: dict.fromkeys(State, 0)
        | {State(state): n for state, n in connection.execute(COUNT_BY_STATE, delivery_range(event))}
        for event in events
    }


def _list_attempts(
    connection: sqlite3.Connection, event: EventId, *, after: AttemptId | None, limit: int
) -> list[Attempt]:
    values = delivery_range(event) | {"before": after or ABOVE_ALL_IDS, "limit": limit}
    return [read_attempt(row) for row in connection.execute(LIST_ATTEMPTS, values)]
