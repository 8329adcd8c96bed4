"""Knows the session that shows other processes that this one is alive.

It is the session of the pulse, with a lock on the worker's id (see `sql`). The worker's row says that it has such a
session, from the moment the lock was taken on that very session. A worker that never had one is not missed.
"""

from hookline.model import WorkerId
from hookline.store.postgres.driver.pool import Connection


class SessionPresence:
    """The session of the pulse, with the workers whose locks it holds."""

    def __init__(self) -> None:
        self._connection: Connection = None
        self._number = 0
        self.held: frozenset[WorkerId] = frozenset()  # more than one where a process continued under a new id

    def number(self, connection: Connection) -> int:
        """The session's number: each new session has another one."""
        if connection is not self._connection:
            self._connection = connection
            self._number += 1
            self.held = frozenset()
        return self._number

    def lacks(self, worker: WorkerId | None) -> bool:
        """Whether a lock has to be taken (again) for the worker."""
        return worker is not None and worker not in self.held

    def holds(self, connection: Connection, worker: WorkerId) -> None:
        """The session holds the worker's lock."""
        self.number(connection)
        self.held |= {worker}
