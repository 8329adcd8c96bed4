"""Reads and deletes rows of an outbox table in any SQLite file."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from hookline.store.contract.outbox import (
    FAIR_ACCOUNTS,
    FAIR_ROWS,
    LOOK_BYTES,
    LOOK_ROWS,
    MOST_COUNTED,
    LookRequest,
    OutboxBacklog,
    OutboxHead,
    RowPlace,
    WaitingRow,
)
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_loader, on_writer
from hookline.store.sqlite.driver.values import json_text

_READ = (
    "o.seq, CAST(o.id AS BLOB), o.at, o.deliver_at, o.account, o.type, o.idempotency_key, o.hops, o.payload"
)
_LEFT_OUT = "seq NOT IN (SELECT value FROM json_each(:moved))"

# Differs from postgres: the lengths are added up without the payloads, which SQLite would copy.
LOOK = f"""
WITH head AS MATERIALIZED (
  SELECT seq, length(payload) AS size FROM hookline_outbox WHERE seq > :floor AND {_LEFT_OUT} ORDER BY seq LIMIT {LOOK_ROWS}),
bounded AS (SELECT seq, sum(size) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - size AS before FROM head)
SELECT {_READ} FROM bounded CROSS JOIN hookline_outbox o ON o.seq = bounded.seq
WHERE bounded.before < {LOOK_BYTES} ORDER BY o.seq
"""
LOOK_FAIR = f"""
WITH RECURSIVE a (account, turn) AS (
  SELECT * FROM (SELECT account, 1 FROM hookline_outbox WHERE account > :after ORDER BY account LIMIT 1)
  UNION ALL
  SELECT (SELECT o.account FROM hookline_outbox o WHERE o.account > a.account ORDER BY o.account LIMIT 1), a.turn + 1
  FROM a WHERE a.account IS NOT NULL AND a.turn < {FAIR_ACCOUNTS}),
head AS MATERIALIZED (
  SELECT o.seq, a.turn, length(o.payload) AS size FROM a CROSS JOIN hookline_outbox o ON o.seq IN (
    SELECT seq FROM hookline_outbox WHERE account = a.account AND seq > :floor AND {_LEFT_OUT}
    ORDER BY seq LIMIT {FAIR_ROWS})),
bounded AS (
  SELECT seq, turn, sum(size) OVER (ORDER BY turn, seq ROWS UNBOUNDED PRECEDING) - size AS before FROM head)
SELECT {_READ}, (SELECT count(account) FROM a) FROM bounded CROSS JOIN hookline_outbox o ON o.seq = bounded.seq
WHERE bounded.before < {LOOK_BYTES} ORDER BY bounded.turn, o.seq
"""
DROP = """
DELETE FROM hookline_outbox WHERE seq IN (
  SELECT o.seq FROM json_each(:rows) k CROSS JOIN hookline_outbox o
  ON o.seq = json_extract(k.value, '$[0]') AND hex(o.id) = json_extract(k.value, '$[1]'))
"""
BACKLOG = f"""
SELECT (SELECT count(*) FROM (SELECT 1 FROM hookline_outbox LIMIT {MOST_COUNTED})),
  (SELECT at FROM hookline_outbox ORDER BY seq LIMIT 1)
"""


def look(connection: sqlite3.Connection, request: LookRequest) -> OutboxHead:
    """LOOK: one statement, fetched at once, so that no read transaction stays open."""
    values: dict[str, Any] = {"floor": request.floor, "moved": json_text(request.moved)}
    if request.fair_after is not None:
        return _fair(connection.execute(LOOK_FAIR, values | {"after": request.fair_after}).fetchall())
    rows = [_waiting(row) for row in connection.execute(LOOK, values).fetchall()]
    is_full = len(rows) >= LOOK_ROWS or sum([len(row.payload) for row in rows]) >= LOOK_BYTES
    return OutboxHead(rows, is_full)


def _fair(found: Sequence[Row]) -> OutboxHead:
    rows = [_waiting(row[:-1]) for row in found]
    if not rows:
        return OutboxHead([], True)  # the accounts behind the last one may have some
    is_round = found[0][-1] < FAIR_ACCOUNTS and sum([len(row.payload) for row in rows]) < LOOK_BYTES
    return OutboxHead(rows, True, last_account="" if is_round else rows[-1].account)


def _waiting(row: Row) -> WaitingRow:
    seq, id, at, deliver_at, account, type, key, hops, payload = row
    if (
        at.__class__ is float
        and account.__class__ is str
        and type.__class__ is str
        and hops.__class__ is int
        and (deliver_at is None or deliver_at.__class__ is float)
        and (key is None or key.__class__ is str)
    ):
        return WaitingRow(seq, id, at, deliver_at, account, type, key, hops, payload)
    return _spoiled(row)


def _spoiled(row: Row) -> WaitingRow:
    """A row with values of other kinds than its columns': it is read so that it can be refused."""
    seq, id, at, deliver_at, account, type, key, hops, payload = row
    kinds = (
        ("at", at, float),
        ("deliver_at", deliver_at, float | None),
        ("account", account, str),
        ("type", type, str),
    )
    wrong = [
        name
        for name, value, kind in (*kinds, ("idempotency_key", key, str | None), ("hops", hops, int))
        if not isinstance(value, kind)
    ]
    return WaitingRow(
        seq,
        id,
        at if isinstance(at, float) else 0.0,
        deliver_at if isinstance(deliver_at, float) else None,
        _text(account),
        _text(type),
        None if key is None else _text(key),
        hops if isinstance(hops, int) else 0,
        payload,
        fault=f"{', '.join(wrong)}: not of the column's kind",
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)[:200]


def drop(connection: sqlite3.Connection, rows: Sequence[RowPlace]) -> None:
    """DROP."""
    connection.execute(DROP, {"rows": json_text([(row.seq, row.id.hex().upper()) for row in rows])})


def backlog(connection: sqlite3.Connection) -> OutboxBacklog:
    """The rows that wait."""
    rows, oldest_at = connection.execute(BACKLOG).fetchone()
    return OutboxBacklog(rows, oldest_at if isinstance(oldest_at, float) else None)


class SqliteOutbox(SqliteConnections):
    """The contract's verbs about the rows of hookline's own outbox."""

    @on_loader
    def look_at_outbox(self, connection: sqlite3.Connection, request: LookRequest) -> OutboxHead:
        """LOOK: up to LOOK_ROWS committed rows and LOOK_BYTES of payloads; locks nothing."""
        return look(connection, request)

    @on_writer
    def drop_from_outbox(self, connection: sqlite3.Connection, rows: Sequence[RowPlace]) -> None:
        """DROP: delete these rows; one that is gone is no error."""
        drop(connection, rows)

    @on_lister
    def outbox_backlog(self, connection: sqlite3.Connection) -> OutboxBacklog:
        """How many committed rows there are, and since when."""
        return backlog(connection)
