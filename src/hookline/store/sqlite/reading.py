"""How are the questions of people and caches answered?"""

import sqlite3
from collections.abc import Sequence
from typing import Any

from hookline.ids import event_of
from hookline.model import Attempt, Delivery, DeliveryId, Endpoint, EndpointId, Event, EventId, State
from hookline.store.contract import Catalogue, DeliveryFilter
from hookline.store.sqlite import sql
from hookline.store.sqlite.rows import (
    ABOVE_ALL_IDS,
    delivery_range,
    packed,
    read_attempt,
    read_delivery,
    read_endpoint,
    read_event,
)


def catalogue(connection: sqlite3.Connection) -> Catalogue:
    connection.execute("BEGIN")  # both reads in one snapshot
    try:
        (n,) = connection.execute(sql.CATALOGUE_NUMBER).fetchone()
        rows = connection.execute(sql.CATALOGUE_ENDPOINTS).fetchall()
    finally:
        connection.execute("COMMIT")
    return Catalogue(n, tuple(map(read_endpoint, rows)))


def endpoints_by_id(connection: sqlite3.Connection, ids: Sequence[EndpointId]) -> list[Endpoint]:
    return [read_endpoint(row) for row in connection.execute(sql.ENDPOINTS_BY_ID, {"ids": packed(ids)})]


def list_endpoints(
    connection: sqlite3.Connection,
    *,
    account: str | None,
    enabled: bool | None,
    after: EndpointId | None,
    limit: int,
) -> list[Endpoint]:
    statement = sql.LIST_ENDPOINTS if account is None else sql.LIST_ENDPOINTS_OF_ACCOUNT
    values = {"account": account, "enabled": enabled, "before": after or ABOVE_ALL_IDS, "limit": limit}
    return [read_endpoint(row) for row in connection.execute(statement, values)]


def event(connection: sqlite3.Connection, event: EventId) -> Event | None:
    row = connection.execute(sql.READ_EVENT, {"id": event}).fetchone()
    return None if row is None else read_event(row)


def delivery(connection: sqlite3.Connection, delivery: DeliveryId) -> Delivery | None:
    row = connection.execute(sql.READ_DELIVERY, {"id": delivery}).fetchone()
    return None if row is None else read_delivery(row)


def list_deliveries(
    connection: sqlite3.Connection, filter: DeliveryFilter, *, after: DeliveryId | None, limit: int
) -> list[Delivery]:
    statement, values = delivery_list(filter, after=after, limit=limit)
    return [read_delivery(row) for row in connection.execute(statement, values)]


def delivery_list(
    filter: DeliveryFilter, *, after: DeliveryId | None, limit: int
) -> tuple[str, dict[str, Any]]:
    """The statement for a list, from the start that reads the fewest rows."""
    values: dict[str, Any] = {"limit": limit}
    where = []
    start, order = sql.LIST_DELIVERIES, "d.id DESC"
    if filter.endpoint_id is None and filter.event_id is None:
        if filter.state is State.PENDING:
            start = sql.LIST_DELIVERIES_PENDING
        elif filter.state in (State.DEAD, State.CANCELLED):
            start = sql.LIST_DELIVERIES_ENDED
            where.append(sql.LIST_WHERE_ENDED)
        elif filter.account is not None:
            start, order = sql.LIST_DELIVERIES_OF_ACCOUNT, "e.id DESC, d.id DESC"
            values["above"] = ABOVE_ALL_IDS
            if after is not None:
                where.append("e.id <= :after_event")
                values["after_event"] = event_of(after)
    if after is not None:
        where.append("d.id < :after")
        values["after"] = after
    if filter.state is not None:
        where.append(sql.LIST_WHERE_STATE[filter.state])
    if filter.event_id is not None:
        where.append("d.id BETWEEN :first AND :last")
        values |= delivery_range(filter.event_id)
    for name, value, condition in (
        ("account", filter.account, "e.account = :account"),
        ("endpoint", filter.endpoint_id, "d.endpoint_id = :endpoint"),
        ("type", filter.event_type, "e.type = :type"),
        ("since", filter.since, "e.created_at >= :since"),
        ("until", filter.until, "e.created_at < :until"),
    ):
        if value is not None:
            where.append(condition)
            values[name] = value
    conditions = f"WHERE {' AND '.join(where)}" if where else ""
    return f"{start} {conditions} ORDER BY {order} LIMIT :limit", values


def attempts(connection: sqlite3.Connection, delivery: DeliveryId) -> list[Attempt]:
    return [read_attempt(row) for row in connection.execute(sql.READ_ATTEMPTS, {"delivery": delivery})]


def counts(connection: sqlite3.Connection) -> dict[State, int]:
    pending, dead, cancelled, total = connection.execute(sql.COUNTS).fetchone()
    return {
        State.PENDING: pending,
        State.DELIVERED: total - pending - dead - cancelled,
        State.DEAD: dead,
        State.CANCELLED: cancelled,
    }
