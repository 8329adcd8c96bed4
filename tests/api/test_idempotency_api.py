"""An idempotency key stands for one event, whatever happens in between.

Real servers on each store: many requests at once, a kill before and after the commit, a restart, and (on PostgreSQL)
two servers on one database.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from postgres_server import PostgresServer
from server_process import ServerProcess

KEY = "hlk_the_key_of_these_tests"
EVENT = {"type": "order.paid", "payload": {"n": 1}}
ENV = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8", "HOOKLINE_DRAIN_S": "60"}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/hooks.db"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.fresh_database() as url:
        yield url


def serving(database: str, folder: Path, failpoints: str = "") -> ServerProcess:
    env = {**ENV, "HOOKLINE_FAILPOINTS": failpoints}
    return ServerProcess("--database", database, cwd=folder, env=env)


def publish(server: ServerProcess, key: str, event: dict[str, Any] = EVENT) -> httpx.Response:
    headers = {"authorization": f"Bearer {KEY}", "idempotency-key": key}
    return httpx.post(f"{server.url}/v1/events", json=event, headers=headers, timeout=30, trust_env=False)


def events(database: str) -> int:
    """How many there are, read from the database itself."""
    if database.startswith("sqlite"):
        with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as connection:
            return int(connection.execute("SELECT count(*) FROM events").fetchone()[0])
    with psycopg.connect(database) as session:
        [found] = session.execute("SELECT count(*) FROM hookline.events").fetchall()
        return int(found[0])


def at_once(*calls: Any) -> list[httpx.Response]:
    barrier = threading.Barrier(len(calls))
    answers: list[httpx.Response] = []

    def make(call: Any) -> None:
        barrier.wait(120)
        answers.append(call())

    threads = [threading.Thread(target=make, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def assert_one_event(answers: list[httpx.Response], database: str) -> None:
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert [answer.json()["duplicate"] for answer in answers].count(False) == 1
    assert events(database) == 1


def test_twenty_publishes_under_one_key_at_once_are_one_event(database, tmp_path):
    with serving(database, tmp_path) as server:
        assert_one_event(at_once(*[lambda: publish(server, "k")] * 20), database)


def test_of_two_different_events_under_one_key_at_once_one_is_accepted(database, tmp_path):
    with serving(database, tmp_path) as server:
        other = {"type": "order.paid", "payload": {"n": 2}}
        calls = [lambda: publish(server, "k"), lambda: publish(server, "k", other)] * 8
        answers = at_once(*calls)
    accepted = [answer for answer in answers if answer.status_code == 202]
    refused = [answer for answer in answers if answer.status_code != 202]
    assert (len(accepted), len(refused)) == (8, 8)
    assert {answer.json()["code"] for answer in refused} == {"idempotency_conflict"}
    assert len({answer.json()["id"] for answer in accepted}) == 1
    assert events(database) == 1


@pytest.mark.parametrize(("failpoint", "is_kept"), [("accept.before", False), ("accept.after", True)])
def test_a_publish_whose_server_was_killed_is_repeated_as_one_event(database, tmp_path, failpoint, is_kept):
    with serving(database, tmp_path, f"{failpoint}=kill@1") as killed:
        with pytest.raises(httpx.TransportError):
            publish(killed, "k")
        killed.wait()
    assert events(database) == is_kept
    with serving(database, tmp_path) as server:
        again, third = publish(server, "k"), publish(server, "k")
        assert (again.status_code, again.json()["duplicate"]) == (202, is_kept)
        assert (third.json()["id"], third.json()["duplicate"]) == (again.json()["id"], True)
        other = {"type": "order.paid", "payload": {"n": 2}}
        assert publish(server, "k", other).json()["code"] == "idempotency_conflict"
    assert events(database) == 1


def test_a_key_outlives_a_restart(database, tmp_path):
    with serving(database, tmp_path) as first:
        published = publish(first, "k").json()
        assert first.stop() == 0
    with serving(database, tmp_path) as second:
        assert publish(second, "k").json() == {**published, "duplicate": True}


def test_two_servers_on_one_database_accept_a_key_once(postgres_server, tmp_path):
    with (
        postgres_server.fresh_database() as database,
        serving(database, tmp_path) as one,
        serving(database, tmp_path) as two,
    ):
        calls = [lambda: publish(one, "k"), lambda: publish(two, "k")] * 10
        assert_one_event(at_once(*calls), database)
