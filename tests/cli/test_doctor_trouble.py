"""The doctor finds who holds the database up and what goes wrong, and is never held up itself."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from answering import eventually, receiving
from factories import a_worker
from file_holder import holding
from hookline.cli.doctor.findings import Finding, Level
from hookline.cli.doctor.holding import check_holding
from hookline.cli.doctor.secrets import check_secret_key
from hookline.cli.doctor.trouble import check_trouble
from hookline.model import EndpointId
from hookline.store.contract import Snapshot
from hookline.store.contract.doctor import Examination, Holder, OpenCircuit
from hookline.store.postgres.store import PostgresStore
from server_process import ServerProcess, run

NOW = 1_800_000_000.0
NOBODY = "http://127.0.0.1:1"  # refuses: no program gets this port by chance
HEALTHY = Examination(server="PostgreSQL 15.4", now=NOW, settings={}, unsafe=None, schema=None)
ONCE = {"schedule": [0], "jitter": "none"}


def findings(folder: Path, database: str, url: str = NOBODY) -> dict[str, tuple[str, str]]:
    """The level and detail of each check."""
    result = run(
        "doctor", "--json", "--port", "0", "--database", database, cwd=folder, env={"HOOKLINE_URL": url}
    )
    assert result.stderr == ""
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return {each["check"]: (each["level"], each["detail"]) for each in found}


def verdicts(folder: Path, database: str, *checks: str, url: str = NOBODY) -> dict[str, tuple[str, str]]:
    """What the doctor finds, once it had the time for these checks: a busy machine may need more than it gives."""

    def look() -> dict[str, tuple[str, str]] | None:
        found = findings(folder, database, url)
        return found if found.keys() >= set(checks) else None

    return eventually(look)


def changed(**facts: Any) -> Examination:
    return Examination(**{**{name: getattr(HEALTHY, name) for name in HEALTHY.__struct_fields__}, **facts})


# --- judgement ---


def test_a_lock_names_its_session_unless_it_is_a_moment_old():
    young = Holder(what="lanes", pid=1, name="", seconds=0.1)
    old = Holder(what="events", pid=77, name="psql", seconds=32.4)
    [finding] = check_holding(changed(holders=(young, old)))
    assert finding == Finding(
        "locks",
        Level.BAD,
        "session 77 (psql) has kept the table events locked for 32 s: publishes or deliveries wait",
        "finish its transaction, or end it: SELECT pg_terminate_backend(77)",
    )


def test_what_was_not_answered_is_named_once():
    finding, locks = check_holding(changed(unanswered=("secrets", "secrets", "circuits")))
    assert (finding.level, finding.detail) == (
        "warn",
        "the database did not say in time: secrets, circuits",
    )
    assert (locks.check, locks.level) == ("locks", "ok")


@pytest.mark.parametrize(
    "facts",
    [
        {"unanswered": ("locks",)},
        {"unanswered": ("secrets",), "holders": (Holder(what="endpoints", pid=1, name="", seconds=0.3),)},
    ],
)
def test_that_nobody_locks_a_table_is_said_only_if_it_is_known(facts):
    assert [each.check for each in check_holding(changed(**facts))] == ["answers"]


def test_secrets_that_were_not_read_are_not_judged():
    assert list(check_secret_key(("k" * 32,), changed(unanswered=("secrets",)))) == []


def test_old_snapshots_are_found_and_young_ones_are_not():
    old = Snapshot(held_by="session", name="report", pid=5, seconds=60.0)
    young = Snapshot(held_by="session", name="psql", pid=6, seconds=1.0)
    assert [
        each.detail for each in check_holding(changed(snapshots=(old, young))) if each.level == "warn"
    ] == ["session report has kept dead rows from being removed for 60 s"]


def test_circuits_dead_letters_and_silent_processes_are_named():
    circuit = OpenCircuit(endpoint_id=EndpointId(bytes(16)), reason="5 failures in a row", probe_at=NOW + 40)
    silent = a_worker(kind="worker", seen_at=NOW - 60)
    found = changed(circuits=(circuit,) * 5, dead_last_hour=12, workers=(silent,))
    circuits, dead, workers = check_trouble(found, wall=NOW, heartbeat=2.0)
    assert (circuits.level, dead.level, workers.level) == ("warn", "warn", "warn")
    assert "5 are open" in circuits.detail
    assert "(5 failures in a row; next probe in 40 s)" in circuits.detail
    assert circuits.detail.endswith("and 2 more")
    assert dead.detail == "12 deliveries died in the last hour"
    assert "(60 s)" in workers.detail
    assert [each.level for each in check_trouble(HEALTHY, wall=NOW, heartbeat=2.0)] == ["ok", "ok", "ok"]


# --- real databases ---


@pytest.mark.parametrize(
    "table", ["events", "deliveries", "lanes", "workers", "endpoints", "schema_migrations"]
)
def test_a_locked_table_is_a_finding_and_not_a_wait(tmp_path, postgres_url, table):
    with psycopg.connect(postgres_url, application_name="a report") as session:
        session.execute(f"LOCK TABLE hookline.{table} IN ACCESS EXCLUSIVE MODE")  # type: ignore[arg-type]
        pid = session.info.backend_pid

        def locked() -> dict[str, tuple[str, str]] | None:
            found = verdicts(tmp_path, postgres_url, "locks")
            return found if found["locks"][0] == "bad" else None

        found = eventually(locked)
    assert f"session {pid} (a report) has kept the table {table} locked" in found["locks"][1]
    assert verdicts(tmp_path, postgres_url, "locks")["locks"][0] == "ok"


def test_what_was_not_asked_because_the_schema_is_locked_is_not_called_good(tmp_path, postgres_url):
    with psycopg.connect(postgres_url) as session:
        session.execute("LOCK TABLE hookline.schema_migrations IN ACCESS EXCLUSIVE MODE")
        found = verdicts(tmp_path, postgres_url, "answers")
    unanswered = found["answers"][1].removeprefix("the database did not say in time: ").split(", ")
    assert {"schema", "secrets", "endpoints", "workers", "circuits", "dead letters"} <= set(unanswered)
    assert not found.keys() & {"circuits", "dead letters", "workers", "deliveries", "secret_key"}


def test_a_locked_file_is_a_finding(tmp_path):
    assert run("migrate", "--database", "sqlite:///x.db", cwd=tmp_path).returncode == 0
    with holding(tmp_path / "x.db"):
        assert verdicts(tmp_path, "sqlite:///x.db", "locks")["locks"][0] == "bad"
    assert verdicts(tmp_path, "sqlite:///x.db", "locks")["locks"][0] == "ok"


@pytest.mark.anyio
async def test_it_is_not_counted_among_those_who_hold_the_database_up(postgres_url):
    store = PostgresStore(postgres_url)
    await store.open()
    try:
        for name, counted in (("hookline doctor", 0), ("a report", 1)):
            with psycopg.connect(postgres_url, application_name=name) as session:
                session.execute("SELECT pg_current_xact_id()")
                held = [each for each in (await store.bloat()).snapshots if each.name == name]
                assert len(held) == counted
    finally:
        await store.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request) -> str:
    return "sqlite:///x.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def test_it_reports_what_goes_wrong_and_that_the_server_uses_this_database(tmp_path, database):
    with (
        receiving() as receiver,
        ServerProcess("--dev", "--database", database, cwd=tmp_path) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client,
    ):
        for status, type in ((500, "failing"), (422, "refused")):
            endpoint = {
                "url": f"{receiver.url}/{status}/x",
                "events": [type],
                "circuit": {"consecutive_failures": 1},
                "retry": {"schedule": [0, 600], "jitter": "none"} if status == 500 else ONCE,
            }
            assert client.post("/v1/endpoints", json=endpoint).status_code == 201
            assert client.post("/v1/events", json={"type": type, "payload": 1}).status_code == 202

        # A server that was silent for some seconds, as on a busy machine, is heard of again.
        wanted = {"circuits": "warn", "dead letters": "warn", "workers": "ok", "installation": "ok"}

        def troubled() -> dict[str, tuple[str, str]] | None:
            found = verdicts(tmp_path, database, *wanted, url=server.url)
            return found if {check: found[check][0] for check in wanted} == wanted else None

        found = eventually(troubled)
        assert "1 is open: ep_" in found["circuits"][1]
        assert found["dead letters"][1] == "1 delivery died in the last hour"
        assert found["installation"][1] == "the server uses this database"
        other = "sqlite:///other.db"
        assert run("migrate", "--database", other, cwd=tmp_path).returncode == 0
        apart = verdicts(tmp_path, other, "installation", url=server.url)["installation"]
        assert apart[0] == "bad"
        assert "uses another database than sqlite:///other.db" in apart[1]


def test_a_copy_of_the_database_is_another_one(tmp_path):
    with ServerProcess("--dev", "--database", "sqlite:///x.db", cwd=tmp_path) as server:
        with (
            closing(sqlite3.connect(tmp_path / "x.db")) as here,
            closing(sqlite3.connect(tmp_path / "copy.db")) as there,
        ):
            here.backup(there)
            there.execute("UPDATE workers SET seen_at = seen_at - 60")
            there.commit()
        found = verdicts(tmp_path, "sqlite:///copy.db", "installation", url=server.url)
        assert found["installation"][0] == "bad"
