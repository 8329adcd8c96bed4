"""Changes, lists and counts deliveries on SQLite.

A verb that changes deliveries writes one numbered change for each of their lanes, from which the owners learn of it.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from functools import partial

from hookline.errors import NotFound, WrongState
from hookline.ids import show
from hookline.model import (
    Attempt,
    AuditEntry,
    Delivery,
    DeliveryId,
    EndpointId,
    EventId,
    State,
)
from hookline.store import delivery_row, spoiled_rows
from hookline.store.contract.deliveries import DeliveryFilter
from hookline.store.sqlite import sql
from hookline.store.sqlite.access.audit import note_audit
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_writer
from hookline.store.sqlite.driver.values import delivery_range, packed
from hookline.store.sqlite.lists.conditions import STEP_EVENTS, STEP_ROWS
from hookline.store.sqlite.lists.deliveries import (
    dead_ahead,
    dead_count,
    delivery_list,
    events_ahead,
    is_by_account,
    look_ahead,
    pending_ahead,
)
from hookline.store.sqlite.workers import write_change


class SqliteDeliveries(SqliteConnections):
    """The contract's verbs about deliveries."""

    @on_writer
    def retry(
        self,
        connection: sqlite3.Connection,
        delivery: DeliveryId,
        *,
        now: float,
        audit: AuditEntry | None = None,
    ) -> EndpointId:
        """Make a pending delivery due now; its attempts keep counting."""
        return _move(connection, sql.RETRY, delivery, verb="retried", now=now, audit=audit)

    @on_writer
    def cancel(
        self,
        connection: sqlite3.Connection,
        delivery: DeliveryId,
        *,
        now: float,
        audit: AuditEntry | None = None,
    ) -> EndpointId:
        """pending -> cancelled."""
        return _move(connection, sql.CANCEL, delivery, verb="cancelled", now=now, audit=audit)

    @on_writer
    def redrive(
        self,
        connection: sqlite3.Connection,
        delivery: DeliveryId,
        *,
        now: float,
        audit: AuditEntry | None = None,
    ) -> EndpointId:
        """dead, delivered or cancelled -> pending."""
        return _move(connection, sql.REDRIVE, delivery, verb="redriven", now=now, audit=audit)

    @on_writer
    def discard(
        self,
        connection: sqlite3.Connection,
        delivery: DeliveryId,
        *,
        now: float,
        audit: AuditEntry | None = None,
    ) -> EndpointId:
        """dead -> cancelled."""
        return _move(connection, sql.DISCARD, delivery, verb="discarded", now=now, audit=audit)

    @on_writer
    def redrive_event(
        self,
        connection: sqlite3.Connection,
        event: EventId,
        *,
        endpoint: EndpointId | None,
        states: Sequence[State],
        now: float,
        audit: AuditEntry | None = None,
    ) -> list[tuple[DeliveryId, EndpointId]]:
        """Replay the deliveries of an event that are in one of the states (never pending ones)."""
        wanted = {
            name: state.value if state in states else None for name, state in zip("abcd", State, strict=True)
        }
        values = wanted | delivery_range(event) | {"endpoint": endpoint, "now": now}
        moved = connection.execute(sql.REDRIVE_EVENT, values).fetchall()
        if moved:
            note_audit(connection, audit)
        tell_owners(connection, (row[1] for row in moved), now=now)
        return sorted(moved)

    @on_writer
    def cancel_deleted(self, connection: sqlite3.Connection, *, limit: int, now: float) -> int:
        """Cancel up to `limit` pending deliveries of deleted endpoints; how many there were."""
        rows = connection.execute(sql.CANCEL_DELETED, {"limit": limit, "now": now}).fetchall()
        tell_owners(connection, (row[0] for row in rows), now=now)
        return len(rows)

    @on_lister
    def delivery(self, connection: sqlite3.Connection, delivery: DeliveryId) -> Delivery | None:
        """One delivery."""
        row = connection.execute(sql.READ_DELIVERY, {"id": delivery}).fetchone()
        return None if row is None else read_delivery(row)

    @on_lister
    def deliveries_by_id(self, connection: sqlite3.Connection, ids: Sequence[DeliveryId]) -> list[Delivery]:
        """The ones of these that exist, by id."""
        rows = connection.execute(sql.DELIVERIES_BY_ID, {"ids": packed(ids)})
        return spoiled_rows.read_all(map(read_delivery, rows))

    async def list_deliveries(
        self, filter: DeliveryFilter, *, after: DeliveryId | None, limit: int
    ) -> list[Delivery]:
        """Newest first, from below the id `after`."""
        return await self._list(partial(_list_step, filter=filter), after=after, limit=limit)

    @on_lister
    def attempts(self, connection: sqlite3.Connection, delivery: DeliveryId) -> list[Attempt]:
        """All attempts of a delivery, oldest first, late ones included."""
        rows = connection.execute(sql.READ_ATTEMPTS, {"delivery": delivery})
        return spoiled_rows.read_all(map(read_attempt, rows))

    async def count_dead(self, filter: DeliveryFilter) -> int:
        """How many dead letters match."""
        return await self._count_dead(filter, before=None)

    async def _count_dead(self, filter: DeliveryFilter, *, before: float | None) -> int:
        total, after = 0, None
        while True:
            step = partial(_count_step, filter=filter, before=before, after=after)
            count, after = await self._read(step)
            total += count
            if after is None:
                return total

    @on_lister
    def counts(self, connection: sqlite3.Connection) -> dict[State, int]:
        """How many deliveries are in each state."""
        return count_states(connection)


