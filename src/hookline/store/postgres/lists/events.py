"""Builds the statements that list events by a filter."""

from hookline.model import DEFAULT_ACCOUNT, EventId
from hookline.store.contract.events import SHOWN_PAYLOAD_BYTES, EventFilter
from hookline.store.postgres.lists.conditions import PostgresConditions, Statement
from hookline.store.postgres.sql import LOOK_AHEAD, LOOK_PART

LIST_EVENTS = f"""
SELECT e.id, e.account, e.type, CASE WHEN length(e.payload) <= {SHOWN_PAYLOAD_BYTES} THEN e.payload END AS payload,
  length(e.payload) AS payload_bytes, e.idempotency_key, date_part('epoch', e.deliver_at) AS deliver_at,
  date_part('epoch', e.created_at) AS created_at
FROM events e WHERE {{conditions}} ORDER BY {{order}} DESC LIMIT {{limit}}
"""
# The key's column comes second in its index, so accounts are gone through one by one, with a lookup each. It is an
# array, because with IN the planner walks all events in the list's order.
BY_KEY = """e.id = ANY (ARRAY (
  WITH RECURSIVE accounts AS (
    (SELECT account FROM idempotency ORDER BY account LIMIT 1)
    UNION ALL
    SELECT (SELECT i.account FROM idempotency i WHERE i.account > a.account ORDER BY i.account LIMIT 1)
    FROM accounts a WHERE a.account IS NOT NULL)
  SELECT i.event_id FROM accounts a JOIN idempotency i ON i.account = a.account AND i.key = {}))"""
BY_KEY_OF_ACCOUNT = "e.id = (SELECT i.event_id FROM idempotency i WHERE i.account = {account} AND i.key = {})"
# The predicate of `events_account`. The default account is not in it: where accounts are not in use the index costs
# nothing, and where they are, a walk through all events meets the default account's soon enough.
IN_INDEX = f"e.account <> '{DEFAULT_ACCOUNT}'"


def look_ahead(filter: EventFilter, *, after: EventId | None, limit: int) -> Statement | None:
    """How many events a list reads next, at most `limit`, matching or not, and the id of the last.

    None where an index finds the matching ones.
    """
    named = filter.type, filter.since, filter.until
    by_index = filter.account != DEFAULT_ACCOUNT and all(each is None for each in named)
    if filter.idempotency_key is not None or by_index:
        return None
    asked = PostgresConditions()
    order = _walk(filter, asked, after=after)
    most = asked.bind(limit, "int")
    part = LOOK_PART.format(id="e.id", source="events e", conditions=asked.also(), order=order, limit=most)
    return LOOK_AHEAD.format(looked=part), asked.values


def event_list(
    filter: EventFilter, *, after: EventId | None, limit: int, floor: EventId | None = None
) -> Statement:
    """Newest first, from below `after`, not below `floor`, starting where the fewest rows are read."""
    asked = PostgresConditions()
    asked.add("e.type = {}", filter.type, "text")
    asked.add("e.created_at >= {}", filter.since, "float8")
    asked.add("e.created_at < {}", filter.until, "float8")
    asked.add("e.id >= {}", floor, "uuid")
    if filter.idempotency_key is not None:
        if filter.account is None:
            asked.add(BY_KEY, filter.idempotency_key, "text")
        else:
            of_account = BY_KEY_OF_ACCOUNT.replace("{account}", asked.bind(filter.account, "text"))
            asked.add(of_account, filter.idempotency_key, "text")
    if filter.account == DEFAULT_ACCOUNT or filter.idempotency_key is not None:
        asked.add("e.account = {}", filter.account, "text")
    order = _walk(filter, asked, after=after)
    most = asked.bind(limit, "int")
    return LIST_EVENTS.format(conditions=asked.also(), order=order, limit=most), asked.values


def _walk(filter: EventFilter, asked: PostgresConditions, *, after: EventId | None) -> str:
    """Add the two ends of the walk along one index; the order of that index."""
    asked.add("e.id >= {}", filter.first_id, "uuid")
    asked.add("e.id < {}", filter.beyond_id, "uuid")
    asked.add("e.id < {}", after, "uuid")
    if filter.account in (None, DEFAULT_ACCOUNT) or filter.idempotency_key is not None:
        return "e.id"
    # Both columns, so that no other index gives this order, however old the statistics are.
    asked.add("e.account = {} AND " + IN_INDEX, filter.account, "text")
    return "e.account DESC, e.id"
