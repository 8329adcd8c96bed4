"""A connection that would not carry an event is refused, and what the database refuses is told with the next step."""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from hookline.errors import Invalid
from hookline.outbox import (
    NotInTransaction,
    OutboxBusy,
    OutboxForbidden,
    OutboxMissing,
    TransactionFailed,
    apublish,
    publish,
)
from outbox.applications import (
    ON_POSTGRES,
    ON_SQLITE,
    Execute,
    Order,
    PsycopgPipeline,
    Publish,
    Refused,
    django_on_postgres,
    django_on_sqlite,
    spelled,
)
from outbox.database import ORDERS, Postgres, Sqlite, made_on_postgres

EVENT = Publish()
Attempt = Callable[[Any], None]

# In a pipeline the answer to the INSERT comes later: there the driver's own error ends the transaction.
AT_ONCE = [name for name in ON_POSTGRES if "pipeline" not in name]
on_postgres = pytest.mark.parametrize("name", AT_ONCE)
on_sqlite = pytest.mark.parametrize("name", ON_SQLITE)


# --- autocommit ---


def psycopg_in_autocommit(database: Postgres) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        publish(connection, "order.paid", {})


def psycopg_asynchronous_in_autocommit(database: Postgres) -> None:
    async def attempt() -> None:
        async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
            await apublish(connection, "order.paid", {})

    asyncio.run(attempt())


def psycopg_after_its_block(database: Postgres) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        with connection.transaction():
            pass
        publish(connection, "order.paid", {})


def psycopg_in_a_pipeline_in_autocommit(database: Postgres) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection, connection.pipeline():
        publish(connection, "order.paid", {})


def psycopg2_in_autocommit(database: Postgres) -> None:
    with closing(psycopg2.connect(database.url)) as connection:
        connection.autocommit = True
        publish(connection, "order.paid", {})


def asyncpg_without_a_block(database: Postgres) -> None:
    async def attempt() -> None:
        connection = await asyncpg.connect(database.url)
        try:
            await apublish(connection, "order.paid", {})
        finally:
            await connection.close()

    asyncio.run(attempt())


def asyncpg_of_a_pool_without_a_block(database: Postgres) -> None:
    async def attempt() -> None:
        async with asyncpg.create_pool(database.url, min_size=1) as pool, pool.acquire() as connection:
            await apublish(connection, "order.paid", {})

    asyncio.run(attempt())


@contextmanager
def engine_of(url: str, **options: Any) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(url, **options)
    try:
        yield engine
    finally:
        engine.dispose()


def sqlalchemy_with(driver: str) -> Attempt:
    def attempt(database: Any) -> None:
        with (
            engine_of(url_of(database, driver), isolation_level="AUTOCOMMIT") as engine,
            engine.connect() as connection,
        ):
            publish(connection, "order.paid", {})

    return attempt


def sqlalchemy_that_has_begun_with(driver: str) -> Attempt:
    def attempt(database: Any) -> None:
        with (
            engine_of(url_of(database, driver), isolation_level="AUTOCOMMIT") as engine,
            engine.begin() as connection,
        ):
            connection.execute(sqlalchemy.text("SELECT 1"))
            publish(connection, "order.paid", {})

    return attempt


def session_with(driver: str) -> Attempt:
    def attempt(database: Any) -> None:
        with (
            engine_of(url_of(database, driver), isolation_level="AUTOCOMMIT") as engine,
            Session(engine) as session,
        ):
            publish(session, "order.paid", {})

    return attempt


def async_session_with(driver: str) -> Attempt:
    def attempt(database: Any) -> None:
        async def whole() -> None:
            engine = create_async_engine(url_of(database, driver), isolation_level="AUTOCOMMIT")
            try:
                async with AsyncSession(engine) as session:
                    await apublish(session, "order.paid", {})
            finally:
                await engine.dispose()

        asyncio.run(whole())

    return attempt


def async_connection_with(driver: str) -> Attempt:
    def attempt(database: Any) -> None:
        async def whole() -> None:
            engine = create_async_engine(url_of(database, driver), isolation_level="AUTOCOMMIT")
            try:
                async with engine.connect() as connection:
                    await apublish(connection, "order.paid", {})
            finally:
                await engine.dispose()

        asyncio.run(whole())

    return attempt


def url_of(database: Any, driver: str) -> str:
    if isinstance(database, Sqlite):
        return f"sqlite+{driver}:///{database.path}"
    return spelled(database.url, driver)


def django_without_atomic(database: Any) -> None:
    made = (
        django_on_sqlite(database.path) if isinstance(database, Sqlite) else django_on_postgres(database.url)
    )
    with closing(made.connection) as connection:
        publish(connection, "order.paid", {})


