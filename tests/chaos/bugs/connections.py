"""What if hookline asked less of its database?"""

from collections.abc import Callable
from functools import partialmethod

from hookline.store.postgres import session as postgres_session
from hookline.store.postgres.store import PostgresStore


def commit_unflushed() -> None:
    """PostgreSQL answers a commit before it is on the disk, and hookline lets it."""
    postgres_session.HOT["synchronous_commit"] = "off"
    PostgresStore.__init__ = partialmethod(PostgresStore.__init__, unsafe=True)  # type: ignore[method-assign]


def wait_for_ever() -> None:
    """A call to the database has no ceiling."""
    PostgresStore.__init__ = partialmethod(PostgresStore.__init__, call_timeout=None)  # type: ignore[method-assign]


BUGS: dict[str, Callable[[], None]] = {
    "commit-unflushed": commit_unflushed,
    "wait-for-ever": wait_for_ever,
}
