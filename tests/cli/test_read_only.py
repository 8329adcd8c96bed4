"""A server says that its PostgreSQL has become read-only, and goes on when it is writable again."""

import json

import httpx
import psycopg
import pytest

from answering import eventually, receiving
from server_process import ServerProcess

OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def set_read_only(url: str, *, value: str, ends_sessions: bool) -> None:
    """As a failover or an operator does it: for sessions that begin from now on."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {value}')  # type: ignore[arg-type]
        if ends_sessions:
            connection.execute(OTHERS)  # type: ignore[arg-type]


# A beat of a minute: only the pulse can have noticed.
@pytest.mark.parametrize("env", [{}, {"HOOKLINE_HEARTBEAT_S": "60", "HOOKLINE_TAKEOVER_S": "150"}])
def test_a_database_that_became_read_only_is_said_and_left_alone_until_it_can_be_written(
    tmp_path, postgres_url, env
):
    with (
        receiving() as receiver,
        ServerProcess("--dev", "--database", postgres_url, cwd=tmp_path, env=env) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
    ):

        def said(event: str) -> list[str]:
            whole = [line for line in server.stderr.splitlines(keepends=True) if line.endswith("\n")]
            lines = [json.loads(line) for line in whole if line.startswith("{")]
            return [line.get("error", "") for line in lines if line["event"] == event]

        endpoint = {"url": f"{receiver.url}/200/x", "events": ["*"]}
        assert client.post("/v1/endpoints", json=endpoint).status_code == 201
        eventually(lambda: client.get("/readyz").status_code == 200 or None)
        set_read_only(postgres_url, value="on", ends_sessions=True)
        eventually(lambda: said("store.read_only") or None)
        eventually(lambda: client.get("/readyz").status_code == 503 or None)
        assert client.get("/healthz").status_code == 200
        assert client.post("/v1/events", json={"type": "a", "payload": 1}).status_code == 503
        set_read_only(postgres_url, value="off", ends_sessions=False)
        eventually(lambda: said("store.resumed") or None)
        eventually(lambda: client.get("/readyz").status_code == 200 or None)
        eventually(
            lambda: client.post("/v1/events", json={"type": "a", "payload": 2}).status_code == 202 or None
        )
        eventually(lambda: receiver.at("/200/x") or None)
        assert server.stop() == 0
