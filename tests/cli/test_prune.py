"""What the prune command does to the database, with a server or without one."""

import json
import sqlite3
import time
from contextlib import closing
from random import Random

import httpx
import psycopg
import pytest

from hookline.ids import Ids, delivery_of
from hookline.testing.clock import ManualClock
from server_process import ServerProcess, run
from terminal import Terminal

DAY = 86_400.0
MANY = 1_200  # more than one transaction takes
ENDPOINT = bytes(15) + b"\x01"


class Sqlite:
    """A migrated file, and a way to plant old rows in it."""

    def __init__(self, folder):
        self.path = folder / "x.db"
        self.flags = ("--database", f"sqlite:///{self.path}")
        assert run("migrate", *self.flags, cwd=folder).returncode == 0

    def plant(self, rows):
        with closing(sqlite3.connect(self.path)) as connection, connection:
            for event, state, at in rows:
                connection.execute(
                    "INSERT INTO events (id, account, type, payload, created_at) VALUES (?, 'default', 't', x'7b7d', ?)",
                    (event, at),
                )
                connection.execute(
                    "INSERT INTO deliveries (id, endpoint_id, due_at, done_at, state) VALUES (?, ?, ?, ?, ?)",
                    (delivery_of(event, 0), ENDPOINT, at, None if state == "pending" else at, state),
                )

    def ask(self, statement):
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(statement).fetchall()


class Postgres:
    """A migrated database, and a way to plant old rows in it."""

    def __init__(self, url):
        self.url = url
        self.flags = ("--database", url)

    def plant(self, rows):
        with self._connect() as connection:
            for event, state, at in rows:
                connection.execute(
                    "INSERT INTO events (id, account, type, payload, created_at) VALUES (%s::uuid, 'default', 't', '{}', to_timestamp(%s))",
                    (event.hex(), at),
                )
                connection.execute(
                    "INSERT INTO deliveries (id, endpoint_id, due_at, done_at, state, queue) VALUES (%s::uuid, %s::uuid, now(), to_timestamp(%s), %s, 'ready')",
                    (delivery_of(event, 0).hex(), ENDPOINT.hex(), None if state == "pending" else at, state),
                )

    def ask(self, statement):
        with self._connect() as connection:
            return connection.execute(statement).fetchall()

    def _connect(self):
        return psycopg.connect(self.url, options="-c search_path=hookline")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    if request.param == "sqlite":
        yield Sqlite(tmp_path)
        return
    with request.getfixturevalue("postgres_server").fresh_database() as url:
        yield Postgres(url)


def rows_of(state, number, *, age):
    at = time.time() - age
    ids = Ids(ManualClock(at), Random(f"{state} {age}"))
    return [(ids.event(), state, at) for _ in range(number)]


def states(database):
    return dict(database.ask("SELECT state, count(*) FROM deliveries GROUP BY state"))


def pruned(database):
    """The accounts of which something was pruned; the default one always has a row."""
    return database.ask("SELECT account, deliveries, events FROM pruned WHERE deliveries + events > 0")


def test_what_the_settings_say_is_old_goes_and_nothing_else(database, tmp_path):
    for state in ("delivered", "cancelled", "dead", "pending"):
        database.plant(rows_of(state, 3, age=20 * DAY))
        database.plant(rows_of(state, 5, age=40 * DAY))
        database.plant(rows_of(state, 7, age=100 * DAY))
    before = states(database)

    looked = run("prune", "--dry-run", "--json", *database.flags, cwd=tmp_path)
    assert (json.loads(looked.stdout), looked.stderr) == ({"events": 31, "deliveries": 31}, "")
    assert (states(database), pruned(database)) == (before, [])

    done = run("prune", "--yes", "--json", *database.flags, cwd=tmp_path)
    assert (json.loads(done.stdout), done.stderr) == ({"events": 31, "deliveries": 31}, "")
    assert states(database) == {"delivered": 3, "cancelled": 3, "dead": 8, "pending": 15}
    assert pruned(database) == [("default", 31, 31)]

    again = run("prune", "--yes", "--older-than", "30d", *database.flags, cwd=tmp_path)
    assert again.stdout == "5 events with 5 deliveries deleted.\n"
    assert states(database) == {"delivered": 3, "cancelled": 3, "dead": 3, "pending": 15}
    assert pruned(database) == [("default", 36, 36)]


