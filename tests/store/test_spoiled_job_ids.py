"""A job whose id was spoiled by hand is left alone: nobody could name it, or log what became of it."""

import sqlite3
from contextlib import closing

import pytest

from hookline.store.sqlite.jobs import SqliteJobs, is_id


@pytest.mark.parametrize(
    ("value", "expected"),
    [(bytes(16), True), (bytes(15), False), (7, False), ("x" * 16, False), (None, False)],
)
def test_an_id_is_sixteen_bytes(value, expected):
    assert is_id(value) is expected


def test_a_job_with_another_id_is_not_run():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE jobs (id, kind, state, created_at)")
        connection.executemany(
            "INSERT INTO jobs VALUES (?, 'replay', 'running', 1)", [(7,), (bytes(16),), ("text",)]
        )
        found = SqliteJobs.running_jobs.__wrapped__(None, connection)
        assert found == [bytes(16)]
