"""Refuses publishes when the disk is nearly full.

SQLite writes everything to its log first, even a delete. So the last of the disk is kept for settling and pruning:
publishes are refused a little before it is full.
"""

import os
import sqlite3

from hookline.errors import StorageFull

KEPT_BYTES = 16 * 1024 * 1024  # twice what the log and a few steps of pruning need
FREE_PAGES = 256  # of the file, left by pruning: a batch then needs no more of the disk


def refuse_if_low(connection: sqlite3.Connection, *, folder: str, kept_bytes: int = KEPT_BYTES) -> None:
    """Raise unless accepting now leaves enough room for settling and pruning."""
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize >= kept_bytes:
        return
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    if free < FREE_PAGES:
        raise StorageFull("SQLite's disk is all but full; what is left is for settling and pruning.")
