"""Counts dead letters by what they died of, and when, on SQLite."""

import sqlite3

from hookline.model import DeliveryId, EndpointId
from hookline.store import spoiled_rows
from hookline.store.contract.measuring.deaths import UNKNOWN_DEATH, DeathCount, DeathPosition, DeathSlice
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister
from hookline.store.sqlite.lists.conditions import SqliteConditions, Statement

STEP_ROWS = 1_000  # dead letters read in one step: the reads of others take their turn between two steps

# Along the index of dead letters. A deleted endpoint has no row: its account is that of the event.
COUNT_DEATHS = """
WITH looked AS MATERIALIZED (
  SELECT d.endpoint_id, d.id, d.reason, d.last_status, d.last_error, d.attempts, d.done_at
  FROM deliveries d INDEXED BY deliveries_dead
  WHERE d.state = 'dead' AND {place} ORDER BY d.endpoint_id, d.id LIMIT :limit)
SELECT 0, l.endpoint_id, l.reason, l.last_status, l.last_error, CAST(l.done_at / 60 AS INTEGER) AS minute, count(*),
  sum(l.attempts), sum(l.attempts = 1), min(l.done_at), max(l.done_at), max(l.id)
FROM looked l WHERE {conditions}
GROUP BY l.endpoint_id, l.reason, l.last_status, l.last_error, minute
UNION ALL
SELECT * FROM (
  SELECT 1, endpoint_id, NULL, NULL, NULL, NULL, (SELECT count(*) FROM looked), NULL, NULL, NULL, NULL, id
  FROM looked ORDER BY endpoint_id DESC, id DESC LIMIT 1)
"""
FROM_PLACE = "(d.endpoint_id, d.id) > (:after_endpoint, :after)"
OF_ENDPOINT = "d.endpoint_id = :endpoint AND d.id > :after"
OF_ACCOUNT = """coalesce(
  (SELECT p.account FROM endpoints p WHERE p.id = l.endpoint_id),
  (SELECT e.account FROM events e WHERE e.id <= l.id ORDER BY e.id DESC LIMIT 1)) = :account"""

_BELOW_ALL = bytes(16)


class SqliteDeaths(SqliteConnections):
    """The contract's verb about causes of death."""

    @on_lister
    def count_deaths(
        self,
        connection: sqlite3.Connection,
        *,
        since: float,
        account: str | None = None,
        endpoint: EndpointId | None = None,
        after: DeathPosition | None = None,
    ) -> DeathSlice:
        """Count the next dead letters that died since then, endpoint by endpoint, from above `after`."""
        statement = death_counts(
            since=since, account=account, endpoint=endpoint, after=after, limit=STEP_ROWS
        )
        counts: list[DeathCount | None] = []
        end: DeathPosition | None = None
        for (
            is_end,
            of,
            reason,
            status,
            error,
            minute,
            count,
            attempts,
            at_first,
            first,
            till,
            id,
        ) in connection.execute(*statement):
            if is_end:
                end = (EndpointId(of), DeliveryId(id)) if count == STEP_ROWS else None
                continue
            values = {
                "endpoint_id": of,
                "reason": reason,
                "status": status,
                "error": error,
                "minute": minute,
                "count": count,
                "attempts": attempts,
                "at_first_attempt": at_first,
                "first_at": first,
                "last_at": till,
                "newest": id,
            }
            counts.append(spoiled_rows.read(DeathCount, values, UNKNOWN_DEATH))
        return DeathSlice(tuple(spoiled_rows.read_all(counts)), end)


def death_counts(
    *,
    since: float,
    account: str | None,
    endpoint: EndpointId | None,
    after: DeathPosition | None,
    limit: int,
) -> Statement:
    """The counts of the next dead letters, at most `limit`, and as the last row how far it looked."""
    asked = SqliteConditions()
    asked.add("l.done_at >= :since", "since", since)
    asked.add(OF_ACCOUNT, "account", account)
    last_endpoint, last = after or (_BELOW_ALL, _BELOW_ALL)
    place = FROM_PLACE if endpoint is None else OF_ENDPOINT
    asked.values |= {"endpoint": endpoint, "after_endpoint": last_endpoint, "after": last, "limit": limit}
    return COUNT_DEATHS.format(place=place, conditions=asked.also()), asked.values
