"""Changes, lists and counts deliveries on PostgreSQL.

A verb that changes deliveries writes one numbered change for each of their lanes, from which the owners learn of it.
The changes are written last: a writer of a change blocks all others.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any

from hookline.errors import NotFound, WrongState
from hookline.ids import show
from hookline.model import (
    Attempt,
    AuditEntry,
    Delivery,
    DeliveryId,
    EndpointId,
    EventId,
    Queue,
    State,
)
from hookline.store import delivery_row, spoiled_rows
from hookline.store.contract.deliveries import DeliveryFilter
from hookline.store.postgres import sql
from hookline.store.postgres.access.audit import note_audit
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction
from hookline.store.postgres.lists.conditions import STEPS
from hookline.store.postgres.lists.deliveries import (
    FEW_PENDING,
    dead_ahead,
    dead_count,
    delivery_list,
    events_ahead,
    look_ahead,
    pending_ahead,
    takes_steps,
)

# Calling an enum costs more than the rest of a row.
_QUEUES = {queue.value: queue for queue in Queue}


class PostgresDeliveries(PostgresSessions):
    """The contract's verbs about deliveries."""

    @in_transaction
    async def retry(
        self, connection: Connection, delivery: DeliveryId, *, now: float, audit: AuditEntry | None = None
    ) -> EndpointId:
        """See the contract."""
        return await _move(connection, sql.RETRY, delivery, verb="retried", now=now, audit=audit)

    @in_transaction
    async def cancel(
        self, connection: Connection, delivery: DeliveryId, *, now: float, audit: AuditEntry | None = None
    ) -> EndpointId:
        """See the contract."""
        return await _move(connection, sql.CANCEL, delivery, verb="cancelled", now=now, audit=audit)

    @in_transaction
    async def redrive(
        self, connection: Connection, delivery: DeliveryId, *, now: float, audit: AuditEntry | None = None
    ) -> EndpointId:
        """See the contract."""
        return await _move(connection, sql.REDRIVE, delivery, verb="redriven", now=now, audit=audit)

    @in_transaction
    async def discard(
        self, connection: Connection, delivery: DeliveryId, *, now: float, audit: AuditEntry | None = None
    ) -> EndpointId:
        """See the contract."""
        return await _move(connection, sql.DISCARD, delivery, verb="discarded", now=now, audit=audit)

    @in_transaction
    async def redrive_event(
        self,
        connection: Connection,
        event: EventId,
        *,
        endpoint: EndpointId | None,
        states: Sequence[State],
        now: float,
        audit: AuditEntry | None = None,
    ) -> list[tuple[DeliveryId, EndpointId]]:
        """See the contract."""
        moved = await connection.fetch(sql.REDRIVE_EVENT, event, now, states, endpoint)
        if moved:
            await note_audit(connection, audit)
        await tell_owners(connection, (row["endpoint_id"] for row in moved), now=now)
        return sorted((row["id"], row["endpoint_id"]) for row in moved)

    @in_transaction
    async def cancel_deleted(self, connection: Connection, *, limit: int, now: float) -> int:
        """See the contract."""
        cancelled = await connection.fetch(sql.CANCEL_DELETED, limit, now)
        await tell_owners(connection, (row["endpoint_id"] for row in cancelled), now=now)
        return len(cancelled)

    async def delivery(self, delivery: DeliveryId) -> Delivery | None:
        """See the contract."""
        found = await self._general.fetch(sql.READ_DELIVERY, delivery)
        return read_delivery(found[0]) if found else None

    async def deliveries_by_id(self, ids: Sequence[DeliveryId]) -> list[Delivery]:
        """See the contract."""
        found = await self._general.fetch(sql.DELIVERIES_BY_ID, list(ids))
        return spoiled_rows.read_all(map(read_delivery, found))

    async def list_deliveries(
        self, filter: DeliveryFilter, *, after: DeliveryId | None, limit: int
    ) -> list[Delivery]:
        """See the contract."""
        gathers = False
        if (pending := pending_ahead(filter)) is not None:
            [[few]] = await self._lists.fetch(pending[0], *pending[1])
            gathers = few < FEW_PENDING
        found: list[Delivery] = []
        for looked in chain(STEPS, repeat(STEPS[-1])):
            floor: DeliveryId | None = None
            if not gathers and takes_steps(filter):
                floor = await self._floor(filter, after=after, looked=looked)
            statement, values = delivery_list(
                filter, after=after, limit=limit - len(found), floor=floor, gathers=gathers
            )
            found += spoiled_rows.read_all(map(read_delivery, await self._lists.fetch(statement, *values)))
            if floor is None or len(found) == limit:
                break
            after = floor
        return found

    async def _floor(
        self, filter: DeliveryFilter, *, after: DeliveryId | None, looked: int
    ) -> DeliveryId | None:
        """The id below which a step that starts there does not read; None: it reaches the end."""
        floor: DeliveryId | None = None
        if (events := events_ahead(filter, after=after, limit=looked)) is not None:
            [(looked_at, lowest)] = await self._lists.fetch(events[0], *events[1])
            floor = lowest if looked_at == looked else None
        statement, values = look_ahead(filter, after=after, limit=looked, floor=floor)
        [(looked_at, lowest)] = await self._lists.fetch(statement, *values)
        return lowest if looked_at == looked else floor

    async def attempts(self, delivery: DeliveryId) -> list[Attempt]:
        """See the contract."""
        found = await self._general.fetch(sql.READ_ATTEMPTS, delivery)
        return spoiled_rows.read_all(map(read_attempt, found))

    async def count_dead(self, filter: DeliveryFilter) -> int:
        """See the contract."""
        return await self._count_dead(filter, before=None)

    async def _count_dead(self, filter: DeliveryFilter, *, before: float | None) -> int:
        total, after, limit = 0, None, STEPS[-1]
        while True:
            statement, values = dead_ahead(filter, after=after, limit=limit)
            [(looked_at, last)] = await self._lists.fetch(statement, *values)
            if last is None:
                return total
            statement, values = dead_count(filter, before=before, after=after, last=last)
            [[count]] = await self._lists.fetch(statement, *values)
            total, after = total + int(count), last
            if looked_at < limit:
                return total

    async def counts(self) -> dict[State, int]:
        """See the contract."""
        found = {row["state"]: row["n"] for row in await self._general.fetch(sql.COUNTS)}
        return {state: found.get(state.value, 0) for state in State}