def test_never_means_never(database, tmp_path):
    database.plant(rows_of("delivered", 3, age=100 * DAY))
    kept = {"HOOKLINE_KEEP_DELIVERED_DAYS": "never", "HOOKLINE_KEEP_DEAD_DAYS": "0"}
    done = run("prune", "--yes", *database.flags, cwd=tmp_path, env=kept)
    assert (done.returncode, done.stdout) == (0, "0 events with 0 deliveries deleted.\n")
    assert states(database) == {"delivered": 3}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--older-than", "59m", "--yes"], "at least 1h"),
        (["--older-than", "0s", "--yes"], "at least 1h"),
        (["--older-than", "soon"], "not a duration such as"),
        (["--older-than", "-3d"], "not a duration such as"),
        ([], "add --yes"),
    ],
)
def test_a_span_that_will_not_do_and_a_script_that_was_not_asked_change_nothing(tmp_path, arguments, words):
    database = Sqlite(tmp_path)
    database.plant(rows_of("delivered", 3, age=100 * DAY))
    result = run("prune", *arguments, *database.flags, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
    assert states(database) == {"delivered": 3}


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    result = run("prune", "--yes", "--database", "sqlite:///no.db", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "hookline migrate" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_beside_a_running_server_it_deletes_what_is_old_while_the_server_accepts(database, tmp_path):
    database.plant(rows_of("delivered", MANY, age=100 * DAY))
    with ServerProcess("--dev", *database.flags, cwd=tmp_path) as server:
        answer = httpx.post(
            f"{server.url}/v1/events", json={"type": "a.b", "payload": 1}, trust_env=False, timeout=30
        )
        assert answer.status_code == 202
        done = run("prune", "--yes", "--json", *database.flags, cwd=tmp_path)
        assert json.loads(done.stdout) == {"events": MANY, "deliveries": MANY}
        found = httpx.get(f"{server.url}/v1/events/{answer.json()['id']}", trust_env=False, timeout=30)
        assert found.status_code == 200
        assert server.stop() == 0
    assert states(database) == {}


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_migrate_shows_what_it_would_do_and_does_not(tmp_path, arguments):
    looked = run("migrate", "--dry-run", "--database", "sqlite:///new.db", *arguments, cwd=tmp_path)
    assert looked.returncode == 0
    assert "0001_tables" in looked.stdout
    assert list(tmp_path.iterdir()) == []
    done = run("migrate", "--database", "sqlite:///new.db", "--json", cwd=tmp_path)
    if arguments:
        assert json.loads(looked.stdout) == {"would_apply": json.loads(done.stdout)["applied"]}
    left = run("migrate", "--dry-run", "--database", "sqlite:///new.db", cwd=tmp_path)
    assert (left.returncode, left.stdout, left.stderr) == (0, "", "The schema is up to date.\n")


def test_migrate_shows_what_is_missing_of_a_postgresql_without_a_schema(postgres_server, tmp_path):
    name = postgres_server.create_database()
    flags = ("--database", postgres_server.url(name))
    try:
        looked = run("migrate", "--dry-run", *flags, cwd=tmp_path)
        assert looked.stdout.splitlines()[0] == "0001_tables"
        with psycopg.connect(postgres_server.url(name)) as connection:
            schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'hookline'"
            assert connection.execute(schemas).fetchone() == (0,)
        assert run("migrate", *flags, cwd=tmp_path).stdout == looked.stdout
        assert run("migrate", "--dry-run", *flags, cwd=tmp_path).stdout == ""
    finally:
        postgres_server.drop_database(name)


def test_on_a_terminal_a_person_is_asked_and_sees_how_far_it_is(tmp_path):
    database = Sqlite(tmp_path)
    database.plant(rows_of("delivered", MANY, age=100 * DAY))
    with Terminal("prune", *database.flags, cwd=tmp_path) as terminal:
        terminal.wait_for("Permanently delete 1,200 events with 1,200 deliveries?")
        terminal.type(b"n\n")
        assert terminal.end() == 1
    assert states(database) == {"delivered": MANY}
    with Terminal("prune", *database.flags, cwd=tmp_path) as terminal:
        terminal.wait_for("Permanently delete")
        terminal.type(b"y\n")
        terminal.wait_for("1200/1200")
        terminal.wait_for("1,200 events with 1,200 deliveries deleted.")
        assert terminal.end() == 0
    assert states(database) == {}
