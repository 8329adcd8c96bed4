"""Counts what flows now on PostgreSQL."""

from hookline.model import DEFAULT_ACCOUNT, EndpointId, EventId
from hookline.store.contract.measuring.flow import CountedEvents, MinuteAttempts
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.postgres.driver.sessions import PostgresSessions
from hookline.store.postgres.lists.events import IN_INDEX

COUNT_EVENTS = """
SELECT count(*) AS looked_at, count(*) FILTER (WHERE $4::text IS NULL OR account = $4) AS number
FROM (SELECT e.account FROM events e WHERE e.id >= $1 AND e.id < $2 ORDER BY e.id LIMIT $3) looked
"""
# The index of the accounts' events does not contain the default account: it is counted among all.
COUNT_EVENTS_OF_ACCOUNT = f"""
SELECT count(*) AS looked_at, count(*) AS number
FROM (SELECT 1 FROM events e WHERE e.id >= $1 AND e.id < $2 AND e.account = $4 AND {IN_INDEX}
      ORDER BY e.account, e.id LIMIT $3) looked
"""
# The row of no endpoint is the sum of all.
MINUTES = """
SELECT date_part('epoch', m.at) AS at, sum(m.attempts)::bigint AS attempts, sum(m.accepted)::bigint AS accepted
FROM latency_minutes m WHERE m.endpoint_id = $3 AND m.at >= to_timestamp($1) AND m.at < to_timestamp($2)
GROUP BY m.at ORDER BY m.at
"""
MINUTES_OF_ACCOUNT = """
SELECT date_part('epoch', m.at) AS at, sum(m.attempts)::bigint AS attempts, sum(m.accepted)::bigint AS accepted
FROM endpoints e JOIN latency_minutes m ON m.endpoint_id = e.id
WHERE e.account = $3 AND m.at >= to_timestamp($1) AND m.at < to_timestamp($2)
GROUP BY m.at ORDER BY m.at
"""
BUSIEST = """
SELECT e.id FROM endpoints e LEFT JOIN latency_days d ON d.endpoint_id = e.id WHERE e.account = $1
ORDER BY coalesce(d.attempts, 0) DESC, e.id LIMIT $2
"""


class PostgresFlow(PostgresSessions):
    """The contract's verbs about the flow."""

    async def count_events(
        self, *, first: EventId, beyond: EventId, limit: int, account: str | None = None
    ) -> CountedEvents:
        """See the contract."""
        statement = COUNT_EVENTS if account in (None, DEFAULT_ACCOUNT) else COUNT_EVENTS_OF_ACCOUNT
        [found] = await self._lists.fetch(statement, first, beyond, limit + 1, account)
        return CountedEvents(min(found["number"], limit), is_more=found["looked_at"] > limit)

    async def minute_attempts(
        self, *, since: float, until: float, account: str | None = None
    ) -> list[MinuteAttempts]:
        """See the contract."""
        if account is None:
            rows = await self._general.fetch(MINUTES, since, until, NO_ENDPOINT)
        else:
            rows = await self._lists.fetch(MINUTES_OF_ACCOUNT, since, until, account)
        return [MinuteAttempts(**row) for row in rows]

    async def busiest_endpoints(self, *, account: str, limit: int) -> list[EndpointId]:
        """See the contract."""
        return [row["id"] for row in await self._lists.fetch(BUSIEST, account, limit)]
