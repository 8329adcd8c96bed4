"""Keeps alerts on PostgreSQL, and finds what may raise one."""

from collections.abc import Sequence
from typing import Any

from hookline.ids import first_at
from hookline.model import OWN_ACCOUNT, Alert, AlertFact, AlertId, AlertKind, EndpointId
from hookline.store import spoiled_rows
from hookline.store.contract.measuring.alerts import (
    ALERTS,
    FIRED,
    RESOLVED,
    STUCK_LOOKED_AT,
    AlertChanges,
    AlertFilter,
)
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions
from hookline.store.postgres.driver.values import printable
from hookline.store.postgres.measuring.periodic_tasks import claim, move_on

_ENDPOINT = "e.account, e.id AS endpoint_id, e.url"
ACCOUNTS_WITH_DEAD = """
SELECT e.account, sum(c.dead)::float8 AS value FROM endpoint_counts c JOIN endpoints e ON e.id = c.endpoint_id
WHERE c.dead > 0 AND e.account <> $1 GROUP BY e.account HAVING sum(c.dead) > $2 ORDER BY e.account
"""
LONGEST_DUE = f"""
SELECT {_ENDPOINT}, date_part('epoch', c.oldest_due) AS value FROM endpoint_counts c JOIN endpoints e ON e.id = c.endpoint_id
WHERE c.oldest_due IS NOT NULL AND e.account <> $1 ORDER BY c.oldest_due LIMIT 1
"""
LONG_PENDING = f"""
SELECT {_ENDPOINT}, date_part('epoch', c.oldest_pending) AS value
FROM endpoint_counts c JOIN endpoints e ON e.id = c.endpoint_id JOIN lanes l ON l.endpoint_id = e.id
WHERE c.oldest_pending < to_timestamp($2) AND e.account <> $1 AND e.enabled AND NOT l.paused
  AND l.hold_until <= to_timestamp($3) AND (l.circuit = 'closed' OR e.circuit IS NULL) ORDER BY e.id
"""
SLOW_DAYS = f"""
SELECT {_ENDPOINT}, d.p95 AS value FROM latency_days d JOIN endpoints e ON e.id = d.endpoint_id
WHERE d.p95 > $2 AND d.as_of >= to_timestamp($3) AND d.attempts >= $4 AND e.account <> $1 ORDER BY e.id
"""
CIRCUITS_NOT_CLOSED = f"""
SELECT {_ENDPOINT}, l.reason AS detail FROM lanes l JOIN endpoints e ON e.id = l.endpoint_id
WHERE l.circuit <> 'closed' AND e.circuit IS NOT NULL AND e.enabled AND e.account <> $1 ORDER BY e.id
"""
DISABLED_BY_HOOKLINE = f"""
SELECT {_ENDPOINT}, e.disabled_reason AS detail FROM endpoints e
WHERE NOT e.enabled AND e.disabled_reason IS NOT NULL AND e.account <> $1 ORDER BY e.id
"""
STUCK_SINCE = """
SELECT s.endpoint_id, date_part('epoch', min(f.began)) AS began
FROM unnest($1::uuid[], $2::float8[], $3::uuid[]) AS s (endpoint_id, before, below)
CROSS JOIN LATERAL (
  (SELECT d.id, d.attempts, d.replays, d.due_at FROM deliveries d
   WHERE d.endpoint_id = s.endpoint_id AND d.state = 'pending' AND d.queue = 'ready' ORDER BY d.seq LIMIT 1)
  UNION ALL
  (SELECT d.id, d.attempts, d.replays, d.due_at FROM deliveries d
   WHERE d.endpoint_id = s.endpoint_id AND d.state = 'pending' AND d.queue = 'timed' AND d.id < s.below
   ORDER BY d.id LIMIT $4)) d
CROSS JOIN LATERAL (
  SELECT CASE WHEN d.attempts = 0 THEN d.due_at ELSE (
    SELECT min(a.at) FROM attempts a WHERE a.delivery_id = d.id AND a.replays = d.replays) END AS began) f
WHERE f.began < to_timestamp(s.before) GROUP BY s.endpoint_id ORDER BY s.endpoint_id
"""
_ALERTS = """
SELECT id, kind, subject, account, endpoint_id, message, value, threshold, date_part('epoch', since) AS since,
  date_part('epoch', resolved_at) AS resolved_at, clear_looks
FROM alerts"""
ALERTS_BY_ID = f"{_ALERTS} WHERE id = ANY($1::uuid[])"
FIRING_ALERTS = f"{_ALERTS} WHERE resolved_at IS NULL ORDER BY id"
LIST_ALERTS = f"""{_ALERTS}
WHERE ($1::uuid IS NULL OR id < $1) AND ($2::boolean IS NULL OR (resolved_at IS NULL) = $2)
  AND ($3::text IS NULL OR kind = $3) AND ($4::text IS NULL OR account = $4)
  AND ($5::uuid IS NULL OR endpoint_id = $5)
ORDER BY id DESC LIMIT $6
"""
# Sorted, so that two processes that fire the same ones wait for each other and never in a circle.
FIRE_ALERTS = """
INSERT INTO alerts (id, kind, subject, account, endpoint_id, message, value, threshold, since)
SELECT a.id, a.kind, a.subject, a.account, a.endpoint_id, a.message, a.value, a.threshold, to_timestamp(a.since)
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::float8[], $8::float8[],
  $9::float8[]) AS a (id, kind, subject, account, endpoint_id, message, value, threshold, since)
ORDER BY a.kind, a.subject
ON CONFLICT DO NOTHING RETURNING id, account
"""
RESOLVE_ALERTS = """
WITH found AS MATERIALIZED (
  SELECT id FROM alerts WHERE id = ANY($1::uuid[]) AND resolved_at IS NULL ORDER BY id FOR UPDATE)
UPDATE alerts a SET resolved_at = to_timestamp($2) FROM found WHERE a.id = found.id RETURNING a.id, a.account
"""
NOTE_LOOKS = """
UPDATE alerts a SET clear_looks = s.looks FROM unnest($1::uuid[], $2::int[]) AS s (id, looks)
WHERE a.id = s.id AND a.resolved_at IS NULL
"""
ANNOUNCE_ALERTS = """
INSERT INTO announcements (kind, account, subject, at)
SELECT $1, s.account, s.id, to_timestamp($4) FROM unnest($2::uuid[], $3::text[]) AS s (id, account)
"""
PRUNE_ALERTS = """
DELETE FROM alerts WHERE id IN (
  SELECT id FROM alerts WHERE resolved_at < to_timestamp($1) ORDER BY resolved_at LIMIT $2)
RETURNING id
"""
_FIELDS = ("id", "kind", "subject", "account", "endpoint_id", "message", "value", "threshold", "since")


