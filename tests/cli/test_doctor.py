"""The doctor names what is wrong, and the next step."""

import json
import os
import re
import resource
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from ipaddress import ip_network
from pathlib import Path

import httpx
import msgspec
import psycopg
import pytest

from answering import eventually, receiving
from hookline.cli.doctor.database import judge
from hookline.cli.doctor.delivering import check_delivering
from hookline.cli.doctor.findings import Finding, Level
from hookline.cli.doctor.machine import check_open_files
from hookline.cli.doctor.settings import check_networks
from hookline.ids import read
from hookline.model import WorkerId
from hookline.store.contract import WorkerRow
from hookline.store.contract.doctor import Examination, Waiting
from hookline.store.postgres.driver.session import MOST_SESSIONS
from hookline.store.postgres.store import PostgresStore
from planting import plant
from server_process import ServerProcess, run
from terminal import Terminal

KEY = "hlk_the_key_of_these_tests"
NOBODY = "http://127.0.0.1:1"  # refuses: no program gets this port by chance
NOW = 1_800_000_000.0
HEALTHY = Examination(
    server="PostgreSQL 15.4", now=NOW, settings={"fsync": "on"}, unsafe=None, schema=None, missing_rights=()
)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request) -> str:
    """A database that a server may be started on."""
    return "sqlite:///x.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def create_endpoint(server: ServerProcess, url: str) -> None:
    answer = httpx.post(
        f"{server.url}/v1/endpoints", json={"url": url, "events": ["*"]}, trust_env=False, timeout=30
    )
    assert answer.is_success, answer.text


def make_due_earlier(database: str, folder: Path) -> None:
    """Make all deliveries due two minutes earlier."""
    if database.startswith("postgresql"):
        with psycopg.connect(database, autocommit=True) as session:
            session.execute("UPDATE hookline.deliveries SET due_at = due_at - interval '120 s'")
        return
    with closing(sqlite3.connect(folder / "x.db", timeout=30)) as connection, connection:
        connection.execute("UPDATE deliveries SET due_at = due_at - 120")


Findings = dict[str, tuple[str, str, str | None]]


def examined(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, Findings]:
    """The exit code, and the level, detail and next step of each check, when the doctor had the time for all of them.

    It gives each question little time, which may not be enough on a busy machine.
    """

    def look() -> tuple[int, Findings] | None:
        result = run(
            "doctor",
            "--json",
            "--port",
            "0",
            *arguments,
            cwd=folder,
            env={"HOOKLINE_URL": NOBODY, **(env or {})},
        )
        assert result.stderr == ""
        found = {
            each["check"]: (each["level"], each["detail"], each["step"]) for each in json.loads(result.stdout)
        }
        return (result.returncode, found) if had_time(found) else None

    return eventually(look)


def had_time(found: Findings) -> bool:
    """Did it get an answer to everything that it asked?"""
    said = " ".join(detail for _, detail, _ in found.values())
    return not any(words in said for words in ("did not say in time", "did not answer in time", "timed out"))


# --- judgement ---


def test_a_healthy_database_is_found_healthy():
    assert [each.level for each in judge(HEALTHY, wall=NOW + 1)] == ["ok", "ok", "ok", "ok"]


