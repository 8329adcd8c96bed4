"""What hookline says and does without rights on its PostgreSQL."""

import json
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from answering import eventually, receiving
from postgres_server import GUARDED, GUARDED_PASSWORD, PostgresServer
from server_process import ServerProcess, run

NEXT_STEP = (
    "grant the user rights on the schema `hookline` and its tables (on an empty database: CREATE on it)"
)
ALL_TABLES = "ON ALL TABLES IN SCHEMA hookline"


class Owned:
    """A database of another user, and the URL of a user without rights in it."""

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.name = name
        self.owner = server.url(name)
        self.url = server.url(name, user=GUARDED, password=GUARDED_PASSWORD)

    def decide(self, *statements: str) -> None:
        with psycopg.connect(self.owner, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def grant_all(self) -> None:
        self.decide(
            f"GRANT USAGE ON SCHEMA hookline TO {GUARDED}",
            f"GRANT ALL {ALL_TABLES} TO {GUARDED}",
            f"GRANT ALL ON ALL SEQUENCES IN SCHEMA hookline TO {GUARDED}",
        )


@pytest.fixture
def owned(postgres_server: PostgresServer) -> Iterator[Owned]:
    name = postgres_server.create_database()
    yield Owned(postgres_server, name)
    postgres_server.drop_database(name)


@pytest.fixture
def migrated(postgres_server: PostgresServer) -> Iterator[Owned]:
    name = postgres_server.create_database(template=postgres_server.migrated_template())
    yield Owned(postgres_server, name)
    postgres_server.drop_database(name)


def refused(*arguments: str, cwd) -> str:
    result = run(*arguments, cwd=cwd)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), result.stderr
    assert NEXT_STEP in result.stderr
    assert GUARDED_PASSWORD not in result.stderr
    return result.stderr


def test_an_empty_database_that_it_may_not_create_anything_in_is_refused(tmp_path, owned):
    assert "permission denied for database" in refused("migrate", "--database", owned.url, cwd=tmp_path)


def doctor_on_schema(url: str, *, cwd) -> tuple[str, str, str]:
    """The level, the detail and the next step of the doctor's line about the schema."""
    result = run("doctor", "--json", "--port", "0", "--database", url, cwd=cwd)
    [found] = [each for each in json.loads(result.stdout) if each["check"] == "schema"]
    assert result.returncode == 1
    return found["level"], found["detail"], found["step"]


def test_the_doctor_says_who_may_not_create_anything(tmp_path, owned):
    level, detail, step = doctor_on_schema(owned.url, cwd=tmp_path)
    assert (level, f"the user {GUARDED} lacks CREATE" in detail) == ("bad", True)
    assert step.startswith("GRANT CREATE ON DATABASE test_")
    assert step.endswith(f" TO {GUARDED}; then run `hookline migrate`")


