"""Settles a batch in which an endpoint answered that it is gone, on PostgreSQL."""

from collections.abc import Sequence
from typing import Any

from hookline.store.contract import GONE, Settlement
from hookline.store.postgres import sql
from hookline.store.postgres.driver.links import Connection


async def settle_and_disable(
    batch: Sequence[Settlement], values: Sequence[object], connection: Connection, *, now: float
) -> list[Any]:
    """Settle, and disable the endpoints that are gone, in one commit; the rows of SETTLE."""
    gone = [(n, each) for n, each in enumerate(batch) if each.gone is not None]
    await connection.fetch(sql.LOCK_GONE, sorted({each.endpoint_id for _, each in gone}))
    missed: list[Any] = await connection.fetch(sql.SETTLE, *values)
    late = {row["n"] for row in missed}
    for id, asked in sorted({(each.endpoint_id, each.gone) for n, each in gone if n not in late}):
        if await connection.fetch(sql.DISABLE_GONE, id, asked, GONE, now):
            await connection.fetch(sql.PAUSE_GONE, id)
            await connection.fetch(sql.WRITE_CHANGE, id, "endpoint", now)
    return missed
