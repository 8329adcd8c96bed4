"""Carries out what operators change, on PostgreSQL.

Everything here writes numbered changes beside its rows, from which the lanes' owners learn of it. They are written
last: a writer of a change blocks all others.
"""

from collections.abc import Iterable, Sequence

from hookline import ids
from hookline.errors import NotFound, WrongState
from hookline.model import DeliveryId, Endpoint, EndpointId, EventId, State
from hookline.store.postgres import rows, sql
from hookline.store.postgres.driver.links import Connection


async def create_endpoint(connection: Connection, endpoint: Endpoint, *, now: float) -> None:
    if await connection.fetch(sql.CREATE_ENDPOINT, *rows.endpoint_columns(endpoint)):
        await connection.fetch(sql.CREATE_LANE, endpoint.id, *rows.lane_columns(endpoint))
        await connection.fetch(sql.WRITE_CHANGE, endpoint.id, "endpoint", now)


async def update_endpoint(connection: Connection, endpoint: Endpoint, *, was: float, now: float) -> bool:
    if not await connection.fetch(sql.UPDATE_ENDPOINT, *rows.endpoint_columns(endpoint), was):
        return False
    await connection.fetch(sql.PAUSE_LANE, endpoint.id, *rows.lane_columns(endpoint), now)
    await connection.fetch(sql.WRITE_CHANGE, endpoint.id, "endpoint", now)
    return True


async def delete_endpoint(connection: Connection, endpoint: EndpointId, *, now: float) -> bool:
    if not await connection.fetch(sql.DELETE_ENDPOINT, endpoint):
        return False
    await connection.fetch(sql.DELETE_LANE, endpoint)
    await connection.fetch(sql.WRITE_CHANGE, endpoint, "endpoint", now)
    return True


async def cancel_deleted(connection: Connection, *, limit: int, now: float) -> int:
    cancelled = await connection.fetch(sql.CANCEL_DELETED, limit, now)
    await tell_owners(connection, (row["endpoint_id"] for row in cancelled), now=now)
    return len(cancelled)


async def move(
    connection: Connection, statement: str, delivery: DeliveryId, *, verb: str, now: float
) -> EndpointId:
    """Move one delivery from state to state; `verb` names, in an error, what the state does not allow."""
    moved = await connection.fetch(statement, delivery, now)
    if not moved:
        state = await connection.fetchval(sql.READ_STATE, delivery)
        if state is None:
            raise NotFound("delivery", ids.show("delivery", delivery))
        raise WrongState(verb, state)
    lane: EndpointId = moved[0]["endpoint_id"]
    await connection.fetch(sql.WAKE_WITHOUT_HEAD, lane, delivery, now)
    await connection.fetch(sql.WRITE_CHANGE, lane, "deliveries", now)
    return lane


async def redrive_event(
    connection: Connection,
    event: EventId,
    *,
    endpoint: EndpointId | None,
    states: Sequence[State],
    now: float,
) -> list[tuple[DeliveryId, EndpointId]]:
    moved = await connection.fetch(sql.REDRIVE_EVENT, event, now, states, endpoint)
    await tell_owners(connection, (row["endpoint_id"] for row in moved), now=now)
    return sorted((row["id"], row["endpoint_id"]) for row in moved)


async def reset_circuit(connection: Connection, endpoint: EndpointId, *, now: float) -> bool:
    if not await connection.fetch(sql.RESET_LANE, endpoint, now):
        return False
    await connection.fetch(sql.WRITE_CHANGE, endpoint, "reset", now)
    return True


async def tell_owners(connection: Connection, lanes: Iterable[EndpointId], *, now: float) -> None:
    """Write one change for each lane whose rows were changed."""
    if touched := sorted(set(lanes)):
        await connection.fetch(sql.WRITE_CHANGES, touched, "deliveries", now)