def tell_owners(connection: sqlite3.Connection, lanes: Iterable[EndpointId], *, now: float) -> None:
    """Write one change for each lane whose rows were changed."""
    for endpoint in sorted(set(lanes)):
        write_change(connection, endpoint, kind="deliveries", now=now)


def _move(
    connection: sqlite3.Connection,
    statement: str,
    delivery: DeliveryId,
    *,
    verb: str,
    now: float,
    audit: AuditEntry | None,
) -> EndpointId:
    row = connection.execute(sql.READ_STATE, {"id": delivery}).fetchone()
    if row is None:
        raise NotFound("delivery", show("delivery", delivery))
    endpoint, state = row
    if connection.execute(statement, {"id": delivery, "now": now}).rowcount == 0:
        raise WrongState(verb, state)
    note_audit(connection, audit)
    connection.execute(sql.WAKE_WITHOUT_HEAD, {"endpoint": endpoint, "head": delivery, "now": now})
    write_change(connection, endpoint, kind="deliveries", now=now)
    return EndpointId(endpoint)


def _list_step(
    connection: sqlite3.Connection, filter: DeliveryFilter, *, after: DeliveryId | None, limit: int
) -> tuple[list[Delivery], DeliveryId | None]:
    """What one step finds, and the id to continue from; None: nothing is left."""
    pending = pending_ahead(filter)
    gathers = pending is not None and connection.execute(*pending).fetchone()[0] < STEP_ROWS
    floor = None if gathers else _floor(connection, filter, after=after)
    statement = delivery_list(filter, after=after, limit=limit, floor=floor, gathers=gathers)
    return spoiled_rows.read_all(map(read_delivery, connection.execute(*statement))), floor


def _floor(
    connection: sqlite3.Connection, filter: DeliveryFilter, *, after: DeliveryId | None
) -> DeliveryId | None:
    """The id below which a step that starts there does not read; None: it reaches the end."""
    floor: DeliveryId | None = None
    if is_by_account(filter):
        looked_at, lowest = connection.execute(*events_ahead(filter, after=after)).fetchone()
        floor = lowest if looked_at == STEP_EVENTS else None
    looked_at, lowest = connection.execute(*look_ahead(filter, after=after, floor=floor)).fetchone()
    return lowest if looked_at == STEP_ROWS else floor


def _count_step(
    connection: sqlite3.Connection,
    filter: DeliveryFilter,
    *,
    before: float | None,
    after: DeliveryId | None,
) -> tuple[int, DeliveryId | None]:
    """How many match among the next ones, and the id to continue from; None: nothing is left."""
    ahead = dead_ahead(filter, after=after, limit=STEP_ROWS)
    looked_at, last = connection.execute(*ahead).fetchone()
    if last is None:
        return 0, None
    (count,) = connection.execute(*dead_count(filter, before=before, after=after, last=last)).fetchone()
    return count, last if looked_at == STEP_ROWS else None


def count_states(connection: sqlite3.Connection) -> dict[State, int]:
    """How many deliveries are in each state."""
    pending, dead, cancelled, total = connection.execute(sql.COUNTS).fetchone()
    return {
        State.PENDING: pending,
        State.DELIVERED: total - pending - dead - cancelled,
        State.DEAD: dead,
        State.CANCELLED: cancelled,
    }


def read_delivery(row: Row) -> Delivery | None:
    return delivery_row.read_delivery(dict(zip(_DELIVERY, row, strict=True)))


def read_attempt(row: Row) -> Attempt | None:
    return delivery_row.read_attempt(dict(zip(_ATTEMPT, row, strict=True)))


_DELIVERY = (
    "id",
    "event_id",
    "endpoint_id",
    "account",
    "event_type",
    "state",
    "queue",
    "seq",
    "attempts",
    "replays",
    "due_at",
    "created_at",
    "done_at",
    "reason",
    "last_status",
    "last_error",
    "last_error_detail",
    "last_duration",
    "death_reason",
    "death_at",
    "death_attempts",
)
_ATTEMPT = (
    "id",
    "delivery_id",
    "number",
    "replays",
    "at",
    "outcome",
    "duration",
    "status",
    "error",
    "error_detail",
    "dns",
    "connect",
    "tls",
    "first_byte",
    "request_url",
    "request_headers",
    "response_headers",
    "response_body",
    "response_truncated",
    "final_url",
    "late",
)
