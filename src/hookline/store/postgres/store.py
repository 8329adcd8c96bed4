"""Keeps everything in PostgreSQL.

The verbs are in the modules that are named after their nouns; this one opens and closes the sessions.
"""

from hookline.store.failpoints import failing
from hookline.store.postgres.accept import PostgresAccept
from hookline.store.postgres.access.audit import PostgresAudit
from hookline.store.postgres.access.keys import PostgresKeys
from hookline.store.postgres.access.sessions import PostgresBrowserSessions
from hookline.store.postgres.deliveries import PostgresDeliveries
from hookline.store.postgres.driver import session
from hookline.store.postgres.driver.faults import translated
from hookline.store.postgres.driver.notify import PostgresNotify
from hookline.store.postgres.driver.pool import Work
from hookline.store.postgres.driver.sessions import CALL_TIMEOUT
from hookline.store.postgres.endpoints import PostgresEndpoints
from hookline.store.postgres.event_types import PostgresEventTypes
from hookline.store.postgres.events import PostgresEvents
from hookline.store.postgres.figures import PostgresFigures
from hookline.store.postgres.installation import PostgresInstallation
from hookline.store.postgres.jobs import PostgresJobs
from hookline.store.postgres.lanes import PostgresLanes
from hookline.store.postgres.lists.id_ranges import PostgresIdRanges
from hookline.store.postgres.measuring.alerts import PostgresAlerts
from hookline.store.postgres.measuring.announcements import PostgresAnnouncements
from hookline.store.postgres.measuring.board import PostgresBoard
from hookline.store.postgres.measuring.deaths import PostgresDeaths
from hookline.store.postgres.measuring.flow import PostgresFlow
from hookline.store.postgres.measuring.health import PostgresHealth
from hookline.store.postgres.measuring.latency import PostgresLatency
from hookline.store.postgres.measuring.people import PostgresPeople
from hookline.store.postgres.measuring.status import PostgresStatus
from hookline.store.postgres.migrations.schema import bring_up_to_date, refuse_unless_usable, would_apply
from hookline.store.postgres.outbox.refused import PostgresRefused
from hookline.store.postgres.outbox.sources import PostgresSources
from hookline.store.postgres.outbox.table import PostgresOutbox
from hookline.store.postgres.retention import PostgresRetention
from hookline.store.postgres.workers import PostgresWorkers
from hookline.store.slow_verbs import noting_slow_verbs


@failing
@noting_slow_verbs
class PostgresStore(
    PostgresAccept,
    PostgresLanes,
    PostgresWorkers,
    PostgresEndpoints,
    PostgresJobs,
    PostgresDeliveries,
    PostgresEvents,
    PostgresEventTypes,
    PostgresKeys,
    PostgresBrowserSessions,
    PostgresAudit,
    PostgresIdRanges,
    PostgresInstallation,
    PostgresFigures,
    PostgresDeaths,
    PostgresAlerts,
    PostgresHealth,
    PostgresStatus,
    PostgresBoard,
    PostgresFlow,
    PostgresRetention,
    PostgresLatency,
    PostgresAnnouncements,
    PostgresPeople,
    PostgresNotify,
    PostgresOutbox,
    PostgresRefused,
    PostgresSources,
):
    """The store for any number of processes on one database."""

    exclusive = False  # any number of processes work on one database

    async def migrate(self) -> list[str]:
        """See the contract."""
        return await self._in_own_session(bring_up_to_date)

    async def outstanding(self) -> list[str]:
        """See the contract."""
        return await self._in_own_session(would_apply)

    async def _in_own_session(self, work: Work[list[str]]) -> list[str]:
        """Run it in a session of its own, for as long as it takes."""
        with translated():
            connection = await session.connect(
                self._url, role="migrate", settings=session.SLOW, unsafe=self._unsafe
            )
            try:
                names = await work(connection)
                await connection.close(timeout=CALL_TIMEOUT)
            finally:
                connection.terminate()
            return names

    async def open(self, *, serve: bool = True) -> None:
        """See the contract; any number of processes may serve one database."""
        for pool in self._pools:
            pool.open()
        try:
            await self._general.run(refuse_unless_usable)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """See the contract."""
        for pool in self._pools:
            await pool.close()
