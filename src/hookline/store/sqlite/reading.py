"""Reads what people and caches ask of an SQLite file."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from hookline.model import Attempt, Delivery, DeliveryId, Endpoint, EndpointId, Event, EventId, JobId, State
from hookline.store.contract import DeliveryFilter, EndpointSnapshot, Job, JobKind, LaneRow
from hookline.store.sqlite import sql
from hookline.store.sqlite.lists import (
    STEP_EVENTS,
    STEP_ROWS,
    dead_ahead,
    dead_count,
    delivery_list,
    events_ahead,
    is_by_account,
    look_ahead,
    pending_ahead,
)
from hookline.store.sqlite.rows import (
    ABOVE_ALL_IDS,
    packed,
    read_attempt,
    read_delivery,
    read_endpoint,
    read_event,
    read_job,
    read_lane,
)


def catalogue(connection: sqlite3.Connection) -> EndpointSnapshot:
    connection.execute("BEGIN")  # both reads in one snapshot
    try:
        (n,) = connection.execute(sql.CATALOGUE_NUMBER).fetchone()
        endpoints = _endpoints(connection, sql.CATALOGUE_ENDPOINTS, {})
    finally:
        connection.execute("COMMIT")
    return EndpointSnapshot(n, tuple(endpoints))


def endpoints_by_id(connection: sqlite3.Connection, ids: Sequence[EndpointId]) -> list[Endpoint]:
    return _endpoints(connection, sql.ENDPOINTS_BY_ID, {"ids": packed(ids)})


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
    return _endpoints(connection, statement, values)


def _endpoints(connection: sqlite3.Connection, statement: str, values: dict[str, Any]) -> list[Endpoint]:
    try:
        rows = connection.execute(statement, values).fetchall()
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" not in str(error):
            raise
        # One text that is not UTF-8 keeps every row from being read: read again, with replacements in that text.
        connection.text_factory = _readable
        try:
            rows = connection.execute(statement, values).fetchall()
        finally:
            connection.text_factory = str
    return [endpoint for row in rows if (endpoint := read_endpoint(row)) is not None]


def _readable(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def event(connection: sqlite3.Connection, event: EventId) -> Event | None:
    row = connection.execute(sql.READ_EVENT, {"id": event}).fetchone()
    return None if row is None else read_event(row)


def delivery(connection: sqlite3.Connection, delivery: DeliveryId) -> Delivery | None:
    row = connection.execute(sql.READ_DELIVERY, {"id": delivery}).fetchone()
    return None if row is None else read_delivery(row)


def list_deliveries(
    connection: sqlite3.Connection, filter: DeliveryFilter, *, after: DeliveryId | None, limit: int
) -> tuple[list[Delivery], DeliveryId | None]:
    """What one step finds, and the id to continue from; None: nothing is left."""
    pending = pending_ahead(filter)
    gathers = pending is not None and connection.execute(*pending).fetchone()[0] < STEP_ROWS
    floor = None if gathers else _floor(connection, filter, after=after)
    statement = delivery_list(filter, after=after, limit=limit, floor=floor, gathers=gathers)
    return [read_delivery(row) for row in connection.execute(*statement)], floor


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


def count_dead(
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


def lanes(connection: sqlite3.Connection, ids: Sequence[EndpointId]) -> list[LaneRow]:
    return [read_lane(row) for row in connection.execute(sql.READ_LANES, {"ids": packed(ids)})]


def job(connection: sqlite3.Connection, job: JobId) -> Job | None:
    row = connection.execute(sql.READ_JOB, {"id": job}).fetchone()
    return None if row is None else read_job(row)


def list_jobs(
    connection: sqlite3.Connection,
    kind: JobKind,
    *,
    account: str | None,
    after: JobId | None,
    limit: int,
) -> list[Job]:
    statement = sql.LIST_JOBS if account is None else sql.LIST_JOBS_OF_ACCOUNT
    values = {"kind": kind.value, "account": account, "before": after or ABOVE_ALL_IDS, "limit": limit}
    return [read_job(row) for row in connection.execute(statement, values)]


def running_jobs(connection: sqlite3.Connection) -> list[JobId]:
    return [row[0] for row in connection.execute(sql.RUNNING_JOBS)]


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
