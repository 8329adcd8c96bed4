"""Shows events on PostgreSQL."""

from collections.abc import Sequence
from itertools import chain, repeat

from hookline.errors import NotFound
from hookline.ids import show
from hookline.model import Attempt, AttemptId, Event, EventId, State
from hookline.store import spoiled_rows
from hookline.store.contract.events import EventFilter, ListedEvent
from hookline.store.postgres import sql
from hookline.store.postgres.deliveries import read_attempt
from hookline.store.postgres.driver.sessions import PostgresSessions
from hookline.store.postgres.lists.conditions import STEPS
from hookline.store.postgres.lists.events import event_list, look_ahead

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
SELECT {sql.ATTEMPT_COLUMNS} FROM attempts JOIN page USING (delivery_id, id) ORDER BY id DESC
"""


class PostgresEvents(PostgresSessions):
    """The contract's verbs about events."""

    async def event(self, event: EventId) -> Event | None:
        """See the contract."""
        found = await self._general.fetch(sql.READ_EVENT, event)
        return Event(**found[0]) if found else None

    async def payload(self, event: EventId) -> bytes:
        """See the contract."""
        found = await self._loads.fetch(sql.READ_PAYLOAD, event)
        if not found:
            raise NotFound("event", show("event", event))
        payload: bytes = found[0]["payload"]
        return payload

    async def list_events(
        self, filter: EventFilter, *, after: EventId | None, limit: int
    ) -> list[ListedEvent]:
        """See the contract."""
        found: list[ListedEvent] = []
        for looked in chain(STEPS, repeat(STEPS[-1])):
            floor: EventId | None = None
            if (ahead := look_ahead(filter, after=after, limit=looked)) is not None:
                [(looked_at, lowest)] = await self._lists.fetch(ahead[0], *ahead[1])
                floor = lowest if looked_at == looked else None
            statement, values = event_list(filter, after=after, limit=limit - len(found), floor=floor)
            found += [ListedEvent(**row) for row in await self._lists.fetch(statement, *values)]
            if floor is None or len(found) == limit:
                break
            after = floor
        return found

    async def count_by_state(self, events: Sequence[EventId]) -> dict[EventId, dict[State, int]]:
        """See the contract."""
        found = {event: dict.fromkeys(State, 0) for event in events}
        for row in await self._lists.fetch(COUNT_BY_STATE, events):
            if row["state"] in found[row["event_id"]]:  # a row may hold any word
                found[row["event_id"]][State(row["state"])] = row["n"]
        return found

    async def list_attempts(self, event: EventId, *, after: AttemptId | None, limit: int) -> list[Attempt]:
        """See the contract."""
        found = await self._general.fetch(LIST_ATTEMPTS, event, after, limit)
        return spoiled_rows.read_all(map(read_attempt, found))