async def tell_owners(connection: Connection, lanes: Iterable[EndpointId], *, now: float) -> None:
    """Write one change for each lane whose rows were changed."""
    if touched := sorted(set(lanes)):
        await connection.fetch(sql.WRITE_CHANGES, touched, "deliveries", now)


async def _move(
    connection: Connection,
    statement: str,
    delivery: DeliveryId,
    *,
    verb: str,
    now: float,
    audit: AuditEntry | None,
) -> EndpointId:
    """Move one delivery from state to state; `verb` names, in an error, what the state does not allow."""
    moved = await connection.fetch(statement, delivery, now)
    if not moved:
        state = await connection.fetchval(sql.READ_STATE, delivery)
        if state is None:
            raise NotFound("delivery", show("delivery", delivery))
        raise WrongState(verb, state)
    lane: EndpointId = moved[0]["endpoint_id"]
    await connection.fetch(sql.WAKE_WITHOUT_HEAD, lane, delivery, now)
    await note_audit(connection, audit)
    await connection.fetch(sql.WRITE_CHANGE, lane, "deliveries", now)
    return lane


def read_delivery(row: Any) -> Delivery | None:
    values = dict(row)
    values["queue"] = _QUEUES.get(row["queue"])
    return delivery_row.read_delivery(values)


def read_attempt(row: Any) -> Attempt | None:
    return delivery_row.read_attempt(dict(row))