@pytest.mark.parametrize("may_create", [False, True])
def test_a_schema_that_it_may_not_see_is_told_apart_from_none(tmp_path, migrated, may_create):
    if may_create:
        migrated.decide(f"GRANT CREATE ON DATABASE {migrated.name} TO {GUARDED}")
    grants = (
        f"GRANT USAGE ON SCHEMA hookline TO {GUARDED}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE {ALL_TABLES} TO {GUARDED}",
    )
    why = f"The user {GUARDED} may not use the schema `hookline`"
    for command in (["prune", "--yes"], ["migrate"]):
        result = run(*command, "--database", migrated.url, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == f"hookline: {why}: {'; '.join(grants)}.\n"
    assert doctor_on_schema(migrated.url, cwd=tmp_path) == ("bad", why, "; ".join(grants))
    migrated.decide(*grants)
    assert run("prune", "--yes", "--database", migrated.url, cwd=tmp_path).returncode == 0


def test_tables_that_it_may_not_read_are_refused(tmp_path, migrated):
    migrated.decide(f"GRANT USAGE ON SCHEMA hookline TO {GUARDED}")
    said = refused("serve", "--dev", "--port", "0", "--database", migrated.url, cwd=tmp_path)
    assert "permission denied for table schema_migrations" in said


def test_tables_that_it_may_only_read_are_refused(tmp_path, migrated):
    migrated.decide(f"GRANT USAGE ON SCHEMA hookline TO {GUARDED}", f"GRANT SELECT {ALL_TABLES} TO {GUARDED}")
    said = refused("worker", "--dev", "--database", migrated.url, cwd=tmp_path)
    assert "permission denied for table" in said


def test_rights_that_are_taken_away_and_given_back_lose_nothing(tmp_path, migrated):
    migrated.grant_all()

    def publish(server: ServerProcess, n: int) -> httpx.Response:
        return httpx.post(
            f"{server.url}/v1/events", json={"type": "a", "payload": n}, trust_env=False, timeout=30
        )

    def is_ready(server: ServerProcess) -> bool:
        return httpx.get(f"{server.url}/readyz", trust_env=False, timeout=30).status_code == 200

    with receiving() as receiver, ServerProcess("--dev", "--database", migrated.url, cwd=tmp_path) as server:
        endpoint = {"url": f"{receiver.url}/200/x", "events": ["*"]}
        assert (
            httpx.post(f"{server.url}/v1/endpoints", json=endpoint, trust_env=False, timeout=30).status_code
            == 201
        )
        assert publish(server, 1).status_code == 202
        eventually(lambda: receiver.requests or None)
        migrated.decide(f"REVOKE ALL {ALL_TABLES} FROM {GUARDED}")
        answer = publish(server, 2)
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert answer.headers["retry-after"]
        eventually(lambda: None if is_ready(server) else True)
        eventually(lambda: "store.refused" in server.stderr or None)
        migrated.grant_all()
        eventually(lambda: is_ready(server) or None)
        assert publish(server, 3).status_code == 202
        eventually(lambda: receiver.requests[-1].body == b"3" or None)
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.stderr.splitlines() if line.startswith("{")]
    said = [line for line in lines if line["event"] == "store.refused"]
    assert 1 <= len(said) <= 2  # by the pulse, and perhaps by an earlier call
    assert all(NEXT_STEP in line["error"] for line in said)
    assert "loop.failed" not in {line["event"] for line in lines}


@pytest.mark.parametrize(
    ("right", "table"), [("INSERT", "events"), ("UPDATE", "deliveries"), ("INSERT", "attempts")]
)
def test_a_right_without_which_nothing_can_be_accepted_or_brought_is_missed_in_time(
    tmp_path, migrated, right, table
):
    migrated.grant_all()
    # A beat of a minute: only the pulse can have noticed.
    env = {"HOOKLINE_HEARTBEAT_S": "60", "HOOKLINE_TAKEOVER_S": "150"}
    with (
        ServerProcess("--dev", "--database", migrated.url, cwd=tmp_path, env=env) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
    ):

        def said(event: str) -> list[str]:
            whole = [line for line in server.stderr.splitlines(keepends=True) if line.endswith("\n")]
            lines = [json.loads(line) for line in whole if line.startswith("{")]
            return [line.get("error", "") for line in lines if line["event"] == event]

        eventually(lambda: client.get("/readyz").status_code == 200 or None)
        migrated.decide(f"REVOKE {right} ON hookline.{table} FROM {GUARDED}")
        [error] = eventually(lambda: said("store.refused") or None)
        assert table in error
        assert NEXT_STEP in error
        eventually(lambda: client.get("/readyz").status_code == 503 or None)
        assert client.get("/healthz").status_code == 200
        if table == "events":
            assert client.post("/v1/events", json={"type": "a", "payload": 1}).status_code == 503
        migrated.grant_all()
        eventually(lambda: said("store.resumed") or None)
        eventually(lambda: client.get("/readyz").status_code == 200 or None)
        assert client.post("/v1/events", json={"type": "a", "payload": 2}).status_code == 202
        assert server.stop() == 0
