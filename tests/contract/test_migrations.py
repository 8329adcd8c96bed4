"""Every database gets exactly the schema that this code knows, or a clear refusal."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from hookline.errors import SchemaMissing, SchemaOutgrown, StoreRefused
from hookline.store.migrations import Applied, Migration, outstanding, read_migrations, refuse_unless_current
from hookline.store.sqlite.driver.connection import connect
from hookline.store.sqlite.migrations import schema

FIRST = Migration(1, "0001_tables", "sum 1", "")
SECOND = Migration(2, "0002_more", "sum 2", "")
KNOWN = (FIRST, SECOND)
PACKAGES = ["hookline.store.sqlite.migrations", "hookline.store.postgres.migrations"]
FROM_THE_FUTURE = (
    "INSERT INTO schema_migrations (number, name, checksum, applied_at) "
    "SELECT 9999, '9999_future', 'x', applied_at FROM schema_migrations WHERE number = 1"
)


def record_of(migration):
    return Applied(migration.number, migration.name, migration.checksum)


def test_a_new_database_needs_everything():
    assert outstanding(KNOWN, [], serves=None) == KNOWN


def test_what_was_applied_is_not_applied_again():
    assert outstanding(KNOWN, [record_of(FIRST)], serves=1) == (SECOND,)
    assert outstanding(KNOWN, [record_of(FIRST), record_of(SECOND)], serves=2) == ()


@pytest.mark.parametrize("serves", [None, 2], ids=["does not say", "serves later ones"])
def test_a_schema_from_the_future_that_does_not_serve_this_code_is_refused(serves):
    with pytest.raises(SchemaOutgrown, match=r"0002_more.*upgrade hookline"):
        outstanding([FIRST], [record_of(FIRST), record_of(SECOND)], serves=serves)


def test_a_schema_from_the_future_that_serves_this_code_lacks_nothing():
    assert outstanding([FIRST], [record_of(FIRST), record_of(SECOND)], serves=1) == ()
    refuse_unless_current([FIRST], [record_of(FIRST), record_of(SECOND)], serves=1)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_migration_from_the_ninth_on_says_whom_it_serves(package):
    """A file that does not say so would stop every running process: too much to happen by an oversight."""
    for migration in read_migrations(package)[8:]:
        assert "-- serves: " in migration.sql, migration.name
        assert 8 <= migration.serves <= migration.number, migration.name


def test_an_edited_migration_is_refused():
    with pytest.raises(StoreRefused, match="0001_tables was edited"):
        outstanding(KNOWN, [Applied(1, "0001_tables", "another sum")], serves=2)


def test_a_database_that_is_behind_is_sent_to_migrate():
    with pytest.raises(StoreRefused, match=r"0002_more.*run `hookline migrate`"):
        refuse_unless_current(KNOWN, [record_of(FIRST)], serves=1)
    with pytest.raises(SchemaMissing, match="run `hookline migrate`"):
        refuse_unless_current(KNOWN, [], serves=None)
    refuse_unless_current(KNOWN, [record_of(FIRST), record_of(SECOND)], serves=2)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_shipped_migrations_are_numbered_from_one(package):
    migrations = read_migrations(package)
    assert [migration.number for migration in migrations] == list(range(1, len(migrations) + 1))
    assert migrations


def test_a_gap_in_the_numbers_is_a_mistake(tmp_path, monkeypatch):
    package = tmp_path / "gap"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "0002_b.sql").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="not numbered"):
        read_migrations("gap")


def test_line_endings_do_not_count_as_an_edit(tmp_path, monkeypatch):
    sums = set()
    for name, text in (("unix", b"SELECT 1;\nSELECT 2;\n"), ("windows", b"SELECT 1;\r\nSELECT 2;\r\n")):
        package = tmp_path / f"endings_{name}"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "0001_a.sql").write_bytes(text)
        monkeypatch.syspath_prepend(tmp_path)
        sums |= {migration.checksum for migration in read_migrations(package.name)}
    assert len(sums) == 1


def test_a_migration_that_fails_leaves_nothing_of_itself(tmp_path):
    broken = Migration(1, "0001_broken", "sum", "CREATE TABLE a (b);\nINSERT INTO nowhere VALUES (1);\n")
    with closing(connect(str(tmp_path / "x.db"), create=True)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            schema.migrate(connection, at=0.0, migrations=[broken])
        assert schema.applied(connection) == []
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


MIGRATE = "; import asyncio; print('ready', flush=True); input(); print(asyncio.run(store.migrate()))"


def test_eight_processes_that_migrate_at_once_apply_everything_once(bare):
    command = [sys.executable, "-c", bare.code + MIGRATE]
    processes = [
        subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(8)
    ]
    for process in processes:  # all of them have started before any of them begins
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, answers
    applied = [name for out, _ in answers for name in eval(out)]  # noqa: S307 - a list we printed
    (rows,) = [bare.execute("SELECT name FROM schema_migrations ORDER BY number")]
    assert sorted(applied) == [row[0] for row in rows]
    assert applied


@pytest.mark.anyio
async def test_a_migrated_database_opens_and_has_nothing_left_to_do(bare):
    store = bare.new_store()
    assert await store.migrate()
    assert await store.migrate() == []
    await store.open()
    await store.close()


@pytest.mark.anyio
async def test_a_database_without_a_schema_is_not_opened(bare):
    store = bare.new_store()
    with pytest.raises(SchemaMissing, match="run `hookline migrate`"):
        await store.open()
    await store.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (("UPDATE schema_migrations SET checksum = 'x' WHERE number = 1",), "was edited"),
        ((FROM_THE_FUTURE, "UPDATE schema_serves SET level = 9999"), "9999_future.*upgrade hookline"),
        ((FROM_THE_FUTURE, "DROP TABLE schema_serves"), "9999_future.*upgrade hookline"),
    ],
    ids=["edited", "later", "does not say"],
)
async def test_a_schema_that_this_code_does_not_know_is_neither_opened_nor_migrated(
    bare, statements, message
):
    store = bare.new_store()
    await store.migrate()
    for statement in statements:
        await asyncio.to_thread(bare.execute, statement)
    with pytest.raises(StoreRefused, match=message):
        await store.open()
    with pytest.raises(StoreRefused, match=message):
        await store.migrate()
    await store.close()


@pytest.mark.anyio
async def test_a_later_schema_that_still_serves_this_code_is_opened(bare):
    store = bare.new_store()
    await store.migrate()
    await asyncio.to_thread(bare.execute, FROM_THE_FUTURE)
    assert await store.migrate() == []
    assert await store.outstanding() == []
    await store.open()
    await store.pulse(seen=0)
    await store.close()


@pytest.mark.anyio
async def test_a_running_process_learns_from_its_pulse_that_the_schema_outgrew_it(bare):
    store = bare.new_store()
    await store.migrate()
    await store.open()
    await store.pulse(seen=0)
    await asyncio.to_thread(bare.execute, FROM_THE_FUTURE)
    await store.pulse(seen=0)
    await asyncio.to_thread(bare.execute, "UPDATE schema_serves SET level = 9999")
    with pytest.raises(SchemaOutgrown, match=r"9999_future.*upgrade hookline"):
        await store.pulse(seen=0)
    await store.close()
