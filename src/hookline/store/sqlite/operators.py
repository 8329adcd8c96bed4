"""Carries out what operators change, on SQLite.

Everything here writes one numbered change beside its rows, from which the lanes' owners learn of it.
"""

import sqlite3
from collections.abc import Iterable, Sequence

from hookline.errors import NotFound, WrongState
from hookline.ids import show
from hookline.model import DeliveryId, Endpoint, EndpointId, EventId, State
from hookline.store.sqlite import sql
from hookline.store.sqlite.rows import delivery_range, endpoint_values, lane_values


def create_endpoint(connection: sqlite3.Connection, endpoint: Endpoint, *, now: float) -> None:
    values = endpoint_values(endpoint)
    if connection.execute(sql.CREATE_ENDPOINT, values).rowcount == 0:
        return  # a repeat
    connection.execute(sql.CREATE_LANE, lane_values(endpoint))
    write_change(connection, endpoint.id, kind="endpoint", now=now)


def update_endpoint(connection: sqlite3.Connection, endpoint: Endpoint, *, was: float, now: float) -> bool:
    if connection.execute(sql.UPDATE_ENDPOINT, endpoint_values(endpoint) | {"was": was}).rowcount == 0:
        return False
    connection.execute(sql.PAUSE_LANE, lane_values(endpoint) | {"now": now})
    write_change(connection, endpoint.id, kind="endpoint", now=now)
    return True


def delete_endpoint(connection: sqlite3.Connection, endpoint: EndpointId, *, now: float) -> bool:
    if connection.execute(sql.DELETE_ENDPOINT, {"id": endpoint}).rowcount == 0:
        return False
    connection.execute(sql.DELETE_LANE, {"id": endpoint})
    write_change(connection, endpoint, kind="endpoint", now=now)
    return True


def cancel_deleted(connection: sqlite3.Connection, *, limit: int, now: float) -> int:
    rows = connection.execute(sql.CANCEL_DELETED, {"limit": limit, "now": now}).fetchall()
    tell_owners(connection, (row[0] for row in rows), now=now)
    return len(rows)


def retry(connection: sqlite3.Connection, delivery: DeliveryId, *, now: float) -> EndpointId:
    return _move(connection, sql.RETRY, delivery, verb="retried", now=now)


def cancel(connection: sqlite3.Connection, delivery: DeliveryId, *, now: float) -> EndpointId:
    return _move(connection, sql.CANCEL, delivery, verb="cancelled", now=now)


def redrive(connection: sqlite3.Connection, delivery: DeliveryId, *, now: float) -> EndpointId:
    return _move(connection, sql.REDRIVE, delivery, verb="redriven", now=now)


def discard(connection: sqlite3.Connection, delivery: DeliveryId, *, now: float) -> EndpointId:
    return _move(connection, sql.DISCARD, delivery, verb="discarded", now=now)


def redrive_event(
    connection: sqlite3.Connection,
    event: EventId,
    *,
    endpoint: EndpointId | None,
    states: Sequence[State],
    now: float,
) -> list[tuple[DeliveryId, EndpointId]]:
    wanted = {
        name: state.value if state in states else None for name, state in zip("abcd", State, strict=True)
    }
    values = wanted | delivery_range(event) | {"endpoint": endpoint, "now": now}
    moved = connection.execute(sql.REDRIVE_EVENT, values).fetchall()
    tell_owners(connection, (row[1] for row in moved), now=now)
    return sorted(moved)


def reset_circuit(connection: sqlite3.Connection, endpoint: EndpointId, *, now: float) -> bool:
    if connection.execute(sql.RESET_LANE, {"id": endpoint, "now": now}).rowcount == 0:
        return False
    write_change(connection, endpoint, kind="reset", now=now)
    return True


def tell_owners(connection: sqlite3.Connection, lanes: Iterable[EndpointId], *, now: float) -> None:
    """Write one change for each lane whose rows were changed."""
    for endpoint in sorted(set(lanes)):
        write_change(connection, endpoint, kind="deliveries", now=now)


def _move(
    connection: sqlite3.Connection, statement: str, delivery: DeliveryId, *, verb: str, now: float
) -> EndpointId:
    row = connection.execute(sql.READ_STATE, {"id": delivery}).fetchone()
    if row is None:
        raise NotFound("delivery", show("delivery", delivery))
    endpoint, state = row
    if connection.execute(statement, {"id": delivery, "now": now}).rowcount == 0:
        raise WrongState(verb, state)
    connection.execute(sql.WAKE_WITHOUT_HEAD, {"endpoint": endpoint, "head": delivery, "now": now})
    write_change(connection, endpoint, kind="deliveries", now=now)
    return EndpointId(endpoint)


def write_change(connection: sqlite3.Connection, endpoint: EndpointId, *, kind: str, now: float) -> None:
    """Write one numbered change, for the owners and for every process's catalogue."""
    (n,) = connection.execute(sql.COUNT_CHANGE, {"kind": kind}).fetchone()
    connection.execute(sql.WRITE_CHANGE, {"n": n, "endpoint": endpoint, "kind": kind, "now": now})