@pytest.mark.parametrize(
    ("changes", "wall", "expected"),
    [
        (
            {"unsafe": "it loses commits"},
            NOW,
            Finding(
                "durability",
                Level.BAD,
                "it loses commits",
                "change this setting of the database before you publish events",
            ),
        ),
        (
            {"schema": "It is behind (missing: 0002): run `hookline migrate`."},
            NOW,
            Finding("schema", Level.BAD, "It is behind (missing: 0002)", "run `hookline migrate`"),
        ),
        (
            {"missing_rights": ("INSERT on events",)},
            NOW,
            Finding(
                "rights",
                Level.BAD,
                "the database user lacks INSERT on events",
                "GRANT these rights on all tables of the schema hookline",
            ),
        ),
        (
            {},
            NOW + 3,
            Finding(
                "clock",
                Level.WARN,
                "this machine's clock is 3 s ahead of the database's",
                "set it by NTP (chronyd, systemd-timesyncd): signatures contain the time",
            ),
        ),
        (
            {"connections": 12, "needed_connections": 17},
            NOW,
            Finding(
                "connections",
                Level.WARN,
                "12 allowed; one hookline process needs up to 17",
                "raise max_connections of PostgreSQL and restart it",
            ),
        ),
        (
            {"server": "SQLite 3.40.0"},
            NOW - 60,
            Finding(
                "clock",
                Level.WARN,
                "the time in the file is 60 s ahead of this machine's clock: the clock was ahead earlier, or is behind now",
                "check `date`; if it is right, do nothing: hookline catches up in ten times that time, "
                "and until then retries take up to a ninth longer",
            ),
        ),
    ],
)
def test_what_is_wrong_with_a_database_is_named(changes, wall, expected):
    facts = Examination(**{each: getattr(HEALTHY, each) for each in HEALTHY.__struct_fields__} | changes)
    assert [each for each in judge(facts, wall=wall) if each.level is not Level.OK] == [expected]


@pytest.mark.parametrize(("took", "level"), [(0.0, "warn"), (0.9, "warn"), (1.1, "ok"), (9.0, "ok")])
def test_the_time_that_an_examination_took_is_no_difference_of_clocks(took, level):
    found = {each.check: each.level for each in judge(HEALTHY, wall=NOW - 3, took=took)}
    assert found["clock"] == level


def test_a_file_that_nothing_was_written_to_for_long_says_nothing_about_the_clock():
    file = Examination(server="SQLite 3.40.0", now=NOW - 86_400, settings={}, unsafe=None, schema=None)
    assert {each.check: each.level for each in judge(file, wall=NOW)}["clock"] is Level.OK


@pytest.mark.parametrize(
    ("networks", "level"),
    [
        ([], "ok"),
        (["10.0.0.0/8", "fd12::/16"], "ok"),
        (["0.0.0.0/0"], "warn"),
        (["169.254.0.0/16"], "warn"),
        (["10.0.0.0/8", "::/0"], "warn"),
        (["fd00::/8"], "warn"),
    ],
)
def test_networks_that_open_more_than_was_meant_are_named(networks, level):
    (finding,) = check_networks(tuple(map(ip_network, networks)))
    assert finding.level == level


def test_too_few_open_files_are_named():
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert [each.level for each in check_open_files(1)] == ["ok"]
    assert [each.level for each in check_open_files(limit)] == ["warn"]


# --- in a folder ---


def test_an_empty_folder_is_fine_and_the_next_steps_are_said(tmp_path):
    code, found = examined(tmp_path)
    assert code == 0
    assert found["database"][0] == "warn"
    assert found["database"][2] == "`hookline serve` or `hookline migrate` creates it"
    assert (found["server"][0], "hookline serve" in (found["server"][2] or "")) == ("warn", True)
    assert {found[check][0] for check in ("configuration", "allow_networks", "disk", "port")} == {"ok"}
    assert list(tmp_path.iterdir()) == []  # the doctor changes nothing


def test_a_migrated_file_is_fine(tmp_path):
    assert run("migrate", cwd=tmp_path).returncode == 0
    (tmp_path / "hookline.db").chmod(0o600)
    code, found = examined(tmp_path)
    assert (code, found["schema"][0], found["clock"][0]) == (0, "ok", "ok")
    assert "not in use by a server" in found["database"][1]
    assert "permissions" not in found


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:///missing/x.db", "no directory"),
        ("sqlite:///noise.db", "cannot use the database"),
        ("sqlite:///folder", "is a directory"),
        ("postgresql://me:canary@127.0.0.1:1/x", "cannot be reached"),
    ],
)
def test_a_database_that_cannot_be_used_is_bad(tmp_path, url, words):
    (tmp_path / "noise.db").write_bytes(os.urandom(8_192))
    (tmp_path / "folder").mkdir()
    code, found = examined(tmp_path, "--database", url)
    assert (code, found["database"][0]) == (1, "bad")
    assert words in found["database"][1]
    assert "canary" not in str(found)


