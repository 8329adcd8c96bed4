"""Each event is processed once, whatever fails and whatever arrives at the same time."""

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from hookline.receiver import AsyncProcessOnce, NoTransaction, ProcessOnce, UnknownConnection
from hookline.receiver.sql import POSTGRES, SQLITE
from receiver_kit.applications import EFFECTS, ON_POSTGRES, ON_SQLITE, Application

WAIT_S = 30.0


@pytest.fixture(params=[*ON_SQLITE, *(f"{name} (postgres)" for name in ON_POSTGRES)])
def application(request: pytest.FixtureRequest, tmp_path: Path) -> Application:
    """An application that is set up, with nothing processed yet."""
    if request.param in ON_SQLITE:
        made = ON_SQLITE[request.param](tmp_path / "application.db")
    else:
        url = request.getfixturevalue("postgres_url")
        made = ON_POSTGRES[request.param.removesuffix(" (postgres)")](url)
    made.setup()
    return made


def effects(application: Application) -> list[Any]:
    return application.run(EFFECTS)


def marks(application: Application) -> list[Any]:
    return application.run("SELECT event_id FROM hookline_processed ORDER BY event_id")


def test_an_event_is_processed_the_first_time_and_not_again(application):
    assert application.process("evt_1") is True
    assert application.process("evt_1") is False
    assert application.process("evt_2") is True
    assert effects(application) == ["evt_1", "evt_2"]


class Broken(Exception):
    pass


def test_a_handler_that_fails_leaves_no_mark(application):
    def fail() -> None:
        raise Broken

    with pytest.raises(Broken):
        application.process("evt_1", fail)
    assert (effects(application), marks(application)) == ([], [])
    assert application.process("evt_1") is True
    assert effects(application) == ["evt_1"]


def test_consumers_do_not_take_each_others_events(application):
    assert application.process("evt_1", consumer="billing") is True
    assert application.process("evt_1", consumer="mail") is True
    assert application.process("evt_1", consumer="mail") is False


def test_of_many_deliveries_at_once_one_is_processed(application):
    together = threading.Barrier(8)

    def deliver(_: int) -> bool:
        together.wait(WAIT_S)
        return application.process("evt_1")

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(deliver, range(8))) == [False] * 7 + [True]
    assert effects(application) == ["evt_1"]


@pytest.mark.parametrize("fate", ["kept", "rolled back"])
def test_a_delivery_waits_for_what_becomes_of_the_same_event(application, fate):
    inside, other_began, go_on = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        assert go_on.wait(WAIT_S)
        if fate == "rolled back":
            raise Broken

    def second() -> bool:
        other_began.set()
        return application.process("evt_1")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(application.process, "evt_1", hold)
        assert inside.wait(WAIT_S)
        other = threads.submit(second)
        assert other_began.wait(WAIT_S)
        go_on.set()
        assert (first.exception(WAIT_S) is None) is (fate == "kept")
        assert other.result(WAIT_S) is (fate == "rolled back")
    assert effects(application) == ["evt_1"]


def test_setting_up_again_changes_nothing(application):
    application.process("evt_1")
    application.setup()
    assert marks(application) == ["evt_1"]


def test_processes_that_start_together_may_all_set_up(application):
    application.run("DROP TABLE hookline_processed")
    together = threading.Barrier(6)

    def setup(_: int) -> None:
        together.wait(WAIT_S)
        application.setup()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(setup, range(6)))
    assert application.process("evt_1") is True


def test_old_marks_are_pruned_oldest_first_and_a_few_at_a_time(application):
    for number, age in enumerate([0, 3_000, 5_000, 7_000]):
        application.process(f"evt_{number}")
        application.run(application.age.format(seconds=age, id=f"evt_{number}"))
    assert application.prune(older_than=4_000, limit=1) == 1
    assert marks(application) == ["evt_0", "evt_1", "evt_2"]
    assert application.prune(older_than=4_000) == 1
    assert application.prune(older_than=4_000) == 0
    assert marks(application) == ["evt_0", "evt_1"]
    assert application.prune() == 0
    assert application.process("evt_3") is True


# --- connections on which a mark would be kept at once ---


def sqlite_connection(tmp_path: Path, **options: Any) -> sqlite3.Connection:
    connection = sqlite3.connect(tmp_path / "application.db", **options)
    ProcessOnce().setup(connection)
    connection.commit()
    return connection


def test_sqlite3_in_autocommit_needs_a_transaction(tmp_path):
    connection = sqlite_connection(tmp_path, isolation_level=None)
    with pytest.raises(NoTransaction):
        ProcessOnce().mark(connection, "evt_1")
    connection.execute("BEGIN IMMEDIATE")
    assert ProcessOnce().mark(connection, "evt_1") is True
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM hookline_processed").fetchone() == (0,)
    connection.close()


if hasattr(sqlite3.Connection, "autocommit"):  # since Python 3.12

    @pytest.mark.parametrize("autocommit", [True, False])
    def test_sqlite3_with_an_explicit_autocommit(tmp_path, autocommit):
        connection = sqlite_connection(tmp_path, autocommit=False)
        connection.autocommit = autocommit
        if autocommit:
            with pytest.raises(NoTransaction):
                ProcessOnce().mark(connection, "evt_1")
        else:
            assert ProcessOnce().mark(connection, "evt_1") is True
            connection.rollback()
            assert ProcessOnce().mark(connection, "evt_1") is True
        connection.close()


