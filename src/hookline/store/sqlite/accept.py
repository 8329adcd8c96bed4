"""Writes a batch of publications to SQLite."""

import sqlite3
from collections.abc import Callable, Generator, Sequence
from functools import partial

from hookline.ids import delivery_of
from hookline.model import Event, EventId, Queue
from hookline.store.contract.accept import Acceptance, EventFanout, Prior
from hookline.store.sqlite import sql
from hookline.store.sqlite.driver.bulk import Row, returned_rows, write_rows
from hookline.store.sqlite.driver.connections import SqliteConnections
from hookline.store.sqlite.driver.disk_space import refuse_if_low
from hookline.store.sqlite.driver.values import NO_TEXT, NO_TIME, delivery_range, packed

_ROWS = 1_024  # written before others have their turn: about 12 ms
_COPIED_BYTES = 4096  # copying more takes longer than the search for an adapter


class SqliteAccept(SqliteConnections):
    """The contract's verbs that accept."""

    async def accept(self, batch: Sequence[EventFanout], *, catalogue: int, now: float) -> Acceptance:
        """Write events, deliveries and idempotency keys in one commit, `seq` in the order of the batch."""
        if self._presence is not None:
            self._presence.refuse_if_gone()
        work = partial(
            write_batch,
            batch=batch,
            catalogue=catalogue,
            now=now,
            due=self._time.due,
            folder=self._folder,
        )
        return await self._write(work)

    async def try_accept(self, *, now: float) -> None:
        """Commit nothing in the way of `accept`; raises what that would raise."""
        if self._presence is not None:
            self._presence.refuse_if_gone()
        await self._write(partial(_touch, folder=self._folder, now=now))


def _touch(connection: sqlite3.Connection, *, folder: str, now: float) -> None:
    refuse_if_low(connection, folder=folder)
    connection.execute(sql.TRY_ACCEPT, {"now": now})


def write_batch(
    connection: sqlite3.Connection,
    batch: Sequence[EventFanout],
    *,
    catalogue: int,
    now: float,
    due: Callable[[float], float],
    folder: str,
) -> Generator[None, None, Acceptance]:
    """Write the new ones of the batch, unless it was fanned out over endpoints that have changed since."""
    refuse_if_low(connection, folder=folder)
    priors = _priors(connection, batch)
    new = [publication for publication in batch if publication.event.id not in priors]
    last_event, last_seq = connection.execute(sql.ACCEPT_LAST).fetchone()
    (stale,) = connection.execute(sql.ACCEPT_IS_STALE, {"catalogue": catalogue}).fetchone()
    # A repeat of a batch that is all stored gives the first answer again, whatever changed in between.
    if stale and (not batch or len(_there(connection, new, last=last_event)) < len(new)):
        return Acceptance(stale=True)
    first_seq: int = last_seq + 1
    there: set[EventId] = set()
    written = write_rows(
        connection, sql.ACCEPT_EVENTS, [_event_row(publication.event) for publication in new]
    )
    if written < len(new):
        there = _there(connection, new, last=last_event)
        first_seq = min(first_seq, *(_first_seq(connection, event) or first_seq for event in there))
        new = [publication for publication in new if publication.event.id not in there]
    if hops := [{"id": each.event.id, "hops": each.event.hops} for each in new if each.event.hops]:
        connection.executemany(sql.ACCEPT_HOPS, hops)
    if traces := [{"id": each.event.id, "trace": each.event.trace} for each in new if each.event.trace]:
        connection.executemany(sql.ACCEPT_TRACES, traces)
    rows = _delivery_rows(new, now=now, due=due)
    for start in range(0, len(rows), _ROWS):
        if start:
            yield
        write_rows(connection, sql.ACCEPT_DELIVERIES, rows[start : start + _ROWS])
    if keys := _key_rows(new):
        write_rows(connection, sql.ACCEPT_KEYS, keys)
    return Acceptance(stale=False, first_seq=first_seq, priors=priors, repeats=frozenset(there))


def _delivery_rows(batch: Sequence[EventFanout], *, now: float, due: Callable[[float], float]) -> list[Row]:
    rows: list[Row] = []
    ready, timed = Queue.READY.value, Queue.TIMED.value
    for publication in batch:
        event = publication.event
        due_at, queue = now, ready
        if event.deliver_at is not None and (at := due(event.deliver_at)) > now:
            due_at, queue = at, timed
        if len(publication.endpoints) == 1:  # the delivery with ordinal 0 has the event's own id
            rows.append((bytearray(event.id), bytearray(publication.endpoints[0]), due_at, queue))
        else:
            rows += [
                (bytearray(delivery_of(event.id, ordinal)), bytearray(endpoint), due_at, queue)
                for ordinal, endpoint in enumerate(publication.endpoints)
            ]
    return rows


def _key_rows(batch: Sequence[EventFanout]) -> list[Row]:
    return [
        (
            publication.event.account,
            publication.event.idempotency_key,
            publication.event.id,
            publication.digest,
        )
        for publication in batch
        if publication.event.idempotency_key is not None
    ]


def _priors(connection: sqlite3.Connection, batch: Sequence[EventFanout]) -> dict[EventId, Prior]:
    """The events that the batch's keys already name, except the batch's own (a repeat)."""
    keyed: dict[tuple[str, str], EventId] = {
        (publication.event.account, publication.event.idempotency_key): publication.event.id
        for publication in batch
        if publication.event.idempotency_key is not None
    }
    priors = {}
    for account, key, event_id, type, created_at, digest in returned_rows(
        connection, sql.READ_PRIORS, list(keyed)
    ):
        ours = keyed[account, key]
        if event_id != ours:
            endpoints = connection.execute(sql.READ_PRIOR_ENDPOINTS, delivery_range(event_id)).fetchall()
            priors[ours] = Prior(event_id, type, created_at, digest, tuple(row[0] for row in endpoints))
    return priors


def _there(connection: sqlite3.Connection, batch: Sequence[EventFanout], *, last: int) -> set[EventId]:
    """The ones of the events that were stored before, when the newest row was `last`."""
    ids = packed(publication.event.id for publication in batch)
    return {row[0] for row in connection.execute(sql.ACCEPT_WAS, {"ids": ids, "last": last})}


def _first_seq(connection: sqlite3.Connection, event: EventId) -> int | None:
    (seq,) = connection.execute(sql.ACCEPT_FIRST_SEQ, delivery_range(event)).fetchone()
    return seq  # type: ignore[no-any-return]


def _event_row(event: Event) -> Row:
    return (
        bytearray(event.id),
        event.account,
        event.type,
        event.payload if len(event.payload) > _COPIED_BYTES else bytearray(event.payload),
        NO_TEXT if event.idempotency_key is None else event.idempotency_key,
        NO_TIME if event.deliver_at is None else event.deliver_at,
        event.created_at,
    )
