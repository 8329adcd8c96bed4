"""Builds the statements that list events by a filter."""

from hookline.model import EventId
from hookline.store.contract.events import SHOWN_PAYLOAD_BYTES, EventFilter
from hookline.store.sqlite.lists.conditions import STEP_ROWS, SqliteConditions, Statement
from hookline.store.sqlite.sql import LOOK_AHEAD

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
