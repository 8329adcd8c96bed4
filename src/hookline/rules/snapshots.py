"""When does somebody who keeps dead rows from being cleaned up deserve a warning?

Looking for work reads over dead rows, so it gets slower for as long as they stay. Nothing of hookline holds a snapshot
for longer than a few seconds, but for a count of very many rows.
"""

OLD_S = 15.0  # looked at every 10 s, a forgotten transaction is known before it is 30 s old
OLD_TRANSACTIONS = 20_000  # of one without an age: some ten minutes of an installation that is busy
LONG_LOG_BYTES = 256 * 1024 * 1024  # of SQLite, whose log is cut back to 64 MiB when it can be


def is_old(*, seconds: float | None, transactions: int, old_s: float = OLD_S) -> bool:
    """Is a snapshot old, by its age or, where that is not known, by what has been done since?"""
    return transactions >= OLD_TRANSACTIONS if seconds is None else seconds >= old_s


def is_long(log_bytes: int | None) -> bool:
    """Has SQLite's log become so long that a reader must be keeping it from beginning anew?"""
    return log_bytes is not None and log_bytes >= LONG_LOG_BYTES
