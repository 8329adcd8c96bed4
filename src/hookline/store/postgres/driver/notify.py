"""Sends notifications on PostgreSQL.

NOTIFY takes a lock that all committing notifiers of the database share. So it is never part of another transaction, and
callers keep it rare. LISTEN needs a session that stays with one client. Behind a pooler that lends sessions for single
transactions it succeeds and hears nothing. So a probe is sent to each new listener first.
"""

import asyncio
import base64
import binascii
from collections.abc import Callable

from hookline.errors import StoreRefused, StoreUnavailable
from hookline.model import EndpointId, WorkerId
from hookline.store.contract.notify import MOST_LANES, Notification
from hookline.store.postgres.driver.faults import translated
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions

CHANNEL = "hookline"
NOTIFY = "SELECT pg_notify($1, $2)"
PROBE = "probe "  # followed by its addressee
PROBE_TIMEOUT = 5.0
UNHEARD = (
    "LISTEN hears nothing on this connection, as behind a pooler in transaction mode: "
    "let the database URL name PostgreSQL itself (deliveries are found by polling meanwhile)."
)
_EVERY_LANE, _CHANGE = 1, 2
_HEAD = 17  # bytes: the origin and the flags
_ID = 16


class PostgresNotify(PostgresSessions):
    """The contract's verbs about notifications."""

    probe_timeout = PROBE_TIMEOUT

    async def notify(self, notification: Notification) -> None:
        """See the contract."""
        await self._lanes.fetch(NOTIFY, CHANNEL, written(notification))

    async def listen(
        self, hear: Callable[[Notification], None], *, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """See the contract."""
        with translated():
            connection = await self._listener()
            try:
                await self._listen(connection, hear, on_ready)
            finally:
                connection.terminate()

    async def _listen(
        self, connection: Connection, hear: Callable[[Notification], None], on_ready: Callable[[], None]
    ) -> None:
        probe = f"{PROBE}{connection.get_server_pid()}"
        probed, lost = asyncio.Event(), asyncio.Event()

        def heard(_: Connection, __: int, ___: str, text: str) -> None:
            if text == probe:
                probed.set()
            elif (notification := read(text)) is not None:
                hear(notification)

        connection.add_termination_listener(lambda _: lost.set())
        await connection.add_listener(CHANNEL, heard)
        # From another session: a pooler would return a session's own notification with the answer.
        await self._lanes.fetch(NOTIFY, CHANNEL, probe)
        try:
            async with asyncio.timeout(self.probe_timeout):
                await probed.wait()
        except TimeoutError:
            raise StoreRefused(UNHEARD) from None
        on_ready()
        await lost.wait()
        raise StoreUnavailable("The session that listens was lost.")


def written(notification: Notification) -> str:
    """A notification as its text."""
    if len(notification.lanes) > MOST_LANES:
        raise ValueError(f"a notification names {MOST_LANES} lanes at most")
    flags = notification.is_every_lane * _EVERY_LANE | notification.is_change * _CHANGE
    return base64.b64encode(notification.origin + bytes([flags]) + b"".join(notification.lanes)).decode()


def read(text: str) -> Notification | None:
    """The notification in a text; None when it is not one of ours: anybody may notify on any channel."""
    try:
        found = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None
    if len(found) < _HEAD or (len(found) - _HEAD) % _ID:
        return None
    flags = found[_HEAD - 1]
    return Notification(
        origin=WorkerId(found[: _HEAD - 1]),
        lanes=tuple(EndpointId(found[n : n + _ID]) for n in range(_HEAD, len(found), _ID)),
        is_every_lane=bool(flags & _EVERY_LANE),
        is_change=bool(flags & _CHANGE),
    )
