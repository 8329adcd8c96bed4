"""Decides when to warn about a transaction that keeps dead rows from being cleaned up.

Looking for work reads over dead rows, so it gets slower for as long as they stay. hookline itself holds no snapshot for
longer than a few seconds, except to count very many rows.
"""

OLD_S = 15.0  # with a look every 10 s, a forgotten transaction is found before it is 30 s old
OLD_TRANSACTIONS = 20_000  # for a snapshot without an age: about ten minutes of a busy installation
LONG_LOG_BYTES = 256 * 1024 * 1024  # of SQLite, which cuts its log back to 64 MiB when it can


def is_old(*, seconds: float | None, transactions: int, old_s: float = OLD_S) -> bool:
    """Whether a snapshot is old: by its age or, if that is unknown, by the transactions since."""
    return transactions >= OLD_TRANSACTIONS if seconds is None else seconds >= old_s


def is_long(log_bytes: int | None) -> bool:
    """Whether SQLite's log is so long that a reader must be keeping it from starting over."""
    return log_bytes is not None and log_bytes >= LONG_LOG_BYTES