def sqlite3_without_isolation(database: Sqlite) -> None:
    with closing(sqlite3.connect(database.path, isolation_level=None)) as connection:
        publish(connection, "order.paid", {})


class Modern(sqlite3.Connection):
    """As since Python 3.12 with `autocommit=True`, whatever `isolation_level` says."""

    autocommit = True


def sqlite3_in_autocommit(database: Sqlite) -> None:
    with closing(sqlite3.connect(database.path, factory=Modern)) as connection:
        publish(connection, "order.paid", {})


def aiosqlite_without_isolation(database: Sqlite) -> None:
    async def attempt() -> None:
        async with aiosqlite.connect(database.path, isolation_level=None) as connection:
            await apublish(connection, "order.paid", {})

    asyncio.run(attempt())


def aiosqlite_in_autocommit(database: Sqlite) -> None:
    async def attempt() -> None:
        async with aiosqlite.connect(database.path, factory=Modern) as connection:
            await apublish(connection, "order.paid", {})

    asyncio.run(attempt())


def sqlalchemy_on_sqlite3_in_autocommit(database: Sqlite) -> None:
    with (
        engine_of(f"sqlite:///{database.path}", connect_args={"factory": Modern}) as engine,
        engine.connect() as connection,
    ):
        publish(connection, "order.paid", {})


IN_AUTOCOMMIT_ON_POSTGRES: dict[str, tuple[Attempt, str]] = {
    "psycopg": (psycopg_in_autocommit, "with connection.transaction():"),
    "psycopg, asynchronous": (psycopg_asynchronous_in_autocommit, "async with"),
    "psycopg after its block": (psycopg_after_its_block, "with connection.transaction():"),
    "psycopg in a pipeline": (psycopg_in_a_pipeline_in_autocommit, "with connection.transaction():"),
    "psycopg2": (psycopg2_in_autocommit, "connection.autocommit = False"),
    "asyncpg": (asyncpg_without_a_block, "async with connection.transaction():"),
    "asyncpg's pool": (asyncpg_of_a_pool_without_a_block, "async with connection.transaction():"),
    "SQLAlchemy, psycopg": (sqlalchemy_with("psycopg"), "AUTOCOMMIT"),
    "SQLAlchemy that has begun, psycopg": (sqlalchemy_that_has_begun_with("psycopg"), "AUTOCOMMIT"),
    "SQLAlchemy, psycopg2": (sqlalchemy_with("psycopg2"), "AUTOCOMMIT"),
    "session, psycopg": (session_with("psycopg"), "AUTOCOMMIT"),
    "session, asyncpg": (async_session_with("asyncpg"), "AUTOCOMMIT"),
    "session, psycopg asynchronous": (async_session_with("psycopg"), "AUTOCOMMIT"),
    "SQLAlchemy, asyncpg": (async_connection_with("asyncpg"), "AUTOCOMMIT"),
    "Django": (django_without_atomic, "with transaction.atomic():"),
}
IN_AUTOCOMMIT_ON_SQLITE: dict[str, tuple[Attempt, str]] = {
    "sqlite3": (sqlite3_without_isolation, "BEGIN IMMEDIATE"),
    "sqlite3 of later Pythons": (sqlite3_in_autocommit, "BEGIN IMMEDIATE"),
    "aiosqlite": (aiosqlite_without_isolation, "BEGIN IMMEDIATE"),
    "aiosqlite of later Pythons": (aiosqlite_in_autocommit, "BEGIN IMMEDIATE"),
    "SQLAlchemy": (sqlalchemy_with("pysqlite"), "AUTOCOMMIT"),
    "SQLAlchemy on later Pythons": (sqlalchemy_on_sqlite3_in_autocommit, "AUTOCOMMIT"),
    "session": (session_with("pysqlite"), "AUTOCOMMIT"),
    "session, aiosqlite": (async_session_with("aiosqlite"), "AUTOCOMMIT"),
    "Django": (django_without_atomic, "with transaction.atomic():"),
}


@pytest.mark.parametrize("name", IN_AUTOCOMMIT_ON_POSTGRES)
def test_autocommit_is_refused_on_postgres(postgres, name):
    attempt, step = IN_AUTOCOMMIT_ON_POSTGRES[name]
    with pytest.raises(NotInTransaction, match=re.escape(step)):
        attempt(postgres)
    assert postgres.kept() == []


