"""Records which rows a commit changed.

Temporary triggers on the writer's connection record every changed row. After each commit the list is read and applied
to a copy in memory. So the checks see each commit by itself, with the old and the new row, at a cost that depends only
on what changed. The database file contains none of this.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hookline.store.sqlite import accept, lanes
from hookline.store.sqlite.driver import bulk
from hookline.store.sqlite.driver.writer import CarryOut, Inline, commit_together

Row = dict[str, Any]

TABLES: dict[str, tuple[tuple[str, ...], str]] = {
    "deliveries": (("id",), "id endpoint_id state queue attempts marks replays due_at done_at reason seq"),
    "lanes": (
        ("endpoint_id",),
        "endpoint_id owner epoch wake_at hold_until paused deleted suspect strict head circuit failures cooldown "
        "opened_at probe_at tokens tokens_at applied rest_until",
    ),
    "events": (("id",), "id account type payload idempotency_key deliver_at created_at"),
    "attempts": (
        ("delivery_id", "id"),
        "delivery_id id number replays late at outcome duration status error error_detail",
    ),
    "workers": (("id",), "id beat buried_at draining"),
    "endpoints": (
        ("id",),
        "id account url events enabled paused secret old_secret old_secret_until max_in_flight rate_limit ordering "
        "circuit retry timeout",
    ),
    "idempotency": (("account", "key"), "account key event_id"),
    "pruned": (("account",), "account deliveries events"),
    "changes": (("n",), "n endpoint_id kind"),
    "outbox_refused": (("n",), "n source seq id code"),
    "latency_log": (("worker", "n"), "worker n late samples"),
    "latency_minutes": (("endpoint_id", "at", "source"), "endpoint_id at source attempts"),
}
_COLUMNS = {table: columns.split() for table, (_, columns) in TABLES.items()}
_WIDEST = max(map(len, _COLUMNS.values()))


@contextmanager
def uncounted() -> Iterator[None]:
    """Have the product count the rows that its own statements change, and not those that the triggers write."""

    def write_rows(connection: sqlite3.Connection, sql: str, rows: Sequence[bulk.Row], **first: Any) -> int:
        before = _fed(connection)
        changed = bulk.write_rows(connection, sql, rows, **first)
        return changed - (_fed(connection) - before)

    for module in (accept, lanes):
        vars(module)["write_rows"] = write_rows
    try:
        yield
    finally:
        for module in (accept, lanes):
            vars(module)["write_rows"] = bulk.write_rows


def _fed(connection: sqlite3.Connection) -> int:
    (fed,) = connection.execute("SELECT coalesce(max(n), 0) FROM temp.feed").fetchone()
    return int(fed)


class Change:
    """One row before and after; None if it did not or does not exist."""

    __slots__ = ("new", "old", "table")

    def __init__(self, table: str, old: Row | None, new: Row | None) -> None:
        self.table = table
        self.old = old
        self.new = new


class Shadow:
    """The rows as they are committed, and what the last commit changed."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._seen = 0
        self.rows: dict[str, dict[Any, Row]] = {table: {} for table in TABLES}

    def executor(self, connection: sqlite3.Connection, carry_out: CarryOut) -> Inline:
        """The store's executor: in line, no disk waited for, and watched if it writes."""
        connection.execute("PRAGMA synchronous = OFF")
        if carry_out is commit_together:
            self._watch(connection)
        return Inline(connection, carry_out)

    def _watch(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        fields = ", ".join(f"c{n}" for n in range(_WIDEST))
        connection.execute(
            f"CREATE TEMP TABLE feed (n INTEGER PRIMARY KEY, what TEXT, gone INTEGER, {fields})"
        )
        for table, columns in _COLUMNS.items():
            # The migrations' rows were written before the triggers existed.
            for values in connection.execute(f"SELECT {', '.join(columns)} FROM main.{table}").fetchall():
                self._carry(table, 0, values)
            into = ", ".join(f"c{n}" for n in range(len(columns)))
            for verb, side in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
                values = ", ".join(f"{side}.{column}" for column in columns)
                connection.execute(
                    f"CREATE TEMP TRIGGER feed_{table}_{verb} AFTER {verb} ON main.{table} BEGIN "
                    f"INSERT INTO feed (what, gone, {into}) VALUES ('{table}', {int(side == 'OLD')}, {values}); END"
                )
        self._seen = connection.total_changes

    def changed(self) -> list[Change]:
        """The changes committed since the last call, in order."""
        connection = self._connection
        assert connection is not None
        if connection.total_changes == self._seen:
            return []
        found = connection.execute("SELECT * FROM feed ORDER BY n").fetchall()
        connection.execute("DELETE FROM feed")
        self._seen = connection.total_changes
        return [self._carry(what, gone, values) for _, what, gone, *values in found]

    def _carry(self, table: str, gone: int, values: Sequence[Any]) -> Change:
        row = dict(zip(_COLUMNS[table], values, strict=False))
        names = TABLES[table][0]
        key = row[names[0]] if len(names) == 1 else tuple(row[name] for name in names)
        rows = self.rows[table]
        old = rows.get(key)
        if gone:
            rows.pop(key, None)
            return Change(table, old, None)
        rows[key] = row
        return Change(table, old, row)

    def differences(self) -> list[str]:
        """The tables that differ from the copy; there must be none, or the copy is wrong."""
        assert self._connection is not None
        wrong = []
        for table, columns in _COLUMNS.items():
            stored = self._connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
            ours = [tuple(row[column] for column in columns) for row in self.rows[table].values()]
            if sorted(map(repr, stored)) != sorted(map(repr, ours)):
                wrong.append(table)
        return wrong
