"""Counts dead letters by what they died of, and when, on PostgreSQL."""

from typing import Any

from hookline.model import EndpointId
from hookline.store import spoiled_rows
from hookline.store.contract.measuring.deaths import UNKNOWN_DEATH, DeathCount, DeathPosition, DeathSlice
from hookline.store.postgres.driver.sessions import PostgresSessions
from hookline.store.postgres.lists.conditions import PostgresConditions, Statement

STEP_ROWS = 5_000  # dead letters read in one step, so that no statement takes long

# Along the index of dead letters. A deleted endpoint has no row: its account is that of the event.
COUNT_DEATHS = """
WITH looked AS MATERIALIZED (
  SELECT d.endpoint_id, d.id, d.reason, d.last_status, d.last_error, d.attempts, d.done_at
  FROM deliveries d WHERE d.state = 'dead' AND {place} ORDER BY d.endpoint_id, d.id LIMIT {limit})
SELECT false AS is_end, l.endpoint_id, l.reason, l.last_status AS status, l.last_error AS error,
  floor(date_part('epoch', least(l.done_at, '9999-12-31Z')) / 60)::bigint AS minute, count(*) AS count, sum(l.attempts)::bigint AS attempts,
  count(*) FILTER (WHERE l.attempts = 1) AS at_first_attempt, date_part('epoch', min(l.done_at)) AS first_at,
  date_part('epoch', max(l.done_at)) AS last_at, (array_agg(l.id ORDER BY l.id DESC))[1] AS newest
FROM looked l WHERE {conditions}
GROUP BY l.endpoint_id, l.reason, l.last_status, l.last_error, minute
UNION ALL
(SELECT true, endpoint_id, NULL, NULL, NULL, NULL, (SELECT count(*) FROM looked), NULL, NULL, NULL, NULL, id
 FROM looked ORDER BY endpoint_id DESC, id DESC LIMIT 1)
"""
FROM_PLACE = "(d.endpoint_id, d.id) > ({endpoint}, {id})"
OF_ENDPOINT = "d.endpoint_id = {endpoint} AND d.id > {id}"
OF_ACCOUNT = """coalesce(
  (SELECT p.account FROM endpoints p WHERE p.id = l.endpoint_id),
  (SELECT e.account FROM events e WHERE e.id = event_of(l.id))) = {}"""

_BELOW_ALL = bytes(16)


class PostgresDeaths(PostgresSessions):
    """The contract's verb about causes of death."""

    async def count_deaths(
        self,
        *,
        since: float,
        account: str | None = None,
        endpoint: EndpointId | None = None,
        after: DeathPosition | None = None,
    ) -> DeathSlice:
        """See the contract."""
        statement, values = death_counts(
            since=since, account=account, endpoint=endpoint, after=after, limit=STEP_ROWS
        )
        found = await self._lists.fetch(statement, *values)
        end = next((row for row in found if row["is_end"]), None)
        return DeathSlice(
            tuple(spoiled_rows.read_all(_count(row) for row in found if not row["is_end"])),
            None if end is None or end["count"] < STEP_ROWS else (end["endpoint_id"], end["newest"]),
        )


def death_counts(
    *,
    since: float,
    account: str | None,
    endpoint: EndpointId | None,
    after: DeathPosition | None,
    limit: int,
) -> Statement:
    """The counts of the next dead letters, at most `limit`, and as the last row how far it looked."""
    asked = PostgresConditions()
    asked.add("l.done_at >= {}", since, "float8")
    asked.add(OF_ACCOUNT, account, "text")
    last_endpoint, last = after or (_BELOW_ALL, _BELOW_ALL)
    place = FROM_PLACE if endpoint is None else OF_ENDPOINT
    statement = COUNT_DEATHS.format(
        place=place.format(
            endpoint=asked.bind(endpoint or last_endpoint, "uuid"), id=asked.bind(last, "uuid")
        ),
        conditions=asked.also(),
        limit=asked.bind(limit, "int"),
    )
    return statement, asked.values


def _count(row: Any) -> DeathCount | None:
    values = dict(row)
    del values["is_end"]
    return spoiled_rows.read(DeathCount, values, UNKNOWN_DEATH)
