"""Reads what `hookline doctor` needs of an SQLite file, without changing it."""

import sqlite3
from typing import Any
from urllib.parse import quote

from hookline.errors import HooklineError
from hookline.store.contract.doctor import MOST_COUNTED, PLAIN, SEAL, SEALED, Examination, Waiting
from hookline.store.sqlite import sql
from hookline.store.sqlite.driver.connection import OLDEST_SQLITE
from hookline.store.sqlite.driver.faults import translated
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS
from hookline.store.sqlite.endpoints import read_endpoints
from hookline.store.sqlite.figures import OLDEST_DUE
from hookline.store.sqlite.migrations import schema
from hookline.store.sqlite.workers import read_worker

COUNT_DUE = """
SELECT count(*) FROM (
  SELECT 1 FROM lanes l CROSS JOIN deliveries d INDEXED BY deliveries_ready ON d.endpoint_id = l.endpoint_id
  WHERE d.state = 'pending' AND d.queue = 'ready' AND l.paused = 0 AND l.hold_until <= :now AND d.due_at <= :now
  UNION ALL
  SELECT 1 FROM lanes l CROSS JOIN deliveries d INDEXED BY deliveries_timed ON d.endpoint_id = l.endpoint_id
  WHERE d.state = 'pending' AND d.queue = 'timed' AND l.paused = 0 AND l.hold_until <= :now AND d.due_at <= :now
  LIMIT :most)
"""


def examine(path: str, *, wall: float) -> Examination:
    """The facts about an existing file; raises hookline's errors when it cannot be read."""
    contents: dict[str, Any] = {}
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=1.0)
        try:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            schema = _schema(connection)
            written = 0.0 if schema else connection.execute(sql.PULSE_CLOCK).fetchone()[0]
            if schema is None:
                contents = _contents(connection, now=max(written, wall))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise translated(error) from error
    too_old = sqlite3.sqlite_version_info < OLDEST_SQLITE
    return Examination(
        server=f"SQLite {sqlite3.sqlite_version}",
        now=written,
        settings={"journal_mode": mode},
        unsafe=f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or later is needed." if too_old else None,
        schema=schema,
        **contents,
    )


def _contents(connection: sqlite3.Connection, *, now: float) -> dict[str, Any]:
    mark = connection.execute(SEAL).fetchone()
    values = {"now": now, "most": MOST_COUNTED}
    (since,) = connection.execute(OLDEST_DUE, values).fetchone()
    waiting = None
    if since is not None:
        (deliveries,) = connection.execute(COUNT_DUE, values).fetchone()
        waiting = Waiting(deliveries=deliveries, since=since)
    return {
        "seal": mark[0] if mark else "",
        "sealed": tuple(connection.execute(SEALED).fetchall()),
        "plain": connection.execute(PLAIN).fetchone()[0],
        "endpoints": tuple(
            read_endpoints(
                connection,
                sql.LIST_ENDPOINTS,
                {"enabled": None, "before": ABOVE_ALL_IDS, "limit": MOST_COUNTED},
            )
        ),
        "workers": tuple(map(read_worker, connection.execute(sql.PULSE_WORKERS).fetchall())),
        "waiting": waiting,
    }


def _schema(connection: sqlite3.Connection) -> str | None:
    try:
        schema.refuse_unless_usable(connection)
    except HooklineError as error:
        return str(error)
    return None
