"""`hookline doctor` says of each outbox whether it can be read, and what to do if not."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from hookline.cli.doctor.findings import Level
from hookline.cli.doctor.outboxes import check_outboxes, judge_known, judge_outbox
from hookline.outbox import ddl
from hookline.store.contract.doctor import Examination, OutboxExamination
from postgres_server import PostgresServer

WALL = 1_800_000_000.0


def found(*sources: str, own: str = "sqlite:///nowhere.db", examined: Examination | None = None):
    return list(check_outboxes(sources, own, examined, wall=WALL))


def an_examination(**facts):
    return Examination(server="SQLite 3.40.1", now=0.0, settings={}, unsafe=None, schema=None, **facts)


def made(path: Path, script: str) -> str:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return f"sqlite:///{path}"


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


def do(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as session:
        for each in statements:
            session.execute(each)  # type: ignore[call-overload]  # a script that the test has written


def test_a_file_with_the_table_is_fine(tmp_path):
    [each] = found(made(tmp_path / "shop.db", ddl("sqlite")))
    assert (each.level, "0 rows" in each.detail) == (Level.OK, True)


def test_rows_that_wait_for_long_are_told(tmp_path):
    url = made(
        tmp_path / "shop.db",
        ddl("sqlite")
        + "INSERT INTO hookline_outbox (id, at, type, payload) "
        + f"VALUES (zeroblob(16), {WALL - 900}, 'a', x'31');",
    )
    [each] = found(url)
    assert (each.level, "the oldest for 900 s" in each.detail) == (Level.WARN, True)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("CREATE TABLE orders (n);", "there is no outbox table"),
        (
            "CREATE TABLE hookline_outbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, id);",
            "lacks the columns at,",
        ),
        (ddl("sqlite").replace(" AUTOINCREMENT", ""), "no AUTOINCREMENT"),
    ],
)
def test_a_file_with_another_table_is_bad_and_the_statements_are_named(tmp_path, script, words):
    [each] = found(made(tmp_path / "shop.db", script))
    assert (each.level, words in each.detail) == (Level.BAD, True), each
    assert 'hookline.outbox.ddl("sqlite")' in (each.step or "")


def test_a_file_that_is_not_there_or_is_no_database_is_bad(tmp_path):
    (tmp_path / "text.db").write_text("not a database " * 100)
    absent, text = found(f"sqlite:///{tmp_path}/no.db", f"sqlite:///{tmp_path}/text.db")
    assert (absent.level, "there is no file" in absent.detail) == (Level.BAD, True)
    assert text.level is Level.BAD


def test_a_database_with_the_table_and_the_rights_is_fine(url):
    do(url, ddl("postgresql"))
    [each] = found(url)
    assert (each.level, each.detail.endswith("0 rows")) == (Level.OK, True), each
    assert "postgres:" not in each.detail


def test_what_a_database_lacks_is_named(url):
    [each] = found(url)
    assert (each.level, "there is no outbox table" in each.detail) == (Level.BAD, True)
    do(url, ddl("postgresql"), "ALTER TABLE hookline.outbox DROP hops")
    [each] = found(url)
    assert (each.level, "lacks the columns hops" in each.detail) == (Level.BAD, True)
    do(url, (each.step or "").removeprefix("run on it: "))
    [each] = found(url)
    assert each.level is Level.OK, "the step works"


def test_a_column_that_a_file_lacks_is_added_by_the_statement_that_is_shown(tmp_path):
    script = "".join(
        line for line in ddl("sqlite").splitlines(True) if line.split()[0] not in ("hops", "account")
    )
    url = made(tmp_path / "shop.db", script.partition("CREATE INDEX")[0])
    [each] = found(url)
    made(tmp_path / "shop.db", (each.step or "").removeprefix("run on it: "))
    [each] = found(url)
    assert each.level is Level.OK, each


@pytest.mark.parametrize(
    ("refused", "words"), [(1, "1 row was refused and is"), (12, "12 rows were refused")]
)
def test_refused_rows_are_told_with_the_command_that_lists_them(refused, words):
    [each] = judge_known(an_examination(refused=refused), configured=[])
    assert (each.level, words in each.detail, each.step) == (
        Level.WARN,
        True,
        "`hookline outbox list` says why",
    )


def test_an_outbox_that_is_known_and_not_configured_is_told():
    examined = an_examination(sources=("own", "shop", "gone"))
    [each] = judge_known(examined, configured=["shop"])
    assert (each.level, each.detail[:5], "outbox forget gone" in (each.step or "")) == (
        Level.WARN,
        "gone:",
        True,
    )


@pytest.mark.parametrize(
    ("granted", "lacking"),
    [
        ([], "USAGE on SCHEMA hookline"),
        (["GRANT USAGE ON SCHEMA hookline TO mover"], "SELECT on hookline.outbox, DELETE on hookline.outbox"),
        (
            ["GRANT USAGE ON SCHEMA hookline TO mover", "GRANT SELECT ON hookline.outbox TO mover"],
            "DELETE on hookline.outbox",
        ),
    ],
)
def test_a_right_that_the_mover_lacks_is_named(url, granted, lacking):
    do(url, ddl("postgresql"), "DROP ROLE IF EXISTS mover", "CREATE ROLE mover LOGIN PASSWORD 'm'", *granted)
    try:
        head, _, rest = url.partition("://")
        [each] = found(f"{head}://mover:m@{rest.rpartition('@')[2]}")
        assert (each.level, each.detail.endswith(f"lacks {lacking}")) == (Level.BAD, True), each
    finally:
        do(url, "DROP OWNED BY mover", "DROP ROLE mover")


def test_a_server_that_is_away_is_bad():
    [each] = found("postgresql://shop:secret@127.0.0.1:1/shop")
    assert (each.level, "cannot be reached" in each.detail, "secret" in str(each)) == (Level.BAD, True, False)


def test_an_application_that_writes_into_the_file_that_hookline_serves_is_warned_of(tmp_path):
    own = made(tmp_path / "hooks.db", ddl("sqlite"))
    assert found(own=own, examined=an_examination()) == []
    with closing(sqlite3.connect(tmp_path / "hooks.db")) as connection, connection:
        connection.execute(
            "INSERT INTO hookline_outbox (id, type, payload) VALUES (zeroblob(16), 'a', x'31')"
        )
        connection.execute("DELETE FROM hookline_outbox")
    [each] = found(own=own, examined=an_examination())
    assert (each.level, "the file that hookline serves" in each.detail) == (Level.WARN, True)


def test_an_old_server_is_bad():
    old = OutboxExamination(server="PostgreSQL 12.1", is_old=True)
    [first, *_] = judge_outbox("shop", old, is_file=False)
    assert (first.level, "too old" in first.detail) == (Level.BAD, True)
