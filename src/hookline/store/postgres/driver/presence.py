"""Knows the session that shows other processes that this one is there.

It is the one of its pulse, by a lock on the worker's id (see `sql`). A worker's row says that it has one, from when the lock
was taken on that very session. Who never had one is not missed.
"""

from hookline.model import WorkerId
from hookline.store.postgres.driver.links import Connection


class SessionPresence:
    """The session of the pulse, and whose locks it holds."""

    def __init__(self) -> None:
        self._connection: Connection = None
        self._number = 0
        self.held: frozenset[WorkerId] = frozenset()  # more than one where a process goes on under a new id

    def number(self, connection: Connection) -> int:
        """The session's number: each new one has another."""
        if connection is not self._connection:
            self._connection = connection
            self._number += 1
            self.held = frozenset()
        return self._number

    def lacks(self, worker: WorkerId | None) -> bool:
        """Is there a lock to be taken (again) for the worker?"""
        return worker is not None and worker not in self.held

    def holds(self, connection: Connection, worker: WorkerId) -> None:
        """The session holds the worker's lock."""
        self.number(connection)
        self.held |= {worker}
