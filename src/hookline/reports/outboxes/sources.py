"""Answers how the outboxes are.

What is told was noted by the process that reads them, at most a minute ago: this asks no outbox.
"""

from typing import Annotated

import msgspec

from hookline import rfc3339
from hookline.clock import Clock
from hookline.reports.views import Moment
from hookline.rules.outbox_state import OutboxState, is_stale, state_of, why_unread
from hookline.rules.status_sentence import age
from hookline.store.contract import Store
from hookline.store.contract.outbox import SourceRow


class OutboxReport(msgspec.Struct, kw_only=True):
    """An outbox: a database with a table of events to publish."""

    name: Annotated[str, msgspec.Meta(description="`own` is hookline's own database")]
    state: Annotated[str, msgspec.Meta(extra_json_schema={"enum": [str(each) for each in OutboxState]})]
    detail: Annotated[str | None, msgspec.Meta(description="why it is not read; null: it is, or is new")]
    waiting: Annotated[
        int | None, msgspec.Meta(description="rows, when it was last looked at; null: it cannot be read")
    ]
    oldest_age_s: Annotated[float | None, msgspec.Meta(description="of the oldest row; null: none waits")]
    looked_at: Annotated[Moment | None, msgspec.Meta(description="when it was last read; null: never")]
    clear_at: Annotated[
        Moment | None,
        msgspec.Meta(
            description="what was accepted before has left the outbox; later events are not pruned; null: nothing yet"
        ),
    ]


class OutboxesReport(msgspec.Struct, kw_only=True):
    """All outboxes."""

    data: list[OutboxReport]
    refused: Annotated[int, msgspec.Meta(description="rows that wait for a decision, of every outbox")]


class OutboxReports:
    """How the outboxes are."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def report(self) -> OutboxesReport:
        """All of them."""
        now = self._clock.now()
        return OutboxesReport(
            data=[self._shown(each, now) for each in await self._store.outbox_sources()],
            refused=sum(each.rows for each in await self._store.count_refused()),
        )

    def _shown(self, source: SourceRow, now: float) -> OutboxReport:
        detail, looked_at = source.trouble, source.looked_at
        if detail is None and looked_at is not None and is_stale(looked_at, now=now):
            detail = why_unread(source.name, silence=age(now - looked_at))
        return OutboxReport(
            name=source.name,
            state=state_of(source.trouble, looked_at=looked_at, now=now).value,
            detail=detail,
            waiting=source.waiting if source.trouble is None else None,
            oldest_age_s=None if source.oldest_at is None else round(max(0.0, now - source.oldest_at), 3),
            looked_at=self._moment(source.looked_at),
            clear_at=self._moment(source.clear_at),
        )

    def _moment(self, at: float | None) -> str | None:
        return None if at is None else rfc3339.show(self._clock.shown(at))
