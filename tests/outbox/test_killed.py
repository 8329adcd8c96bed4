"""An application that is killed at any statement leaves an order with its event, or neither."""

import subprocess
import sys
from typing import Any

import pytest

STEPS = ("begun", "ordered", "published", "committed")

PROGRAM = """
import sys
from hookline import outbox

def reached(step):
    if step == sys.argv[1]:
        print("here", flush=True)
        sys.stdin.read()  # until it is killed

"""
ON_POSTGRES = """
import psycopg
connection = psycopg.connect(sys.argv[2])
connection.execute("SELECT 1")
reached("begun")
connection.execute("INSERT INTO orders VALUES (42)")
reached("ordered")
outbox.publish(connection, "order.paid", {"id": 42})
reached("published")
connection.commit()
reached("committed")
"""
ON_SQLITE = """
import sqlite3
connection = sqlite3.connect(sys.argv[2], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
reached("begun")
connection.execute("INSERT INTO orders VALUES (42)")
reached("ordered")
outbox.publish(connection, "order.paid", {"id": 42})
reached("published")
connection.execute("COMMIT")
reached("committed")
"""


def kill_at(step: str, program: str, database: str) -> None:
    application = subprocess.Popen(
        [sys.executable, "-c", PROGRAM + program, step, database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with application:
        assert application.stdout is not None
        assert application.stdout.readline() == "here\n"
        application.kill()


def left_in(database: Any) -> tuple[list[int], list[bytes]]:
    return database.orders(), [each.payload for each in database.kept()]


@pytest.mark.parametrize("step", STEPS)
def test_an_application_on_postgres_that_is_killed(postgres, step):
    kill_at(step, ON_POSTGRES, postgres.url)
    assert left_in(postgres) == (([42], [b'{"id":42}']) if step == "committed" else ([], []))


@pytest.mark.parametrize("step", STEPS)
def test_an_application_on_sqlite_that_is_killed(sqlite, step):
    kill_at(step, ON_SQLITE, str(sqlite.path))
    assert left_in(sqlite) == (([42], [b'{"id":42}']) if step == "committed" else ([], []))