@pytest.mark.parametrize("name", IN_AUTOCOMMIT_ON_SQLITE)
def test_autocommit_is_refused_on_sqlite(sqlite, name):
    attempt, step = IN_AUTOCOMMIT_ON_SQLITE[name]
    with pytest.raises(NotInTransaction, match=re.escape(step)):
        attempt(sqlite)
    assert sqlite.kept() == []


def test_a_transaction_that_was_begun_by_hand_counts(postgres, sqlite):
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("BEGIN")
        publish(connection, "order.paid", {})
        connection.execute("COMMIT")
    with closing(psycopg2.connect(postgres.url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            publish(connection, "order.paid", {})
            cursor.execute("COMMIT")
    with closing(sqlite3.connect(sqlite.path, factory=Modern, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        publish(connection, "order.paid", {})
        connection.execute("COMMIT")
    assert (len(postgres.kept()), len(sqlite.kept())) == (2, 1)


def test_django_without_autocommit_is_in_a_transaction(sqlite):
    made = django_on_sqlite(sqlite.path)
    with closing(made.connection) as connection:
        transaction.set_autocommit(False, using=made.alias)
        publish(connection, "order.paid", {})
        transaction.rollback(using=made.alias)
        assert sqlite.kept() == []
        publish(connection, "order.paid", {})
        transaction.commit(using=made.alias)
    assert len(sqlite.kept()) == 1


def test_sqlalchemy_may_send_begin_immediate_itself(sqlite):
    """The recipe of SQLAlchemy's documentation: sqlite3 without transactions of its own, BEGIN in an event."""
    with engine_of(f"sqlite:///{sqlite.path}") as engine:

        @sqlalchemy.event.listens_for(engine, "connect")
        def _connected(driver: Any, _: Any) -> None:
            driver.isolation_level = None

        @sqlalchemy.event.listens_for(engine, "begin")
        def _begun(connection: Any) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

        with engine.connect() as connection:
            publish(connection, "order.paid", {})
            connection.rollback()
            assert sqlite.kept() == []
            publish(connection, "order.paid", {})
            connection.commit()
    assert len(sqlite.kept()) == 1


def test_a_connection_of_sqlalchemy_that_was_refused_is_as_it_was(postgres):
    with (
        engine_of(spelled(postgres.url, "psycopg"), isolation_level="AUTOCOMMIT") as engine,
        engine.connect() as connection,
    ):
        with pytest.raises(NotInTransaction):
            publish(connection, "order.paid", {})
        assert not connection.in_transaction()


# --- transactions that cannot commit ---


@on_postgres
def test_a_failed_transaction_is_told(postgres, name):
    application = ON_POSTGRES[name](postgres.url)
    with pytest.raises(TransactionFailed, match="Roll it back"):
        application.play(Order(1), Execute("SELECT 1 / 0", fails=True), EVENT)
    assert (postgres.orders(), postgres.kept()) == ([], [])


@on_postgres
def test_a_read_only_transaction_is_told(postgres, name):
    application = ON_POSTGRES[name](postgres.url)
    with pytest.raises(TransactionFailed, match="read-only"):
        application.play(Execute("SET TRANSACTION READ ONLY"), EVENT)


@on_sqlite
def test_a_file_that_is_only_read_is_told(sqlite, name):
    application = ON_SQLITE[name](sqlite.path)
    with pytest.raises(TransactionFailed, match="read-only"):
        application.play(Execute("PRAGMA query_only = 1"), EVENT)


def test_a_session_of_sqlalchemy_whose_flush_failed_is_told(sqlite):
    with engine_of(f"sqlite:///{sqlite.path}") as engine, Session(engine) as session:
        session.begin()
        nested = session.begin_nested()
        with pytest.raises(sqlalchemy.exc.OperationalError):
            session.execute(sqlalchemy.text("SELECT nothing"))
        nested.rollback()
        publish(session, "order.paid", {})  # the savepoint failed alone
        session.commit()
    assert len(sqlite.kept()) == 1


def test_a_connection_that_sqlalchemy_lost_is_told(postgres):
    with engine_of(spelled(postgres.url, "psycopg")) as engine, Session(engine) as session:
        pid = session.execute(sqlalchemy.text("SELECT pg_backend_pid()")).scalar()
        postgres.run("SELECT pg_terminate_backend(%s, 120_000)", pid)  # returns when it has ended
        with pytest.raises(sqlalchemy.exc.OperationalError):
            session.execute(sqlalchemy.text("SELECT 1"))
        with pytest.raises(TransactionFailed, match="Roll it back"):
            publish(session, "order.paid", {})


def test_django_that_must_roll_back_is_told(sqlite):
    made = django_on_sqlite(sqlite.path)
    with closing(made.connection) as connection, transaction.atomic(using=made.alias):
        transaction.set_rollback(True, using=made.alias)
        with pytest.raises(TransactionFailed, match="Roll it back"):
            publish(connection, "order.paid", {})


def test_in_a_pipeline_the_failure_ends_the_transaction(bare_url):
    Postgres(bare_url).run(ORDERS)
    with pytest.raises(psycopg.errors.UndefinedTable):
        PsycopgPipeline(bare_url).play(Order(1), EVENT)
    assert Postgres(bare_url).orders() == []


def test_in_a_pipeline_too_a_transaction_that_has_failed_is_told_at_once(postgres):
    with psycopg.connect(postgres.url) as connection, connection.pipeline() as pipeline:
        connection.execute("SELECT 1 / 0")
        with pytest.raises(psycopg.errors.DivisionByZero):
            pipeline.sync()
        with pytest.raises(TransactionFailed):
            publish(connection, "order.paid", {})
        connection.rollback()


# --- what the API would refuse too ---


@pytest.mark.parametrize("name", ON_POSTGRES)
def test_a_payload_that_is_too_large_leaves_the_transaction_as_it_was_on_postgres(postgres, name):
    is_told_the_size(ON_POSTGRES[name](postgres.url))
    assert (postgres.orders(), len(postgres.kept())) == ([1], 1)


@on_sqlite
def test_a_payload_that_is_too_large_leaves_the_transaction_as_it_was_on_sqlite(sqlite, name):
    is_told_the_size(ON_SQLITE[name](sqlite.path))
    assert (sqlite.orders(), len(sqlite.kept())) == ([1], 1)


def is_told_the_size(application: Any) -> None:
    errors: list[Exception] = []
    application.play(Refused(Publish(payload="a" * (1 << 20)), errors), Order(1), EVENT)
    [error] = errors
    assert isinstance(error, Invalid)
    assert error.code == "too_large"
    assert "1,048,576 bytes" in str(error)


# --- tables and rights ---


def making(name: str, dialect: str) -> str:
    """What makes the table, in the words of an error."""
    return "Have .*INSTALLED_APPS.*manage.py migrate" if "Django" in name else rf"If .*ddl\(\"{dialect}\"\)"


@on_postgres
def test_a_database_without_the_outbox_is_told(application_server, bare, name):
    application = ON_POSTGRES[name](bare.url)
    with pytest.raises(OutboxMissing, match=rf"no table hookline\.outbox\. {making(name, 'postgresql')}"):
        application.play(Order(1), EVENT)
    assert bare.orders() == []


@pytest.fixture(scope="module")
def bare(application_server):
    """A database without an outbox."""
    database = Postgres(application_server.url(application_server.create_database()))
    database.run(ORDERS)
    return database


@pytest.fixture(scope="module")
def outdated(application_server):
    """A database with an outbox that lacks a column."""
    database = made_on_postgres(application_server.url(application_server.create_database()))
    database.run("ALTER TABLE hookline.outbox DROP COLUMN hops")
    return database


@on_postgres
def test_an_outbox_of_an_earlier_version_is_told(outdated, name):
    with pytest.raises(OutboxMissing, match=r"lacks a column\. `hookline doctor`"):
        ON_POSTGRES[name](outdated.url).play(Order(1), EVENT)
    assert outdated.orders() == []


@on_sqlite
def test_a_file_without_the_outbox_is_told(tmp_path, name):
    path = tmp_path / "application.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(ORDERS)
    with pytest.raises(OutboxMissing, match=rf"no table hookline_outbox\. {making(name, 'sqlite')}"):
        ON_SQLITE[name](path).play(Order(1), EVENT)
    assert Sqlite(path).orders() == []


@on_sqlite
def test_a_file_with_an_outbox_of_an_earlier_version_is_told(sqlite, name):
    sqlite.run("ALTER TABLE hookline_outbox DROP COLUMN hops")
    with pytest.raises(OutboxMissing, match=r"lacks a column\. `hookline doctor`"):
        ON_SQLITE[name](sqlite.path).play(Order(1), EVENT)


@on_postgres
@pytest.mark.parametrize("lacks", ["USAGE", "INSERT"])
def test_a_role_without_the_right_is_told_the_grant(postgres, name, lacks):
    postgres.run(
        "DO $$ BEGIN IF to_regrole('stranger') IS NULL THEN CREATE ROLE stranger LOGIN; END IF; END $$;"
        + ("GRANT" if lacks == "INSERT" else "REVOKE")
        + f" USAGE ON SCHEMA hookline {'TO' if lacks == 'INSERT' else 'FROM'} stranger"
    )
    application = ON_POSTGRES[name](postgres.url.replace("postgres@", "stranger@"))
    with pytest.raises(OutboxForbidden, match=r"GRANT INSERT ON hookline\.outbox TO"):
        application.play(EVENT)


def test_an_attached_file_is_never_written_to(tmp_path, sqlite):
    own = tmp_path / "own.db"
    with closing(sqlite3.connect(own)) as connection:
        connection.execute("ATTACH ? AS other", (str(sqlite.path),))
        with pytest.raises(OutboxMissing):
            publish(connection, "order.paid", {})
    assert sqlite.kept() == []


# --- SQLite's lock ---


def holding(path: Path) -> Any:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return closing(connection)


@pytest.mark.parametrize("name", [each for each in ON_SQLITE if each != "sqlite3 by hand"])
def test_a_file_that_another_connection_holds_is_told(sqlite, name):
    application = ON_SQLITE[name](sqlite.path)
    with holding(sqlite.path), pytest.raises(OutboxBusy, match="BEGIN IMMEDIATE"):
        application.play(Execute("PRAGMA busy_timeout = 0"), EVENT)
    assert sqlite.kept() == []


def test_a_transaction_that_read_before_another_wrote_is_told(sqlite):
    with closing(sqlite3.connect(sqlite.path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM orders").fetchall()
        sqlite.run(Order(1).statement)
        with pytest.raises(OutboxBusy, match=r"after your transaction began to read.*BEGIN IMMEDIATE"):
            publish(connection, "order.paid", {})


# --- what is no connection ---


@pytest.fixture
def no_connections(sqlite: Sqlite) -> Iterator[dict[str, Any]]:
    with closing(sqlite3.connect(sqlite.path)) as connection, engine_of(f"sqlite:///{sqlite.path}") as engine:
        yield {
            "a string": "postgresql://",
            "nothing": None,
            "an engine": engine,
            "a cursor": connection.cursor(),
        }


@pytest.mark.parametrize("given", ["a string", "nothing", "an engine", "a cursor"])
def test_what_is_no_connection_is_refused_with_what_is_accepted(no_connections, given):
    with pytest.raises(
        TypeError, match=r"cannot be used here.*psycopg's Connection, .*Django's connection or sqlite3"
    ):
        publish(no_connections[given], "order.paid", {})
    with pytest.raises(TypeError, match=r"cannot be used here.*asyncpg's Connection, .* or aiosqlite"):
        asyncio.run(apublish(no_connections[given], "order.paid", {}))


def test_an_asynchronous_connection_is_sent_to_apublish(postgres):
    async def attempt() -> None:
        connection = await asyncpg.connect(postgres.url)
        try:
            async with connection.transaction():
                publish(connection, "order.paid", {})  # type: ignore[arg-type]
        finally:
            await connection.close()

    with pytest.raises(TypeError, match=r"use `await apublish\(…\)` for asyncpg's Connection"):
        asyncio.run(attempt())


def test_a_synchronous_connection_is_sent_to_publish(sqlite):
    with (
        closing(sqlite3.connect(sqlite.path)) as connection,
        pytest.raises(TypeError, match=r"use `publish\(…\)` for sqlite3's Connection"),
    ):
        asyncio.run(apublish(connection, "order.paid", {}))  # type: ignore[arg-type]


def test_another_database_of_sqlalchemy_is_refused():
    class Elsewhere(sqlalchemy.Connection):
        def __init__(self) -> None: ...

        dialect = type("D", (), {"name": "mysql", "driver": "pymysql"})  # type: ignore[assignment]

    with pytest.raises(TypeError, match=r"mysql\+pymysql cannot be used here. It can be on PostgreSQL"):
        publish(Elsewhere(), "order.paid", {})


def test_an_error_of_another_kind_is_the_drivers_own(postgres):
    with psycopg.connect(postgres.url) as connection:
        connection.execute("SET LOCAL lock_timeout = 1")
        with psycopg.connect(postgres.url) as other:
            other.execute("LOCK TABLE hookline.outbox")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                publish(connection, "order.paid", {})


def test_another_database_of_django_is_refused():
    class Elsewhere(BaseDatabaseWrapper):
        vendor = "oracle"

        def __init__(self) -> None: ...

    with pytest.raises(TypeError, match="Django's connection to oracle cannot be used here"):
        publish(Elsewhere(), "order.paid", {})


def test_an_asynchronous_connection_of_psycopg2_is_refused(postgres):
    with (
        closing(psycopg2.connect(postgres.url, async_=1)) as connection,
        pytest.raises(TypeError, match="asynchronous connections cannot be used here"),
    ):
        publish(connection, "order.paid", {})
