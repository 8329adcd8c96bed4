"""Reads and deletes rows of an outbox in a PostgreSQL database that is not hookline's own."""

from collections.abc import Sequence
from functools import partial

from hookline.store.contract.outbox import LookRequest, OutboxBacklog, OutboxHead, RowPlace
from hookline.store.postgres.driver import session
from hookline.store.postgres.driver.pool import SessionPool
from hookline.store.postgres.driver.sessions import CALL_TIMEOUT
from hookline.store.postgres.outbox import table

HAS_ROWS = "SELECT EXISTS (SELECT FROM hookline.outbox WHERE seq > $1) AS has_rows"


class PostgresForeignOutbox:
    """The table of an application's own database."""

    is_file = False

    def __init__(self, url: str) -> None:
        # How well that database keeps what was committed is its application's choice.
        connect = partial(session.connect, url, role="outbox", settings=session.HOT, unsafe=True)
        self._looks = SessionPool(connect, role="outbox look", call_timeout=CALL_TIMEOUT)
        self._drops = SessionPool(connect, role="outbox drop", call_timeout=CALL_TIMEOUT)

    async def look_at_outbox(self, request: LookRequest) -> OutboxHead:
        """See the contract."""
        return await table.look(self._looks, request)

    async def drop_from_outbox(self, rows: Sequence[RowPlace]) -> None:
        """See the contract."""
        await table.drop(self._drops, rows)

    async def outbox_backlog(self) -> OutboxBacklog:
        """See the contract."""
        return await table.backlog(self._looks)

    async def has_outbox_rows(self, *, above: int) -> bool:
        """Whether there is a row with a higher number."""
        with table.explained():
            [found] = await self._looks.fetch(HAS_ROWS, above)
        return bool(found["has_rows"])

    async def close(self) -> None:
        """Close every connection."""
        await self._looks.close()
        await self._drops.close()
