"""Reads what `hookline doctor` needs of an outbox in an SQLite file, without changing it."""

import re
import sqlite3
from contextlib import closing
from urllib.parse import quote

from hookline.store.contract.doctor import MOST_COUNTED, OUTBOX_COLUMNS, OutboxExamination
from hookline.store.sqlite.driver.faults import translated

LOCK_S = 0.5
TABLE = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'hookline_outbox'"
COLUMNS = "SELECT name FROM pragma_table_info('hookline_outbox')"
USED = "SELECT seq FROM sqlite_sequence WHERE name = 'hookline_outbox' AND seq > 0"
COUNT = "SELECT count(*) FROM (SELECT 1 FROM hookline_outbox LIMIT :most)"
OLDEST = "SELECT at FROM hookline_outbox ORDER BY seq LIMIT 1"


def examine_outbox(path: str, *, wall: float) -> OutboxExamination:
    """The facts about an existing file; raises hookline's errors when it cannot be read."""
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=LOCK_S)) as connection:
            return _examine(connection, wall=wall)
    except sqlite3.Error as error:
        raise translated(error) from None


def _examine(connection: sqlite3.Connection, *, wall: float) -> OutboxExamination:
    server = f"SQLite {sqlite3.sqlite_version}"
    table = connection.execute(TABLE).fetchone()
    if table is None:
        return OutboxExamination(server=server, has_table=False)
    names = {name for (name,) in connection.execute(COLUMNS)}
    columns = tuple(each for each in OUTBOX_COLUMNS if each not in names)
    reuses = re.search(r"\bautoincrement\b", table[0], re.IGNORECASE) is None
    if columns:
        return OutboxExamination(server=server, missing_columns=columns, reuses_numbers=reuses)
    (waiting,) = connection.execute(COUNT, {"most": MOST_COUNTED}).fetchone()
    oldest = connection.execute(OLDEST).fetchone()
    is_time = oldest is not None and isinstance(oldest[0], int | float)
    return OutboxExamination(
        server=server,
        reuses_numbers=reuses,
        was_used=not reuses and connection.execute(USED).fetchone() is not None,
        waiting=waiting,
        oldest_age_s=max(0.0, wall - oldest[0]) if is_time else None,
    )