def test_a_bad_setting_is_the_first_thing_to_mend(tmp_path):
    code, found = examined(tmp_path, env={"HOOKLINE_POLL_S": "never"})
    assert (code, list(found)) == (1, ["configuration"])
    assert "HOOKLINE_POLL_S" in found["configuration"][1]


def test_secrets_that_are_not_sealed_are_named(tmp_path):
    level, _, step = examined(tmp_path)[1]["secret_key"]
    assert (level, "HOOKLINE_SECRET_KEY" in (step or "")) == ("warn", True)
    assert examined(tmp_path, env={"HOOKLINE_SECRET_KEY": "k" * 32})[1]["secret_key"][0] == "ok"


def test_sealed_secrets_without_their_key_are_bad(tmp_path, database):
    right, other = "r" * 32, "o" * 32
    on = ("--database", database)
    with ServerProcess("--dev", *on, cwd=tmp_path) as server:
        create_endpoint(server, "https://hooks.example.com/")
        assert server.stop() == 0
    level, detail, step = examined(tmp_path, *on, env={"HOOKLINE_SECRET_KEY": right})[1]["secret_key"]
    assert (level, detail) == (
        "warn",
        "the secrets of 1 endpoint are still stored in plain text",
    )
    assert step == "run `hookline secrets seal` to encrypt them"
    sealed = run("secrets", "seal", *on, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": right})
    assert sealed.returncode == 0, sealed.stderr

    code, found = examined(tmp_path, *on)
    level, detail, step = found["secret_key"]
    assert (code, level, "HOOKLINE_SECRET_KEY is not set" in detail) == (1, "bad", True)
    assert "the key that encrypted them" in (step or "")
    code, found = examined(tmp_path, *on, env={"HOOKLINE_SECRET_KEY": other})
    level, detail, step = found["secret_key"]
    assert (code, level, "is not the key" in detail) == (1, "bad", True)
    assert "separated by a comma" in (step or "")
    assert other not in str(found)
    for keys in (right, f"{other},{right}"):
        code, found = examined(tmp_path, *on, env={"HOOKLINE_SECRET_KEY": keys})
        assert (code, found["secret_key"][0]) == (0, "ok")


def test_a_file_with_secrets_that_others_may_read_is_named(tmp_path):
    file = tmp_path / "hookline.toml"
    file.write_text(f'api_key = "{KEY}"\n')
    file.chmod(0o644)
    assert examined(tmp_path)[1]["hookline.toml"] == (
        "warn",
        "it contains secrets, and other users may read it (644)",
        "chmod 600 hookline.toml",
    )
    file.chmod(0o600)
    assert examined(tmp_path)[1]["hookline.toml"][0] == "ok"


# --- servers ---


def test_a_running_server_and_its_key_are_checked(tmp_path):
    with ServerProcess(cwd=tmp_path, env={"HOOKLINE_API_KEY": KEY}) as server:
        where = {"HOOKLINE_URL": server.url, "HOOKLINE_PORT": str(server.port)}
        arguments = ("--port", str(server.port))

        def checked(code: int, key: Mapping[str, str]) -> Findings:
            """What is found when it ends so: at a busy moment the server is not ready, or its commit takes long."""

            def look() -> Findings | None:
                ended, found = examined(tmp_path, *arguments, env={**where, **key})
                return found if ended == code and "key" in found else None

            return eventually(look)

        found = checked(0, {"HOOKLINE_API_KEY": KEY})
        assert (found["server"][0], found["key"][0]) == ("ok", "ok")
        assert f"served by process {server.process.pid}" in found["database"][1]
        assert "port" not in found
        for key in ({}, {"HOOKLINE_API_KEY": "hlk_wrong"}):
            found = checked(1, key)
            assert found["key"][0] == "bad"
            assert "HOOKLINE_API_KEY" in (found["key"][2] or "")
        assert server.stop() == 0


def test_endpoints_that_these_settings_would_not_send_to_are_named(tmp_path, database):
    with ServerProcess("--dev", "--database", database, cwd=tmp_path) as server:
        for host in ("127.0.0.1", "10.1.2.3", "localhost", "[::1]", "93.184.216.34", "example.com"):
            create_endpoint(server, f"http://{host}:9000/canary")
    code, found = examined(tmp_path, "--database", database)
    level, detail, step = found["endpoints"]
    assert (code, level) == (0, "warn")
    assert re.findall(r"ep_\w{26} at (\S+?),? ", detail) != []
    assert " and 1 more, and every attempt would fail" in detail
    assert step == (
        "set HOOKLINE_ALLOW_NETWORKS and HOOKLINE_DENY_NETWORKS to the same values for every hookline process, or disable these endpoints"
    )
    assert "canary" not in detail
    local = {"HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8,10.0.0.0/8"}
    level, detail, _ = examined(tmp_path, "--database", database, env=local)[1]["endpoints"]
    assert (level, re.sub(r"ep_\w{26}", "ep_…", detail)) == (
        "warn",
        "a process with these settings would refuse to send to ep_… at ::1, and every attempt would fail",
    )
    level, detail, _ = examined(tmp_path, "--database", database, env={"HOOKLINE_DEV": "true"})[1][
        "endpoints"
    ]
    assert (level, detail) == ("ok", "the URLs of all enabled endpoints are allowed (6)")


def test_deliveries_that_nobody_takes_are_named(tmp_path, database):
    on = ("--database", database)
    with ServerProcess("--dev", "--no-worker", *on, cwd=tmp_path) as server:
        create_endpoint(server, "https://hooks.example.com/")  # no process sends to it
        for n in (1, 2):
            body = {"type": "a", "payload": n}
            assert httpx.post(f"{server.url}/v1/events", json=body, trust_env=False, timeout=30).is_success
        assert examined(tmp_path, *on)[1]["deliveries"][0] == "ok"  # not for long yet
        make_due_earlier(database, tmp_path)
        code, found = examined(tmp_path, *on)
        level, detail, step = found["deliveries"]
        assert (code, level) == (1, "bad")
        assert detail.startswith("2 deliveries are due, the first since 20")
        assert detail.endswith("and no running process delivers")
        worker = "`hookline worker`" if database.startswith("postgresql") else "without --no-worker"
        assert worker in (step or "")
        assert server.stop() == 0
    assert examined(tmp_path, *on)[1]["deliveries"][0] == "bad"  # with nobody there at all


@pytest.mark.parametrize(
    ("kind", "silent", "since", "level"),
    [
        ("worker", 1, 3_600, "ok"),
        ("serve", 1, 3_600, "ok"),
        ("api", 1, 3_600, "bad"),
        ("api", 1, 30, "ok"),
        ("worker", 60, 3_600, "bad"),
    ],
)
def test_who_lives_and_delivers_is_told_by_kind_and_heartbeat(kind, silent, since, level):
    worker = WorkerRow(
        id=WorkerId(bytes(16)),
        kind=kind,
        host="here",
        pid=1,
        version="1",
        started_at=NOW - 7_200,
        seen_at=NOW - silent,
    )
    facts = msgspec.structs.replace(
        HEALTHY, workers=(worker,), waiting=Waiting(deliveries=1, since=NOW - since)
    )
    (finding,) = check_delivering(facts, wall=NOW + 500, heartbeat=2.0)
    assert finding.level == level


def test_a_stranger_on_the_port_is_told_apart(tmp_path):
    with receiving() as stranger:
        code, found = examined(
            tmp_path, "--port", str(stranger.server_port), env={"HOOKLINE_URL": stranger.url}
        )
    assert (code, found["server"][0], found["port"][0]) == (1, "bad", "bad")
    assert "is not hookline" in found["server"][1]
    assert "Address already in use" in found["port"][1]


def test_postgresql_is_examined(postgres_url, tmp_path):
    code, found = examined(tmp_path, "--database", postgres_url)
    assert (code, found["database"][0], found["schema"][0], found["clock"][0]) == (0, "ok", "ok", "ok")
    assert "synchronous_commit=on" in found["durability"][1]
    assert found["connections"][:2] == ("ok", "197 allowed; one hookline process needs up to 17")
    assert "rights" not in found


def test_what_is_wrong_with_a_postgresql_is_named(postgres_server, tmp_path):
    with postgres_server.fresh_database() as url:
        with psycopg.connect(url, autocommit=True) as session:
            (name,) = session.execute("SELECT current_database()").fetchone()
            session.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
            session.execute("DELETE FROM hookline.schema_migrations WHERE number = 2")
            session.execute("CREATE ROLE looker LOGIN")
            session.execute("GRANT USAGE ON SCHEMA hookline TO looker")
            session.execute("GRANT SELECT ON ALL TABLES IN SCHEMA hookline TO looker")
        try:
            code, found = examined(tmp_path, "--database", url.replace("postgres@", "looker@"))
        finally:
            with psycopg.connect(url, autocommit=True) as session:
                session.execute("DROP OWNED BY looker")
                session.execute("DROP ROLE looker")
    assert code == 1
    assert (found["durability"][0], found["schema"][0], found["rights"][0]) == ("bad", "bad", "bad")
    assert "synchronous_commit=off" in found["durability"][1]
    assert found["schema"][2] == "run `hookline migrate`"
    assert "the database user lacks DELETE on accounts, INSERT on accounts" in found["rights"][1]


def test_a_database_that_is_not_there_is_bad(postgres_server, tmp_path):
    code, found = examined(tmp_path, "--database", postgres_server.url("nowhere"))
    assert (code, found["database"][0]) == (1, "bad")
    assert "create the database" in found["database"][1]


def test_a_person_reads_one_line_for_each_check(tmp_path):
    env = {"HOOKLINE_URL": NOBODY}
    plain = run("doctor", "--port", "0", cwd=tmp_path, env=env)
    assert plain.stdout.splitlines()[0] == "ok    configuration: read from --port, HOOKLINE_URL"
    assert "\x1b" not in plain.stdout
    with Terminal("doctor", "--port", "0", cwd=tmp_path, env=env) as terminal:
        assert terminal.end() == 0
        assert "\x1b[32mok  \x1b[0m  configuration" in terminal.seen


def test_the_connections_that_one_process_needs_are_counted_right():
    store = PostgresStore("postgresql://nobody@127.0.0.1/x")
    assert sum(pool._size for pool in store._pools) + 1 == MOST_SESSIONS


def test_an_endpoint_that_todays_rules_would_refuse_is_named_with_its_field(tmp_path, database):
    where = ("--database", database)
    planted_in = f"sqlite:///{tmp_path}/x.db" if database.startswith("sqlite") else database
    with ServerProcess("--dev", *where, cwd=tmp_path) as server:
        create_endpoint(server, "http://127.0.0.1:8999/")
        [made] = httpx.get(f"{server.url}/v1/endpoints", trust_env=False, timeout=30).json()["data"]
        assert server.stop() == 0
    plant(planted_in, read("endpoint", made["id"]), "headers", '{"a b": "c"}')
    code, found = examined(tmp_path, *where, env={"HOOKLINE_DEV": "true"})
    level, detail, _ = found["endpoints"]
    assert (code, level) == (1, "bad")
    assert detail.startswith(f"{made['id']}: headers is not valid (")
    plant(planted_in, read("endpoint", made["id"]), "url", "http://[::1")
    _, found = examined(tmp_path, *where, env={"HOOKLINE_DEV": "true"})
    assert found["endpoints"][1].startswith(f"{made['id']}: url is not valid (")
