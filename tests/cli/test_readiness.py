"""/readyz says 503 while publishes wait or are refused, and 200 when they no longer are."""

import os
import signal
import threading
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from answering import eventually
from file_holder import holding
from server_process import CEILING_S, ServerProcess


@pytest.fixture
def shared(tmp_path, postgres_url) -> Iterator[tuple[ServerProcess, httpx.Client, str]]:
    with (
        ServerProcess("--dev", "--database", postgres_url, cwd=tmp_path) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client,
    ):
        until(client, 200)
        yield server, client, postgres_url


def until(client: httpx.Client, status: int) -> None:
    eventually(lambda: client.get("/readyz").status_code == status or None)


def test_a_locked_table_makes_it_not_ready_without_a_publish(shared):
    server, client, url = shared

    def changes() -> list[str]:
        return [line["event"] for line in server.lines if line["event"].startswith("readiness.")]

    for table in ("events", "deliveries", "idempotency"):
        before = len(changes())
        with psycopg.connect(url) as session:
            session.execute(f"LOCK TABLE hookline.{table} IN ACCESS EXCLUSIVE MODE")
            until(client, 503)
            assert changes()[before:][-1:] == ["readiness.lost"]
            assert client.get("/healthz").status_code == 200
        until(client, 200)
        # On a busy machine a commit can take long at other moments too, and each of them is logged.
        assert changes()[before:] == ["readiness.lost", "readiness.regained"] * (
            (len(changes()) - before) // 2
        )
    assert not [line for line in server.lines if line["event"] == "request.failed"]


def test_a_publish_that_waits_for_a_row_makes_it_not_ready(shared):
    _, client, url = shared
    body = {"type": "a", "payload": 1, "idempotency_key": "k"}
    answers: list[int] = []
    with psycopg.connect(url) as session:  # another process is about to use the key: an insert of it waits
        session.execute(
            "INSERT INTO hookline.idempotency (account, key, event_id, digest) "
            "VALUES ('default', 'k', gen_random_uuid(), '')"
        )

        def publish() -> None:
            while not answers or answers[-1] != 202:
                answers.append(client.post("/v1/events", json=body).status_code)

        publisher = threading.Thread(target=publish)
        publisher.start()
        until(client, 503)
        session.rollback()
    publisher.join(CEILING_S)
    assert answers[-1] == 202
    until(client, 200)


def test_a_stopped_session_of_the_database_makes_it_not_ready(shared):
    _, client, url = shared
    with psycopg.connect(url, autocommit=True) as session:
        found = session.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'hookline accept' "
            "AND datname = current_database()"
        ).fetchall()
    assert found
    for (pid,) in found:
        os.kill(pid, signal.SIGSTOP)
    try:
        until(client, 503)
    finally:
        for (pid,) in found:
            os.kill(pid, signal.SIGCONT)
    until(client, 200)


def test_an_sqlite_file_that_another_process_locks_makes_it_not_ready(tmp_path):
    with (
        ServerProcess("--dev", "--database", "sqlite:///x.db", cwd=tmp_path) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client,
    ):
        until(client, 200)
        with holding(tmp_path / "x.db"):
            until(client, 503)
        until(client, 200)
        assert client.post("/v1/events", json={"type": "a", "payload": 1}).status_code == 202
        assert server.stop() == 0
