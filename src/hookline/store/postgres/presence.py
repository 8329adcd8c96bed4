"""Which session shows the others that this process is there?

The one of its pulse, by a lock on the worker's id (see `sql`). A worker's row says that it has one, from when the lock
was taken on that very session. Who never had one is not missed.
"""

from hookline.model import WorkerId
from hookline.store.postgres.links import Connection


class Presence:
    """The session of the pulse, and whose lock it holds."""

    def __init__(self) -> None:
        self._connection: Connection = None
        self._number = 0
        self._held: WorkerId | None = None

    def number(self, connection: Connection) -> int:
        """The session's number: each new one has another."""
        if connection is not self._connection:
            self._connection = connection
            self._number += 1
            self._held = None
        return self._number

    def lacks(self, worker: WorkerId | None) -> bool:
        """Is there a lock to be taken (again) for the worker?"""
        return worker is not None and worker != self._held

    def holds(self, connection: Connection, worker: WorkerId | None) -> None:
        """The session holds the worker's lock."""
        self.number(connection)
        self._held = worker
