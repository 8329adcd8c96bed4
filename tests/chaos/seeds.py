"""Fills a database with half a million events within seconds.

It writes directly into the tables, in the shape that publishing leaves; the lanes are woken with the last row.
"""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from random import Random
from typing import Any

import psycopg

from hookline import ids

EVENTS = ("id", "created_at", "account", "type", "payload")
DELIVERIES = ("id", "endpoint_id", "due_at", "queue", "state", "done_at", "attempts", "reason")


def write(
    url: str,
    lanes: Sequence[bytes],
    count: int,
    *,
    rng: Random,
    event_type: str = "seed",
    account: str = "default",
    payload: bytes = b"{}",
    state: str = "pending",
    age_s: float = 0.0,
) -> list[str]:
    """Write events of this type, each for one of the lanes in turn; returns their ids, in order."""
    at = time.time() - age_s
    made = list(_ids(count, at=at, rng=rng))
    done_at = None if state == "pending" else at
    attempts, reason = (3, "exhausted") if state == "dead" else (int(state == "delivered"), None)
    events = ((id, at, account, event_type, payload) for id in made)
    deliveries = (
        (
            id,
            lanes[n % len(lanes)],
            at,
            "ready" if state == "pending" else "timed",
            state,
            done_at,
            attempts,
            reason,
        )
        for n, id in enumerate(made)
    )
    wakes = lanes if state == "pending" else ()
    (_write_sqlite if url.startswith("sqlite:") else _write_postgres)(url, events, deliveries, wakes)
    return [ids.show("event", id) for id in made]


def _ids(count: int, *, at: float, rng: Random) -> Iterator[bytes]:
    # In the shape of ids.py: time, count, chance, and 20 zero bits for the deliveries.
    moment, shape = int(at * 1000), (0x7 << 76) | (0b10 << 62)
    for n in range(count):
        number = (moment + (n >> 12)) << 80 | (n & 0xFFF) << 64 | shape | (rng.getrandbits(42) << 20)
        yield number.to_bytes(16)


def _write_postgres(
    url: str, events: Iterator[Any], deliveries: Iterator[Any], wakes: Sequence[bytes]
) -> None:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SET search_path TO hookline")
        for table, columns, rows in (("events", EVENTS, events), ("deliveries", DELIVERIES, deliveries)):
            cursor.execute(
                f"CREATE TEMP TABLE fresh_{table} ({', '.join(f'{each} text' for each in columns)})"
            )
            with cursor.copy(f"COPY fresh_{table} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row([each.hex() if isinstance(each, bytes) else each for each in row])
        cursor.execute(
            "INSERT INTO events (id, created_at, account, type, payload)"
            " SELECT id::uuid, to_timestamp(created_at::float8), account, type, decode(payload, 'hex')"
            " FROM fresh_events"
        )
        cursor.execute(
            "INSERT INTO deliveries (id, endpoint_id, due_at, queue, state, done_at, attempts, reason)"
            " SELECT id::uuid, endpoint_id::uuid, to_timestamp(due_at::float8), queue, state,"
            " to_timestamp(done_at::float8), attempts::int, reason FROM fresh_deliveries ORDER BY id"
        )
        cursor.execute(
            "UPDATE lanes SET wake_at = least(wake_at, now()) WHERE endpoint_id = ANY(%s::uuid[])",
            ([each.hex() for each in wakes],),
        )


def _write_sqlite(url: str, events: Iterator[Any], deliveries: Iterator[Any], wakes: Sequence[bytes]) -> None:
    path = url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for table, columns, rows in (("events", EVENTS, events), ("deliveries", DELIVERIES, deliveries)):
            holes = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({holes})", rows)
        connection.executemany(
            "UPDATE lanes SET wake_at = min(wake_at, ?) WHERE endpoint_id = ?",
            [(time.time(), each) for each in wakes],
        )
        connection.execute("COMMIT")