class PostgresAlerts(PostgresSessions):
    """The contract's verbs about alerts."""

    async def take_alert_turn(self, *, now: float, next_at: float) -> bool:
        """See the contract."""

        async def work(connection: Connection) -> bool:
            if not await claim(connection, ALERTS, now=now):
                return False
            await move_on(connection, ALERTS, next_at=next_at)
            return True

        return await self._tasks.transaction(work)

    async def alert_facts(
        self,
        *,
        dead_above: float,
        pending_before: float,
        slow_above: float,
        slow_since: float,
        attempts: int,
        now: float,
    ) -> list[AlertFact]:
        """See the contract."""
        asked: tuple[tuple[AlertKind, str, tuple[Any, ...]], ...] = (
            (AlertKind.DEAD_LETTERS, ACCOUNTS_WITH_DEAD, (dead_above,)),
            (AlertKind.OLDEST_DUE, LONGEST_DUE, ()),
            (AlertKind.STUCK, LONG_PENDING, (pending_before, now)),
            (AlertKind.ENDPOINT_SLOW, SLOW_DAYS, (slow_above, slow_since, attempts)),
            (AlertKind.CIRCUIT_OPEN, CIRCUITS_NOT_CLOSED, ()),
            (AlertKind.ENDPOINT_DISABLED, DISABLED_BY_HOOKLINE, ()),
        )
        return [
            AlertFact(kind=kind, **row)
            for kind, statement, values in asked
            for row in await self._tasks.fetch(statement, OWN_ACCOUNT, *values)
        ]

    async def stuck_since(self, before: Sequence[tuple[EndpointId, float]]) -> list[tuple[EndpointId, float]]:
        """See the contract."""
        ids, times = [each[0] for each in before], [each[1] for each in before]
        below = [first_at(at) for at in times]
        found = await self._tasks.fetch(STUCK_SINCE, ids, times, below, STUCK_LOOKED_AT)
        return [(row["endpoint_id"], row["began"]) for row in found]

    async def firing_alerts(self) -> list[Alert]:
        """See the contract."""
        return spoiled_rows.read_all(map(read_alert, await self._general.fetch(FIRING_ALERTS)))

    async def alerts_by_id(self, ids: Sequence[AlertId]) -> list[Alert]:
        """See the contract."""
        return spoiled_rows.read_all(map(read_alert, await self._general.fetch(ALERTS_BY_ID, list(ids))))

    async def write_alerts(
        self, changes: AlertChanges, *, now: float, announce: bool = False
    ) -> AlertChanges:
        """See the contract."""

        async def work(connection: Connection) -> AlertChanges:
            columns = [[getattr(each, name) for each in changes.fire] for name in _FIELDS]
            columns[1] = [str(kind) for kind in columns[1]]
            columns[5] = [printable(message) for message in columns[5]]
            fired = await connection.fetch(FIRE_ALERTS, *columns)
            resolved = await connection.fetch(RESOLVE_ALERTS, list(changes.resolve), now)
            looks = changes.looks
            await connection.fetch(NOTE_LOOKS, [id for id, _ in looks], [number for _, number in looks])
            if announce:
                for kind, rows in ((FIRED, fired), (RESOLVED, resolved)):
                    told = [row["id"] for row in rows], [row["account"] for row in rows]
                    await connection.fetch(ANNOUNCE_ALERTS, kind, *told, now)
            done = {row["id"] for row in fired}
            return AlertChanges(
                fire=tuple(each for each in changes.fire if each.id in done),
                resolve=tuple(row["id"] for row in resolved),
            )

        return await self._tasks.transaction(work)

    async def list_alerts(self, filter: AlertFilter, *, after: AlertId | None, limit: int) -> list[Alert]:
        """See the contract."""
        kind = None if filter.kind is None else str(filter.kind)
        chosen = (filter.is_firing, kind, filter.account, filter.endpoint_id)
        return spoiled_rows.read_all(
            map(read_alert, await self._lists.fetch(LIST_ALERTS, after, *chosen, limit))
        )

    async def prune_alerts(self, *, resolved_before: float, limit: int) -> int:
        """See the contract."""
        return len(await self._tasks.fetch(PRUNE_ALERTS, resolved_before, limit))


def read_alert(row: Any) -> Alert | None:
    return spoiled_rows.read(Alert, dict(row))
