"""Keeps everything in one SQLite file.

The verbs are in the modules that are named after their nouns; this one opens and closes the file.
"""

import sqlite3

from hookline.store.failpoints import failing
from hookline.store.slow_verbs import noting_slow_verbs
from hookline.store.sqlite.accept import SqliteAccept
from hookline.store.sqlite.access.audit import SqliteAudit
from hookline.store.sqlite.access.keys import SqliteKeys
from hookline.store.sqlite.access.sessions import SqliteBrowserSessions
from hookline.store.sqlite.deliveries import SqliteDeliveries
from hookline.store.sqlite.driver.connection import connect, refuse_unwritable
from hookline.store.sqlite.driver.faults import translated
from hookline.store.sqlite.driver.notify import SqliteNotify
from hookline.store.sqlite.driver.presence import FilePresence
from hookline.store.sqlite.driver.shared_commit import OnLoop
from hookline.store.sqlite.driver.writer import Threaded, commit_together, run_each
from hookline.store.sqlite.endpoints import SqliteEndpoints
from hookline.store.sqlite.event_types import SqliteEventTypes
from hookline.store.sqlite.events import SqliteEvents
from hookline.store.sqlite.figures import SqliteFigures
from hookline.store.sqlite.installation import SqliteInstallation
from hookline.store.sqlite.jobs import SqliteJobs
from hookline.store.sqlite.lanes import SqliteLanes
from hookline.store.sqlite.lists.id_ranges import SqliteIdRanges
from hookline.store.sqlite.measuring.alerts import SqliteAlerts
from hookline.store.sqlite.measuring.announcements import SqliteAnnouncements
from hookline.store.sqlite.measuring.board import SqliteBoard
from hookline.store.sqlite.measuring.deaths import SqliteDeaths
from hookline.store.sqlite.measuring.flow import SqliteFlow
from hookline.store.sqlite.measuring.health import SqliteHealth
from hookline.store.sqlite.measuring.latency import SqliteLatency
from hookline.store.sqlite.measuring.people import SqlitePeople
from hookline.store.sqlite.measuring.status import SqliteStatus
from hookline.store.sqlite.migrations import schema
from hookline.store.sqlite.outbox.refused import SqliteRefused
from hookline.store.sqlite.outbox.sources import SqliteSources
from hookline.store.sqlite.outbox.table import SqliteOutbox
from hookline.store.sqlite.retention import SqliteRetention
from hookline.store.sqlite.workers import SqliteWorkers


@failing
@noting_slow_verbs
class SqliteStore(
    SqliteAccept,
    SqliteLanes,
    SqliteWorkers,
    SqliteEndpoints,
    SqliteJobs,
    SqliteDeliveries,
    SqliteEvents,
    SqliteEventTypes,
    SqliteKeys,
    SqliteBrowserSessions,
    SqliteAudit,
    SqliteIdRanges,
    SqliteInstallation,
    SqliteFigures,
    SqliteDeaths,
    SqliteAlerts,
    SqliteHealth,
    SqliteStatus,
    SqliteBoard,
    SqliteFlow,
    SqliteRetention,
    SqliteLatency,
    SqliteAnnouncements,
    SqlitePeople,
    SqliteNotify,
    SqliteOutbox,
    SqliteRefused,
    SqliteSources,
):
    """The store in one file."""

    exclusive = True  # one process serves a file

    def __repr__(self) -> str:
        return f"SqliteStore({self._path!r})"

    async def migrate(self) -> list[str]:
        """Bring the schema up to date, safely beside others doing the same; the names of the applied migrations."""
        connection = connect(self._path, create=True)
        try:
            return schema.migrate(connection, at=self._clock.wall())
        except sqlite3.Error as error:
            raise translated(error) from error
        finally:
            connection.close()

    async def outstanding(self) -> list[str]:
        """The migrations that `migrate` would apply; changes nothing."""
        return schema.would_apply(self._path)

    async def open(self, *, serve: bool = True) -> None:
        """Connect; refuse an unsafe or foreign file, and one that another process serves."""
        connections: list[sqlite3.Connection] = []
        refuse_unwritable(self._path, create=False)
        if serve:
            self._lock.acquire()  # first: the process that serves the file decides when it is migrated
        try:
            connections.append(connect(self._path))
            self._presence = FilePresence(self._path)
            schema.refuse_unless_usable(connections[0])
            connections += [connect(self._path), connect(self._path)]
        except BaseException as error:
            for connection in connections:
                connection.close()
            self._lock.release()
            if isinstance(error, sqlite3.Error):
                raise translated(error) from error
            raise
        self._writer = (self._executor or OnLoop)(connections[0], commit_together)
        self._loader = (self._executor or Threaded)(connections[1], run_each)
        self._lister = (self._executor or Threaded)(connections[2], run_each)

    async def close(self) -> None:
        """Finish the work handed in and close every connection."""
        # The writer closes last: the last connection to close copies the log into the file.
        for executor in (self._counter, self._lister, self._loader, self._writer):
            if executor is not None:
                await executor.stop()
        self._lock.release()
