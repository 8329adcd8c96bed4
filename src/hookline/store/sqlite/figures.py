"""Counts deliveries for reports and metrics on SQLite.

It reads the indexes alone, on a connection of its own: a count of many millions must not delay the lists.
"""

import os
import sqlite3

from hookline.store.contract.figures import Bloat, Conservation, SessionUse
from hookline.store.sqlite.deliveries import count_states
from hookline.store.sqlite.driver.connections import SqliteConnections, on_counter
from hookline.store.sqlite.sql import EVENT_OF_DELIVERY

PRUNED = "SELECT coalesce(sum(deliveries), 0) FROM pruned WHERE :account IS NULL OR account = :account"
# Mostly there is only one account. All deliveries are then its own, and their events need not be read.
ONLY_ACCOUNT = (
    "SELECT (SELECT min(account) FROM events) IS :account AND (SELECT max(account) FROM events) IS :account"
)
CONSERVATION_OF_ACCOUNT = f"""
SELECT d.state, count(*) FROM deliveries d {EVENT_OF_DELIVERY} WHERE e.account = :account GROUP BY d.state
"""

# From one lane with pending rows to the next, along the index: the cost depends on the lanes, not on their rows.
_OLDEST = """
  SELECT 1, endpoint_id, due_at, id FROM deliveries WHERE seq = (
    SELECT n.seq FROM deliveries n INDEXED BY deliveries_{queue}
    WHERE n.state = 'pending' AND n.queue = '{queue}' ORDER BY n.endpoint_id, n.{first} LIMIT 1)
  UNION ALL
  SELECT 1, d.endpoint_id, d.due_at, d.id FROM {queue} CROSS JOIN deliveries d ON d.seq = (
    SELECT n.seq FROM deliveries n INDEXED BY deliveries_{queue}
    WHERE n.state = 'pending' AND n.queue = '{queue}' AND n.endpoint_id > {queue}.endpoint_id
    ORDER BY n.endpoint_id, n.{first} LIMIT 1)"""
FIRST_OF_LANES = f"""
ready (n, endpoint_id, due_at, id) AS ({_OLDEST.format(queue="ready", first="seq")}),
timed (n, endpoint_id, due_at, id) AS ({_OLDEST.format(queue="timed", first="due_at")})"""
# Of a first one `w` in its lane `l`: it is due, and neither an operator nor its owner's last note holds it back.
WAITS = "w.due_at <= :now AND l.paused = 0 AND l.hold_until <= :now"
OLDEST_DUE = f"""
WITH RECURSIVE {FIRST_OF_LANES}
SELECT min(w.due_at) FROM (SELECT * FROM ready UNION ALL SELECT * FROM timed) w
CROSS JOIN lanes l ON l.endpoint_id = w.endpoint_id
WHERE {WAITS}
"""

CIRCUITS_OPEN = "SELECT count(*) FROM lanes WHERE circuit <> 'closed' AND deleted = 0"
# The ids of deliveries begin with their event's time. Without naming an index SQLite walks all ids for a minimum.
OLDEST_PENDING = f"""
SELECT e.created_at FROM (SELECT min(id) AS id FROM (
  SELECT min(id) AS id FROM deliveries INDEXED BY deliveries_ready WHERE state = 'pending' AND queue = 'ready'
  UNION ALL
  SELECT min(id) FROM deliveries INDEXED BY deliveries_timed WHERE state = 'pending' AND queue = 'timed')) d
{EVENT_OF_DELIVERY}
WHERE d.id IS NOT NULL
"""


class SqliteFigures(SqliteConnections):
    """The contract's verbs that count."""

    def sessions(self) -> list[SessionUse]:
        """None: threads do the work here."""
        return []

    async def bloat(self) -> Bloat:
        """The length of the log. It starts over once all of it is in the file, which a lasting reader prevents."""
        try:
            # Its size is read from outside: a process that opens and closes the file loses SQLite's locks on it.
            return Bloat(log_bytes=os.stat(f"{self._path}-wal").st_size)
        except FileNotFoundError:
            return Bloat(log_bytes=0)

    @on_counter
    def conservation(self, connection: sqlite3.Connection, *, account: str | None = None) -> Conservation:
        """Where all deliveries are, of one account or of all, in one snapshot."""
        connection.execute("BEGIN")  # one snapshot
        try:
            (pruned,) = connection.execute(PRUNED, {"account": account}).fetchone()
            (is_only,) = connection.execute(ONLY_ACCOUNT, {"account": account}).fetchone()
            if account is None or is_only:
                found = {state.value: number for state, number in count_states(connection).items()}
            else:
                found = dict(connection.execute(CONSERVATION_OF_ACCOUNT, {"account": account}).fetchall())
            return Conservation(**found, pruned=pruned)
        finally:
            connection.execute("COMMIT")

    @on_counter
    def circuits_open(self, connection: sqlite3.Connection) -> int:
        """How many lanes have a circuit that is not closed."""
        number: int
        (number,) = connection.execute(CIRCUITS_OPEN).fetchone()
        return number

    @on_counter
    def oldest_pending(self, connection: sqlite3.Connection) -> float | None:
        """When the oldest delivery that is pending was accepted; None: none is."""
        found = connection.execute(OLDEST_PENDING).fetchone()
        return None if found is None else found[0]

    @on_counter
    def oldest_due(self, connection: sqlite3.Connection, *, now: float) -> float | None:
        """When the delivery that has waited longest became due; None: none waits."""
        due: float | None
        (due,) = connection.execute(OLDEST_DUE, {"now": now}).fetchone()
        return due
