"""The disk space of pruned rows is used again."""

import sqlite3
from contextlib import closing
from random import Random

import psycopg
import pytest

from factories import NOW, a_publication, a_settlement
from hookline.ids import Ids, delivery_of
from hookline.store.sqlite.store import SqliteStore
from hookline.testing.clock import ManualClock
from scenes import accepted, an_owned_lane

pytestmark = pytest.mark.anyio

ROUNDS, EVENTS = 6, 600
TABLES = ("events", "deliveries", "attempts", "idempotency")


def bytes_taken(store):
    """The size of the file, or of the tables with their indexes, after autovacuum would have run."""
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store._path)) as connection:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            return pages * 4_096
    with psycopg.connect(store._url, autocommit=True) as session:
        for table in TABLES:
            session.execute(f"VACUUM hookline.{table}")
        sizes = [
            session.execute(f"SELECT pg_total_relation_size('hookline.{table}')").fetchone()[0]
            for table in TABLES
        ]
        return sum(sizes)


async def test_after_many_rounds_of_filling_and_pruning_no_more_room_is_taken(store):
    clock = ManualClock(NOW)
    ids = Ids(clock, Random(0))
    worker, lane = await an_owned_lane(store)
    sizes = []
    for _ in range(ROUNDS):
        clock.advance(86_400.0)
        now = clock.now()
        publications = [
            a_publication(
                lane.endpoint_id,
                id=ids.event(),
                created_at=now,
                payload=b'"' + b"x" * 1_000 + b'"',
                idempotency_key=f"key-{ids.event().hex()}",
            )
            for _ in range(EVENTS)
        ]
        await accepted(store, *publications, now=now)
        settlements = [
            a_settlement(delivery_of(each.event.id, 0), lane.endpoint_id, epoch=lane.epoch)
            for each in publications
        ]
        await store.settle(worker, settlements, now=now)
        pruned = await store.prune(done_before=now + 1, dead_before=now + 1, limit=2 * EVENTS)
        assert pruned.deliveries == EVENTS
        sizes.append(bytes_taken(store))
    assert sizes[-1] <= 1.1 * sizes[1], sizes
    assert (await store.conservation()).pruned == ROUNDS * EVENTS
