"""Keeps alerts on SQLite, and finds what may raise one."""

import sqlite3
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
from hookline.store.sqlite.driver.bulk import returned_rows
from hookline.store.sqlite.driver.connections import SqliteConnections, on_counter, on_lister, on_writer
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS
from hookline.store.sqlite.measuring.periodic_tasks import claim, move_on

ACCOUNTS_WITH_DEAD = """
SELECT e.account, NULL, NULL, sum(c.dead), NULL FROM endpoint_counts c CROSS JOIN endpoints e ON e.id = c.endpoint_id
WHERE c.dead > 0 AND e.account <> :own GROUP BY e.account HAVING sum(c.dead) > :dead_above ORDER BY e.account
"""
LONGEST_DUE = """
SELECT e.account, e.id, e.url, c.oldest_due, NULL FROM endpoint_counts c CROSS JOIN endpoints e ON e.id = c.endpoint_id
WHERE c.oldest_due IS NOT NULL AND e.account <> :own ORDER BY c.oldest_due LIMIT 1
"""
LONG_PENDING = """
SELECT e.account, e.id, e.url, c.oldest_pending, NULL FROM endpoint_counts c
CROSS JOIN endpoints e ON e.id = c.endpoint_id CROSS JOIN lanes l ON l.endpoint_id = e.id
WHERE c.oldest_pending < :pending_before AND e.account <> :own AND e.enabled AND NOT l.paused
  AND l.hold_until <= :now AND (l.circuit = 'closed' OR e.circuit IS NULL) ORDER BY e.id
"""
SLOW_DAYS = """
SELECT e.account, e.id, e.url, d.p95, NULL FROM latency_days d CROSS JOIN endpoints e ON e.id = d.endpoint_id
WHERE d.p95 > :slow_above AND d.as_of >= :slow_since AND d.attempts >= :attempts AND e.account <> :own ORDER BY e.id
"""
CIRCUITS_NOT_CLOSED = """
SELECT e.account, e.id, e.url, NULL, l.reason FROM lanes l CROSS JOIN endpoints e ON e.id = l.endpoint_id
WHERE l.circuit <> 'closed' AND e.circuit IS NOT NULL AND e.enabled AND e.account <> :own ORDER BY e.id
"""
DISABLED_BY_HOOKLINE = """
SELECT e.account, e.id, e.url, NULL, e.disabled_reason FROM endpoints e
WHERE NOT e.enabled AND e.disabled_reason IS NOT NULL AND e.account <> :own ORDER BY e.id
"""
STUCK_SINCE = """
SELECT min(CASE WHEN d.attempts = 0 THEN d.due_at ELSE (
  SELECT min(a.at) FROM attempts a WHERE a.delivery_id = d.id AND a.replays = d.replays) END)
FROM (
  SELECT * FROM (
    SELECT id, attempts, replays, due_at FROM deliveries INDEXED BY deliveries_ready
    WHERE endpoint_id = :endpoint AND state = 'pending' AND queue = 'ready' ORDER BY seq LIMIT 1)
  UNION ALL
  SELECT * FROM (
    SELECT id, attempts, replays, due_at FROM deliveries INDEXED BY deliveries_timed
    WHERE endpoint_id = :endpoint AND state = 'pending' AND queue = 'timed' AND id < :below ORDER BY id LIMIT :limit)) d
"""
_ALERTS = """
SELECT id, kind, subject, account, endpoint_id, message, value, threshold, since, resolved_at, clear_looks FROM alerts"""
ALERTS_BY_ID = f"WITH u (id) AS (VALUES {{rows}}) {_ALERTS} WHERE id IN (SELECT id FROM u)"
FIRING_ALERTS = f"{_ALERTS} WHERE resolved_at IS NULL ORDER BY id"
LIST_ALERTS = f"""{_ALERTS}
WHERE id < :before AND (:is_firing IS NULL OR (resolved_at IS NULL) = :is_firing) AND (:kind IS NULL OR kind = :kind)
  AND (:account IS NULL OR account = :account) AND (:endpoint IS NULL OR endpoint_id = :endpoint)
ORDER BY id DESC LIMIT :limit
"""
FIRE_ALERTS = """
INSERT INTO alerts (id, kind, subject, account, endpoint_id, message, value, threshold, since)
VALUES (:id, :kind, :subject, :account, :endpoint_id, :message, :value, :threshold, :since) ON CONFLICT DO NOTHING
"""
RESOLVE_ALERTS = """
UPDATE alerts SET resolved_at = :now WHERE id = :id AND resolved_at IS NULL RETURNING account
"""
NOTE_LOOKS = "UPDATE alerts SET clear_looks = :looks WHERE id = :id AND resolved_at IS NULL"
ANNOUNCE_ALERTS = "INSERT INTO announcements (kind, account, subject, at) VALUES (:kind, :account, :id, :now)"
PRUNE_ALERTS = """
DELETE FROM alerts WHERE id IN (
  SELECT id FROM alerts WHERE resolved_at < :resolved_before ORDER BY resolved_at LIMIT :limit)
"""
_FACTS = (
    (AlertKind.DEAD_LETTERS, ACCOUNTS_WITH_DEAD),
    (AlertKind.OLDEST_DUE, LONGEST_DUE),
    (AlertKind.STUCK, LONG_PENDING),
    (AlertKind.ENDPOINT_SLOW, SLOW_DAYS),
    (AlertKind.CIRCUIT_OPEN, CIRCUITS_NOT_CLOSED),
    (AlertKind.ENDPOINT_DISABLED, DISABLED_BY_HOOKLINE),
)