def test_psycopg_in_autocommit_needs_a_transaction_postgres(postgres_url):
    once = ProcessOnce()
    with psycopg.connect(postgres_url, autocommit=True, row_factory=dict_row) as connection:
        once.setup(connection)
        with pytest.raises(NoTransaction):
            once.mark(connection, "evt_1")
        with connection.transaction(force_rollback=True):
            assert once.mark(connection, "evt_1") is True
            assert once.mark(connection, "evt_1") is False
        with connection.transaction():
            assert once.mark(connection, "evt_1") is True


@pytest.mark.anyio
async def test_asyncpg_needs_a_transaction_postgres(postgres_url):
    once = AsyncProcessOnce()
    connection = await asyncpg.connect(postgres_url)
    await once.setup(connection)
    with pytest.raises(NoTransaction):
        await once.mark(connection, "evt_1")
    assert await connection.fetchval("SELECT count(*) FROM hookline_processed") == 0
    await connection.close()


@pytest.mark.anyio
async def test_psycopg_asynchronous_in_autocommit_needs_a_transaction_postgres(postgres_url):
    once = AsyncProcessOnce()
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection:
        await once.setup(connection)
        with pytest.raises(NoTransaction):
            await once.mark(connection, "evt_1")
        async with connection.transaction():
            assert await once.mark(connection, "evt_1") is True


def test_django_in_autocommit_needs_a_transaction(tmp_path):
    from django.db import connections

    application = ON_SQLITE["Django on SQLite"](tmp_path / "application.db")
    application.setup()
    connection = connections[application._alias]
    with pytest.raises(NoTransaction):
        ProcessOnce().mark(connection, "evt_1")
    connection.close()


def test_sqlalchemy_in_autocommit_needs_a_transaction(tmp_path):
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/a.db", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        ProcessOnce().setup(connection)
        with pytest.raises(NoTransaction):
            ProcessOnce().mark(connection, "evt_1")
    with engine.connect() as connection:
        with pytest.raises(NoTransaction):
            ProcessOnce().mark(connection, "evt_1")
        assert not connection.in_transaction()  # as it was
    engine.dispose()


@pytest.mark.anyio
async def test_sqlalchemy_asynchronous_in_autocommit_needs_a_transaction_postgres(postgres_url):
    url = sqlalchemy.make_url(postgres_url).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    async with engine.connect() as connection:
        await AsyncProcessOnce().setup(connection)
        with pytest.raises(NoTransaction):
            await AsyncProcessOnce().mark(connection, "evt_1")


def test_sqlalchemy_may_send_begin_immediate_itself(tmp_path):
    """The recipe of its documentation: sqlite3 without transactions of its own, BEGIN in an event."""
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/a.db", connect_args={"isolation_level": None})

    @sqlalchemy.event.listens_for(engine, "begin")
    def _begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with engine.begin() as connection:
        ProcessOnce().setup(connection)
    with engine.connect() as connection:
        assert ProcessOnce().mark(connection, "evt_1") is True
        connection.rollback()
        assert ProcessOnce().mark(connection, "evt_1") is True
    engine.dispose()


def test_another_database_of_sqlalchemy_is_refused():
    class Elsewhere(sqlalchemy.Connection):
        def __init__(self) -> None: ...

        dialect = type("D", (), {"name": "mysql", "driver": "pymysql"})

    with pytest.raises(UnknownConnection, match="SQLAlchemy"):
        ProcessOnce().mark(Elsewhere(), "evt_1")


def test_a_connection_class_of_the_applications_own_is_recognised(tmp_path):
    class Mine(sqlite3.Connection):
        pass

    connection = sqlite_connection(tmp_path, factory=Mine)
    assert ProcessOnce().mark(connection, "evt_1") is True
    connection.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "verb", [ProcessOnce().setup, lambda c: ProcessOnce().mark(c, "evt_1"), ProcessOnce().prune]
)
async def test_what_is_no_known_connection_is_refused_by_its_class(verb: Callable[[Any], Any]):
    with pytest.raises(UnknownConnection, match=r"builtins\.object"):
        verb(object())


@pytest.mark.anyio
async def test_each_kind_of_connection_is_sent_to_its_own_class(tmp_path, postgres_url):
    connection = sqlite_connection(tmp_path)
    with pytest.raises(UnknownConnection, match=r"sqlite3.Connection.* ProcessOnce"):
        await AsyncProcessOnce().mark(connection, "evt_1")
    connection.close()
    asynchronous = await asyncpg.connect(postgres_url)
    with pytest.raises(UnknownConnection, match=r"asyncpg.* AsyncProcessOnce"):
        ProcessOnce().mark(asynchronous, "evt_1")
    await asynchronous.close()


def test_no_statement_holds_a_sign_that_a_driver_would_take_for_a_value():
    for dialect in (SQLITE, POSTGRES):
        for statement in (*dialect.setup, dialect.mark, dialect.prune):
            assert "%" not in statement
        assert not any("?" in statement for statement in dialect.setup)
