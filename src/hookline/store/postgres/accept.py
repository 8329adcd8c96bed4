"""Writes a batch of publications to PostgreSQL."""

from collections.abc import Sequence
from typing import Any

from hookline.errors import StoreUnavailable
from hookline.ids import delivery_of
from hookline.model import EventId
from hookline.store.contract.accept import Acceptance, EventFanout, Prior
from hookline.store.postgres import sql
from hookline.store.postgres.driver.sessions import PostgresSessions
from hookline.store.postgres.driver.values import Columns, column, unusual


class PostgresAccept(PostgresSessions):
    """The contract's verbs that accept."""

    async def accept(self, batch: Sequence[EventFanout], *, catalogue: int, now: float) -> Acceptance:
        """See the contract."""
        columns = publication_columns(batch, now=now)
        [found] = await self._accept.fetch(sql.ACCEPT, catalogue, *columns, now)
        if found["stale"]:
            # A repeat of a batch that is all stored gives the first answer again, whatever changed in between.
            return await self._explain(batch, None) or Acceptance(stale=True)
        if not found["absent"]:
            return Acceptance(stale=False, first_seq=found["first_seq"] or 0)
        explained = await self._explain([batch[n - 1] for n in found["absent"]], found["first_seq"])
        if explained is None:
            raise StoreUnavailable("An event was deleted while its repeat was accepted: try again.")
        return explained

    async def try_accept(self, *, now: float) -> None:
        """See the contract."""
        await self._accept.run(lambda connection: connection.execute(sql.TRY_ACCEPT))

    async def _explain(self, absent: Sequence[EventFanout], first_seq: int | None) -> Acceptance | None:
        """Why these were not written: they are stored under their own id or their key; None if one is not."""
        events = [publication.event for publication in absent]
        found = await self._accept.fetch(
            sql.READ_PRIORS,
            [event.id for event in events],
            [event.account for event in events],
            [event.idempotency_key for event in events],
        )
        if len(found) < len(absent):
            return None
        seqs = [row["first_seq"] for row in found if row["event_id"] == row["id"]] + [first_seq]
        return Acceptance(
            stale=False,
            first_seq=min((seq for seq in seqs if seq is not None), default=0),
            priors={row["id"]: _read_prior(row) for row in found if row["event_id"] != row["id"]},
            repeats=frozenset(row["id"] for row in found if row["event_id"] == row["id"]),
        )


def publication_columns(batch: Sequence[EventFanout], *, now: float) -> Columns:
    """The arrays of ACCEPT: events, their deliveries with the (1-based) position of their event, the events' hops and traces.

    Mostly each event has one delivery: no positions are bound then.
    """
    events = [publication.event for publication in batch]
    ids: list[EventId] = [event.id for event in events]
    endpoints = [endpoint for publication in batch for endpoint in publication.endpoints]
    deliveries: Sequence[bytes] = ids  # the only delivery of an event has the event's id
    places = None
    if not all(len(publication.endpoints) == 1 for publication in batch):
        deliveries = [
            delivery_of(publication.event.id, ordinal)
            for publication in batch
            for ordinal in range(len(publication.endpoints))
        ]
        places = [place for place, publication in enumerate(batch, 1) for _ in publication.endpoints]
    return [
        ids,
        [event.account for event in events],
        [event.type for event in events],
        column([event.idempotency_key for event in events]),
        [event.payload for event in events],
        unusual([event.created_at for event in events], now),
        column([event.deliver_at for event in events]),
        column([each.digest if each.event.idempotency_key is not None else None for each in batch]),
        deliveries,
        endpoints,
        places,
        unusual([event.hops for event in events], 0),
        column([event.trace for event in events]),
    ]


def _read_prior(row: Any) -> Prior:
    return Prior(row["event_id"], row["type"], row["created_at"], row["digest"], tuple(row["endpoints"]))
