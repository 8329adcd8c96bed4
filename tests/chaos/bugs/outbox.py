"""Bugs: rows of an outbox are moved in another order of steps."""

from collections.abc import Callable
from typing import Any

from hookline.failpoints import failpoint
from hookline.pipeline.outbox.accepting import Accepted, CheckedRows
from hookline.pipeline.outbox.moving import RowMover
from hookline.store.contract import RowPlace


def drop_before_accept() -> None:
    """O2: a row is deleted before its event is stored."""
    accept = RowMover._accept

    async def early(self: Any, batch: CheckedRows) -> Accepted:
        await self.source.table.drop_from_outbox([RowPlace(row.seq, row.id) for row in batch.rows])
        failpoint("outbox.dropped")
        return await accept(self, batch)

    RowMover._accept = early  # type: ignore[method-assign]


BUGS: dict[str, Callable[[], None]] = {"drop-before-accept": drop_before_accept}
