"""How are the questions about events answered on PostgreSQL?"""

from collections.abc import Sequence

from hookline.model import DEFAULT_ACCOUNT, Attempt, AttemptId, EventId, State
from hookline.store.events import SHOWN_PAYLOAD_BYTES, EventFilter, ListedEvent
from hookline.store.postgres import rows
from hookline.store.postgres.links import Links
from hookline.store.postgres.lists import Conditions, Statement
from hookline.store.postgres.sql import ATTEMPT_COLUMNS

LIST_EVENTS = f"""
SELECT e.id, e.account, e.type, CASE WHEN length(e.payload) <= {SHOWN_PAYLOAD_BYTES} THEN e.payload END AS payload,
  length(e.payload) AS payload_bytes, e.idempotency_key, date_part('epoch', e.deliver_at) AS deliver_at,
  date_part('epoch', e.created_at) AS created_at
FROM events e WHERE {{conditions}} ORDER BY {{order}} LIMIT {{limit}}
"""
# The key's column comes second in its index: accounts are gone through one by one, a lookup each. An array, because
# with IN the planner walks all events in the list's order.
BY_KEY = """e.id = ANY (ARRAY (
  WITH RECURSIVE accounts AS (
    (SELECT account FROM idempotency ORDER BY account LIMIT 1)
    UNION ALL
    SELECT (SELECT i.account FROM idempotency i WHERE i.account > a.account ORDER BY i.account LIMIT 1)
    FROM accounts a WHERE a.account IS NOT NULL)
  SELECT i.event_id FROM accounts a JOIN idempotency i ON i.account = a.account AND i.key = {}))"""
BY_KEY_OF_ACCOUNT = "e.id = (SELECT i.event_id FROM idempotency i WHERE i.account = {account} AND i.key = {})"
# The predicate of `events_account`. The default account is not in it: where accounts are not in use it costs
# nothing, and where they are that one's events are met soon enough on the way through all of them.
IN_INDEX = f"e.account <> '{DEFAULT_ACCOUNT}'"

COUNT_BY_STATE = """
SELECT e.id AS event_id, d.state, count(*) AS n
FROM unnest($1::uuid[]) AS e (id) JOIN deliveries d ON d.id BETWEEN e.id AND last_delivery_of(e.id)
GROUP BY e.id, d.state
"""

LIST_ATTEMPTS = f"""
WITH page AS MATERIALIZED (
  SELECT a.delivery_id, a.id FROM attempts a
  WHERE a.delivery_id BETWEEN $1 AND last_delivery_of($1) AND ($2::uuid IS NULL OR a.id < $2)
  ORDER BY a.id DESC LIMIT $3)
SELECT {ATTEMPT_COLUMNS} FROM attempts JOIN page USING (delivery_id, id) ORDER BY id DESC
"""


class PostgresEvents:
    """The contract's verbs about events."""

    _desk: Links
    _lists: Links

    async def list_events(
        self, filter: EventFilter, *, after: EventId | None, limit: int
    ) -> list[ListedEvent]:
        """See the contract."""
        statement, values = event_list(filter, after=after, limit=limit)
        return [ListedEvent(**row) for row in await self._lists.fetch(statement, *values)]

    async def count_by_state(self, events: Sequence[EventId]) -> dict[EventId, dict[State, int]]:
        """See the contract."""
        found = {event: dict.fromkeys(State, 0) for event in events}
        for row in await self._lists.fetch(COUNT_BY_STATE, events):
            found[row["event_id"]][State(row["state"])] = row["n"]
        return found

    async def list_attempts(self, event: EventId, *, after: AttemptId | None, limit: int) -> list[Attempt]:
        """See the contract."""
        return [rows.attempt(row) for row in await self._desk.fetch(LIST_ATTEMPTS, event, after, limit)]


def event_list(filter: EventFilter, *, after: EventId | None, limit: int) -> Statement:
    """Newest first, from below `after`, from the start that reads the fewest rows."""
    asked = Conditions()
    asked.add("e.account = {}", filter.account, "text")
    asked.add("e.type = {}", filter.type, "text")
    asked.add("e.created_at >= {}", filter.since, "float8")
    asked.add("e.created_at < {}", filter.until, "float8")
    asked.add("e.id >= {}", filter.first_id, "uuid")
    asked.add("e.id < {}", filter.beyond_id, "uuid")
    asked.add("e.id < {}", after, "uuid")
    more, order = [], "e.id DESC"
    if filter.idempotency_key is not None:
        key = asked.bind(filter.idempotency_key, "text")
        if filter.account is None:
            more.append(BY_KEY.format(key))
        else:
            more.append(BY_KEY_OF_ACCOUNT.format(key, account=asked.bind(filter.account, "text")))
    elif filter.account not in (None, DEFAULT_ACCOUNT):
        # Both columns, so that no other index brings that order, however old the statistics are.
        more, order = [IN_INDEX], "e.account DESC, e.id DESC"
    most = asked.bind(limit, "int")
    statement = LIST_EVENTS.format(conditions=asked.also(*more), order=order, limit=most)
    return statement, asked.values
