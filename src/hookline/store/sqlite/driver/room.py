"""Is there room in the file, or on its disk, for one more event?

Whatever SQLite does, it writes to its log first, and taking something away is writing too. So the last of the disk is
kept for settling and pruning: publishes are refused a little before it is full.
"""

import os
import sqlite3

from hookline.errors import StorageFull

KEPT_BYTES = 16 * 1024 * 1024  # twice what the log and a few steps of pruning need
FREE_PAGES = 256  # of the file, left by what was pruned: a batch needs no more of the disk then


def refuse_if_low(connection: sqlite3.Connection, *, folder: str, kept_bytes: int = KEPT_BYTES) -> None:
    """Raise unless what is accepted now leaves something for those who settle and prune."""
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize >= kept_bytes:
        return
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    if free < FREE_PAGES:
        raise StorageFull("SQLite's disk is all but full; what is left is for settling and pruning.")
