"""Counts what flows now on SQLite."""

import sqlite3

from hookline.model import EndpointId, EventId
from hookline.store.contract.measuring.flow import CountedEvents, MinuteAttempts
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister

COUNT_EVENTS = """
SELECT count(*) FROM (SELECT 1 FROM events e WHERE e.id >= :first AND e.id < :beyond LIMIT :limit) looked
"""
COUNT_EVENTS_OF_ACCOUNT = """
SELECT count(*) FROM (
  SELECT 1 FROM events e INDEXED BY events_account
  WHERE e.account = :account AND e.id >= :first AND e.id < :beyond LIMIT :limit) looked
"""
# The row of no endpoint is the sum of all.
MINUTES = """
SELECT m.at, sum(m.attempts), sum(m.accepted) FROM latency_minutes m
WHERE m.endpoint_id = :nil AND m.at >= :since AND m.at < :until GROUP BY m.at ORDER BY m.at
"""
MINUTES_OF_ACCOUNT = """
SELECT m.at, sum(m.attempts), sum(m.accepted)
FROM endpoints e CROSS JOIN latency_minutes m ON m.endpoint_id = e.id AND m.at >= :since AND m.at < :until
WHERE e.account = :account GROUP BY m.at ORDER BY m.at
"""
BUSIEST = """
SELECT e.id FROM endpoints e LEFT JOIN latency_days d ON d.endpoint_id = e.id WHERE e.account = :account
ORDER BY coalesce(d.attempts, 0) DESC, e.id LIMIT :limit
"""


class SqliteFlow(SqliteConnections):
    """The contract's verbs about the flow."""

    @on_lister
    def count_events(
        self,
        connection: sqlite3.Connection,
        *,
        first: EventId,
        beyond: EventId,
        limit: int,
        account: str | None = None,
    ) -> CountedEvents:
        """The events from the id `first` to before `beyond`; looks at `limit` + 1 at most."""
        statement = COUNT_EVENTS if account is None else COUNT_EVENTS_OF_ACCOUNT
        values = {"first": first, "beyond": beyond, "limit": limit + 1, "account": account}
        (number,) = connection.execute(statement, values).fetchone()
        return CountedEvents(min(number, limit), is_more=number > limit)

    @on_lister
    def minute_attempts(
        self, connection: sqlite3.Connection, *, since: float, until: float, account: str | None = None
    ) -> list[MinuteAttempts]:
        """The attempts of each stored minute from `since` to before `until` that has any, oldest first."""
        statement = MINUTES if account is None else MINUTES_OF_ACCOUNT
        values = {"since": since, "until": until, "account": account, "nil": NO_ENDPOINT}
        return [MinuteAttempts(*row) for row in connection.execute(statement, values)]

    @on_lister
    def busiest_endpoints(
        self, connection: sqlite3.Connection, *, account: str, limit: int
    ) -> list[EndpointId]:
        """The endpoints of an account with the most attempts in their last day; those without any come last."""
        values = {"account": account, "limit": limit}
        return [id for (id,) in connection.execute(BUSIEST, values)]
