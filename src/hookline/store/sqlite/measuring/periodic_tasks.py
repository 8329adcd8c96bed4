"""Gives a periodic task to one process at a time on SQLite.

A write transaction has the whole file, so a row that it finds due is its own until it commits. Whatever takes long is
read before, on another connection.
"""

import sqlite3

CLAIM_TASK = "SELECT 1 FROM periodic_tasks WHERE name = :name AND next_at <= :now"
ADD_TASK = "INSERT OR IGNORE INTO periodic_tasks (name) VALUES (:name)"
MOVE_TASK = "UPDATE periodic_tasks SET next_at = :next_at WHERE name = :name"


def claim(connection: sqlite3.Connection, name: str, *, now: float) -> bool:
    """Whether the task is due and this transaction has it now."""
    connection.execute(ADD_TASK, {"name": name})
    return connection.execute(CLAIM_TASK, {"name": name, "now": now}).fetchone() is not None


def move_on(connection: sqlite3.Connection, name: str, *, next_at: float) -> None:
    """Say when the task is due again."""
    connection.execute(MOVE_TASK, {"name": name, "next_at": next_at})
