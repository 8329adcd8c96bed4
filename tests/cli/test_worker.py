"""A worker delivers what servers accepted, and has no API."""

import json

import httpx
import pytest

from answering import eventually, receiving
from hookline.store.database_url import shown
from server_process import ServerProcess, log_lines, run
from slow_receiver import Slow, serving
from worker_process import WorkerProcess


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    return "sqlite:///hooks.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def test_what_a_server_accepted_is_delivered_by_a_worker(tmp_path, database):
    flags = ("--dev", "--database", database)
    with receiving() as receiver:
        with (
            ServerProcess(*flags, "--no-worker", cwd=tmp_path) as server,
            httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
        ):
            endpoint = {"url": f"{receiver.url}/200/x", "events": ["*"]}
            assert client.post("/v1/endpoints", json=endpoint).status_code == 201
            assert client.post("/v1/events", json={"type": "a", "payload": 1}).status_code == 202
            server.kill()
            assert receiver.requests == []
        soon = {"HOOKLINE_HEARTBEAT_S": "0.4", "HOOKLINE_TAKEOVER_S": "2"}
        with WorkerProcess(*flags, cwd=tmp_path, env=soon) as worker:
            eventually(lambda: receiver.at("/200/x") or None)
            assert worker.stop() == 0
            lines = worker.messages
    assert f"hookline 0.1.0 delivering from {shown(database)}" in lines
    assert lines[-1] == "hookline has stopped."


def test_a_worker_that_is_stopped_before_an_answer_came_ends_with_1(tmp_path, database):
    flags = ("--dev", "--database", database)
    with (
        serving(Slow()) as slow,
        ServerProcess(*flags, "--no-worker", cwd=tmp_path) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
    ):
        endpoint = {"url": slow.url, "events": ["*"]}
        assert client.post("/v1/endpoints", json=endpoint).status_code == 201
        assert client.post("/v1/events", json={"type": "a", "payload": 1}).status_code == 202
        assert server.stop() == 0
        with WorkerProcess(*flags, cwd=tmp_path, env={"HOOKLINE_DRAIN_S": "0.1"}) as worker:
            eventually(lambda: slow.events or None)
            assert worker.stop() == 1
            assert worker.messages[-1].startswith("hookline has stopped before all requests were answered")


def test_an_sqlite_file_has_one_process(tmp_path):
    with WorkerProcess("--dev", cwd=tmp_path) as worker:
        second = run("worker", "--dev", cwd=tmp_path)
        assert (second.returncode, "one process serves an SQLite file" in second.stderr) == (1, True)
        assert worker.stop() == 0


def test_a_database_that_does_not_answer_is_unreachable(tmp_path):
    result = run("worker", "--database", "postgresql://me:canary@127.0.0.1:1/x", cwd=tmp_path)
    assert result.returncode == 3
    [line] = log_lines(result.stderr)
    assert line["message"] == "PostgreSQL at 127.0.0.1:1 cannot be reached: connection refused"


def test_a_worker_that_may_not_send_where_the_server_allowed_it_says_so_once_for_each_endpoint(
    tmp_path, postgres_url
):
    flags = ("--database", postgres_url)
    with (
        receiving() as receiver,
        ServerProcess(*flags, "--dev", "--no-worker", cwd=tmp_path) as server,
        WorkerProcess(*flags, cwd=tmp_path) as worker,
        httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
    ):
        made = []
        for host in ("127.0.0.1", "localhost"):
            endpoint = {
                "url": f"http://{host}:{receiver.server_port}/200/token",
                "events": ["*"],
                "retry": {"schedule": [0, 0, 0]},
                "circuit": None,
            }
            made.append(client.post("/v1/endpoints", json=endpoint).json()["id"])
        for n in range(2):
            assert client.post("/v1/events", json={"type": "a", "payload": n}).status_code == 202

        def dead() -> list[dict[str, str]] | None:
            found = client.get("/v1/dead-letters").json()["data"]
            return found if len(found) == 4 else None

        letters = eventually(dead)
        attempts = client.get(f"/v1/deliveries/{letters[0]['id']}/attempts").json()["data"]
        assert worker.stop() == 0
        lines = [json.loads(line) for line in worker.stderr.splitlines() if line.startswith("{")]
    assert receiver.requests == []
    assert len(attempts) == 3
    host = "127.0.0.1 is" if letters[0]["endpoint_id"] == made[0] else "localhost points to"
    assert attempts[0]["error"] == {
        "kind": "blocked_address",
        "detail": f"{host} an address that this worker may not send to (HOOKLINE_ALLOW_NETWORKS).",
    }
    said = [line for line in lines if line["event"] == "endpoint.blocked"]
    assert sorted(line["endpoint_id"] for line in said) == sorted(made)
    assert all("set HOOKLINE_ALLOW_NETWORKS here too" in line["note"] for line in said)
    assert "token" not in str(said)
