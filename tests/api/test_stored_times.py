"""Whatever times a database holds, every request is answered."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import httpx
import psycopg
import pytest

from server_process import ServerProcess

# What a broken version, a wrong clock or manual changes in the database can leave behind.
ODD = {
    "sqlite": ["9e999", "-9e999", "1e300", "-1e300", "253402300800.0", "-62135596801.0"],
    "postgres": ["'infinity'", "'-infinity'", "'294276-01-01'", "'4713-01-01 BC'", "'10000-01-01'"],
}
# The file's own time and the records of migrations are never shown.
NOT_SHOWN = {"clock", "schema_migrations", "schema_serves"}


class Planted:
    """A database whose rows can be changed without hookline."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.kind = url.partition(":")[0].replace("postgresql", "postgres")

    def execute(self, *statements: str) -> list[tuple[str, ...]]:
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=30)) as file, file:
                return [row for statement in statements for row in file.execute(statement).fetchall()]
        with psycopg.connect(self.url, options="-c search_path=hookline") as session:
            found = []
            for statement in statements:
                cursor = session.execute(statement)
                found += cursor.fetchall() if cursor.description else []
            return found

    def times(self) -> list[tuple[str, str]]:
        """Every column that holds a time, with its table."""
        if self.kind == "sqlite":
            columns = self.execute(
                "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c "
                "WHERE m.type = 'table' AND c.type = 'REAL' AND (c.name = 'at' OR c.name LIKE '%\\_at' ESCAPE '\\' "
                "OR c.name LIKE '%\\_until' ESCAPE '\\')"
            )
        else:
            columns = self.execute(
                "SELECT c.table_name, c.column_name FROM information_schema.columns c "
                "WHERE c.table_schema = 'hookline' AND c.data_type = 'timestamp with time zone'"
            )
        return sorted((table, column) for table, column in columns if table not in NOT_SHOWN)

    def plant(self, odd: str) -> None:
        self.execute(*(f"UPDATE {table} SET {column} = {odd}" for table, column in self.times()))


@pytest.fixture(params=["sqlite", "postgres"])
def planted(request: pytest.FixtureRequest, tmp_path) -> Iterator[Planted]:
    if request.param == "sqlite":
        yield Planted(f"sqlite:///{tmp_path}/hooks.db")
        return
    with request.getfixturevalue("postgres_server").fresh_database() as url:
        yield Planted(url)


def serve(planted: Planted, folder) -> ServerProcess:
    return ServerProcess("--dev", "--database", planted.url, cwd=folder, env={"HOOKLINE_DRAIN_S": "60"})


def call(server: ServerProcess, method: str, path: str, body: object = None) -> httpx.Response:
    return httpx.request(method, server.url + path, json=body, trust_env=False, timeout=60)


def made(server: ServerProcess, path: str, body: object = None) -> dict[str, str]:
    answer = call(server, "POST", path, body)
    assert answer.is_success, answer.text
    found: dict[str, str] = answer.json()
    return found


def furnish(server: ServerProcess) -> list[str]:
    """Create one of everything; returns the paths that show it."""
    endpoint = made(server, "/v1/endpoints", {"url": "http://127.0.0.1:9999/", "events": ["*"]})
    made(server, f"/v1/endpoints/{endpoint['id']}/pause")
    event = made(server, "/v1/events", {"type": "a", "payload": 1})
    made(server, "/v1/keys", {"name": "k", "scopes": ["read"]})
    call(server, "PUT", "/v1/event-types/a", {"description": "d"}).raise_for_status()
    call(server, "PUT", "/v1/accounts/default", {}).raise_for_status()
    [delivery] = call(server, "GET", f"/v1/deliveries?event_id={event['id']}").json()["data"]
    made(server, f"/v1/deliveries/{delivery['id']}/cancel")
    made(server, f"/v1/events/{event['id']}/replay")
    job = made(server, "/v1/replays", {"filter": {"account": "default"}})
    return [
        "/v1/endpoints",
        f"/v1/endpoints/{endpoint['id']}",
        "/v1/events",
        f"/v1/events/{event['id']}",
        "/v1/deliveries",
        f"/v1/deliveries/{delivery['id']}",
        f"/v1/deliveries/{delivery['id']}/attempts",
        "/v1/dead-letters",
        f"/v1/replays/{job['id']}",
        "/v1/replays",
        "/v1/workers",
        "/v1/alerts",
        "/v1/keys",
        "/v1/event-types",
        "/v1/accounts/default",
        "/metrics",
    ]


def refusals(server: ServerProcess, paths: list[str]) -> dict[str, str]:
    answers = {path: call(server, "GET", path) for path in paths}
    return {path: each.text for path, each in answers.items() if each.status_code != 200}


def test_any_stored_time_is_shown_also_after_a_restart(planted: Planted, tmp_path):
    with serve(planted, tmp_path) as server:
        paths = furnish(server)
        assert refusals(server, paths) == {}
        for odd in ODD[planted.kind]:
            planted.plant(odd)
            assert refusals(server, paths) == {}, odd
        assert "Traceback" not in server.stderr
        server.kill()
    for odd in ODD[planted.kind]:
        planted.plant(odd)
        with serve(planted, tmp_path) as server:
            assert refusals(server, paths) == {}, odd
            assert "Traceback" not in server.stderr
            server.kill()
