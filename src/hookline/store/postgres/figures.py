"""How is counted in PostgreSQL?

In a session of its own, which may take longer than any other: a count of many millions does.
"""

from hookline.store.figures import Conservation
from hookline.store.postgres.links import Links

# One reading of the table: an index for each state, one after the other, took twice as long.
CONSERVATION = """
SELECT state, count(*) AS n FROM deliveries GROUP BY state
UNION ALL SELECT 'pruned', coalesce(sum(deliveries), 0)::bigint FROM pruned WHERE $1::text IS NULL OR account = $1
"""
# Mostly there is one account: then its deliveries are all there are, and nobody need look at each one's event.
ONLY_ACCOUNT = """
SELECT $1::text IS NULL OR $1 = 'default' AND NOT EXISTS (SELECT FROM events WHERE account <> 'default') AS is_only
"""
CONSERVATION_OF_DEFAULT = """
SELECT d.state, count(*) AS n FROM deliveries d JOIN events e ON e.id = event_of(d.id) WHERE e.account = $1 GROUP BY d.state
UNION ALL SELECT 'pruned', coalesce(sum(deliveries), 0)::bigint FROM pruned WHERE account = $1
"""
# Along the index of the accounts' events, which leaves the default one out.
CONSERVATION_OF_ACCOUNT = """
SELECT d.state, count(*) AS n FROM events e
CROSS JOIN LATERAL (SELECT state FROM deliveries WHERE id BETWEEN e.id AND last_delivery_of(e.id) OFFSET 0) d
WHERE e.account = $1 AND e.account <> 'default' GROUP BY d.state
UNION ALL SELECT 'pruned', coalesce(sum(deliveries), 0)::bigint FROM pruned WHERE account = $1
"""

# From one lane with pending rows to the next, along the index: the lanes count, not their rows.
_OLDEST = """
  (SELECT endpoint_id, due_at FROM deliveries WHERE state = 'pending' AND queue = '{queue}'
   ORDER BY endpoint_id, {first} LIMIT 1)
  UNION ALL
  SELECT d.* FROM {queue} CROSS JOIN LATERAL (
    SELECT n.endpoint_id, n.due_at FROM deliveries n
    WHERE n.state = 'pending' AND n.queue = '{queue}' AND n.endpoint_id > {queue}.endpoint_id
    ORDER BY n.endpoint_id, n.{first} LIMIT 1) d"""
OLDEST_DUE = f"""
WITH RECURSIVE ready AS ({_OLDEST.format(queue="ready", first="seq")}),
timed AS ({_OLDEST.format(queue="timed", first="due_at")})
SELECT date_part('epoch', min(w.due_at)) AS due_at FROM (SELECT * FROM ready UNION ALL SELECT * FROM timed) w
JOIN lanes l USING (endpoint_id)
WHERE w.due_at <= to_timestamp($1) AND NOT l.paused AND l.hold_until <= to_timestamp($1)
"""


class PostgresFigures:
    """The contract's verbs that count."""

    _figures: Links

    async def conservation(self, *, account: str | None = None) -> Conservation:
        """See the contract."""
        [only] = await self._figures.fetch(ONLY_ACCOUNT, account)
        if only["is_only"]:
            statement = CONSERVATION
        else:
            statement = CONSERVATION_OF_DEFAULT if account == "default" else CONSERVATION_OF_ACCOUNT
        found = await self._figures.fetch(statement, account)
        return Conservation(**{row["state"]: row["n"] for row in found})

    async def oldest_due(self, *, now: float) -> float | None:
        """See the contract."""
        [found] = await self._figures.fetch(OLDEST_DUE, now)
        due: float | None = found["due_at"]
        return due
