"""Bugs: hookline asks too little of its database."""

from collections.abc import Callable
from functools import partialmethod
from typing import Any

from hookline.store.postgres.driver import session as postgres_session
from hookline.store.postgres.store import PostgresStore


def commit_unflushed() -> None:
    """PostgreSQL answers a commit before it is on disk, and hookline allows it."""
    postgres_session.HOT["synchronous_commit"] = "off"
    PostgresStore.__init__ = partialmethod(PostgresStore.__init__, unsafe=True)


def wait_for_ever() -> None:
    """A call to the database has no timeout."""
    PostgresStore.__init__ = partialmethod(PostgresStore.__init__, call_timeout=None)


def share_one_session() -> None:
    """All calls of a process to the database go through one session, one after the other."""
    make = PostgresStore.__init__

    def shared(self: Any, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        for role in ("_settle", "_lanes", "_loads", "_pulse", "_general", "_lists", "_prune"):
            setattr(self, role, self._accept)
        self._pools = (self._accept,)

    PostgresStore.__init__ = shared


BUGS: dict[str, Callable[[], None]] = {
    "commit-unflushed": commit_unflushed,
    "wait-for-ever": wait_for_ever,
    "one-pool-for-all": share_one_session,
}