class SqliteAlerts(SqliteConnections):
    """The contract's verbs about alerts."""

    @on_writer
    def take_alert_turn(self, connection: sqlite3.Connection, *, now: float, next_at: float) -> bool:
        """Whether it is time to look, and nobody else does."""
        if not claim(connection, ALERTS, now=now):
            return False
        move_on(connection, ALERTS, next_at=next_at)
        return True

    @on_counter
    def alert_facts(
        self,
        connection: sqlite3.Connection,
        *,
        dead_above: float,
        pending_before: float,
        slow_above: float,
        slow_since: float,
        attempts: int,
        now: float,
    ) -> list[AlertFact]:
        """What may raise an alert, without the account `hookline`."""
        values = {
            "own": OWN_ACCOUNT,
            "dead_above": dead_above,
            "pending_before": pending_before,
            "slow_above": slow_above,
            "slow_since": slow_since,
            "attempts": attempts,
            "now": now,
        }
        return [
            AlertFact(kind=kind, account=account, endpoint_id=id, url=url, value=value, detail=detail)
            for kind, statement in _FACTS
            for account, id, url, value, detail in connection.execute(statement, values).fetchall()
        ]

    @on_counter
    def stuck_since(
        self, connection: sqlite3.Connection, before: Sequence[tuple[EndpointId, float]]
    ) -> list[tuple[EndpointId, float]]:
        """Of these endpoints the ones with a pending delivery that was first due, or first tried, before this time."""
        found = []
        for endpoint, at in sorted(before):
            values = {"endpoint": endpoint, "below": first_at(at), "limit": STUCK_LOOKED_AT}
            (began,) = connection.execute(STUCK_SINCE, values).fetchone()
            if began is not None and began < at:
                found.append((endpoint, began))
        return found

    @on_lister
    def firing_alerts(self, connection: sqlite3.Connection) -> list[Alert]:
        """The alerts that are not resolved, oldest first."""
        return spoiled_rows.read_all(map(read_alert, connection.execute(FIRING_ALERTS)))

    @on_lister
    def alerts_by_id(self, connection: sqlite3.Connection, ids: Sequence[AlertId]) -> list[Alert]:
        """These alerts, as far as they exist."""
        return spoiled_rows.read_all(
            map(read_alert, returned_rows(connection, ALERTS_BY_ID, [(id,) for id in ids]))
        )

    @on_writer
    def write_alerts(
        self, connection: sqlite3.Connection, changes: AlertChanges, *, now: float, announce: bool = False
    ) -> AlertChanges:
        """Fire and resolve alerts and note clear looks, in one commit; what was fired and resolved."""
        fired = []
        for alert in changes.fire:
            values = {name: getattr(alert, name) for name in alert.__struct_fields__}
            if connection.execute(FIRE_ALERTS, {**values, "kind": str(alert.kind)}).rowcount:
                fired.append(alert)
        resolved: list[tuple[AlertId, str | None]] = []
        for id in changes.resolve:
            for (account,) in connection.execute(RESOLVE_ALERTS, {"id": id, "now": now}).fetchall():
                resolved.append((id, account))
        for id, number in changes.looks:
            connection.execute(NOTE_LOOKS, {"id": id, "looks": number})
        if announce:
            told = [(FIRED, each.id, each.account) for each in fired]
            for kind, id, account in told + [(RESOLVED, *each) for each in resolved]:
                connection.execute(ANNOUNCE_ALERTS, {"kind": kind, "account": account, "id": id, "now": now})
        return AlertChanges(fire=tuple(fired), resolve=tuple(id for id, _ in resolved))

    @on_lister
    def list_alerts(
        self, connection: sqlite3.Connection, filter: AlertFilter, *, after: AlertId | None, limit: int
    ) -> list[Alert]:
        """Alerts, newest first."""
        values = {
            "before": after or ABOVE_ALL_IDS,
            "is_firing": filter.is_firing,
            "kind": None if filter.kind is None else str(filter.kind),
            "account": filter.account,
            "endpoint": filter.endpoint_id,
            "limit": limit,
        }
        return spoiled_rows.read_all(map(read_alert, connection.execute(LIST_ALERTS, values)))

    @on_writer
    def prune_alerts(self, connection: sqlite3.Connection, *, resolved_before: float, limit: int) -> int:
        """Delete alerts that were resolved before this; how many."""
        values = {"resolved_before": resolved_before, "limit": limit}
        return connection.execute(PRUNE_ALERTS, values).rowcount


def read_alert(row: tuple[Any, ...]) -> Alert | None:
    names = ("id", "kind", "subject", "account", "endpoint_id", "message", "value", "threshold", "since")
    values = dict(zip((*names, "resolved_at", "clear_looks"), row, strict=True))
    return spoiled_rows.read(Alert, values)
