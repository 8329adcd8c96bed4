"""A real server process on each store, and a client that speaks to it."""

import json
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest

from postgres_server import PostgresServer
from server_process import ServerProcess

KEY = "hlk_the_key_of_these_tests"
TABLES = ("events", "deliveries", "endpoints", "idempotency", "jobs")


class Answer(NamedTuple):
    """A whole HTTP answer, as a raw socket saw it."""

    status: int
    headers: dict[str, str]
    body: bytes


class Service:
    """A running server and its database."""

    def __init__(self, process: ServerProcess, database: str) -> None:
        self.process = process
        self.database = database
        self.client = httpx.Client(
            base_url=process.url, headers={"authorization": f"Bearer {KEY}"}, timeout=30, trust_env=False
        )

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """One request; a body that is not bytes is sent as JSON."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent.setdefault("content-type", "application/json")
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.request(method, path, content=body, headers=sent)

    def publish(self, type: str = "order.paid", payload: Any = None, **fields: Any) -> dict[str, Any]:
        answer = self.call("POST", "/v1/events", {"type": type, "payload": payload, **fields})
        assert answer.status_code == 202, answer.text
        published: dict[str, Any] = answer.json()
        return published

    def create(self, **fields: Any) -> dict[str, Any]:
        fields = {"url": "https://hooks.example.com/", "events": ["order.*"], **fields}
        answer = self.call("POST", "/v1/endpoints", fields)
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    def raw(self, request: bytes) -> Answer:
        """Send bytes as they are; the first answer that comes back."""
        with socket.create_connection(("127.0.0.1", self.process.port), timeout=30) as connection:
            connection.sendall(request)
            return read_answer(connection)

    def counts(self) -> dict[str, int]:
        """How many rows each table has, read from the database itself."""
        if self.database.startswith("sqlite"):
            with sqlite3.connect(self.database.removeprefix("sqlite:///")) as connection:
                found = {
                    table: connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in TABLES
                }
            connection.close()
        else:
            with psycopg.connect(self.database) as session:
                found = {
                    table: session.execute(f"SELECT count(*) FROM hookline.{table}").fetchone()  # type: ignore[arg-type]
                    for table in TABLES
                }
        return {table: row[0] for table, row in found.items() if row is not None}


def read_answer(connection: socket.socket) -> Answer:
    """One answer with a Content-Length."""
    with connection.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        headers: dict[str, str] = {}
        while line := stream.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return Answer(status, headers, stream.read(int(headers.get("content-length", 0))))


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server on an empty database of its own."""
    folder = tmp_path_factory.mktemp("service")
    if request.param == "sqlite":
        yield from _serve(f"sqlite:///{folder}/hooks.db", folder)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.fresh_database() as url:
        yield from _serve(url, folder)


def _serve(database: str, folder: Path) -> Iterator[Service]:
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8", "HOOKLINE_DRAIN_S": "60"}
    with ServerProcess("--database", database, cwd=folder, env=env) as process:
        service = Service(process, database)
        with service.client:
            yield service
        assert process.stop() == 0
        assert "Traceback" not in process.stderr
