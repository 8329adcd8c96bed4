"""Applications that take orders and publish in the same transaction, one for each driver and framework.

Each plays the same steps in its driver's own way: its own connection, its own transaction, its own savepoints.
"""

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import aiosqlite
import asyncpg
import django
import psycopg
import psycopg2
import pytest
import sqlalchemy
from django.conf import settings
from django.db import connections, transaction
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from hookline.outbox import Draft, apublish, apublish_many, publish, publish_many

_ALIASES = map("outbox{}".format, itertools.count())
_SAVEPOINTS = map("mine{}".format, itertools.count())

if not settings.configured:
    settings.configure(USE_TZ=True, LOGGING_CONFIG=None)
    django.setup()


class Order(NamedTuple):
    """The application's own work."""

    number: int

    @property
    def statement(self) -> str:
        return f"INSERT INTO orders (number) VALUES ({self.number})"


class Execute(NamedTuple):
    """Any other statement; what it raises may be of no interest."""

    statement: str
    fails: bool = False


class Commit(NamedTuple):
    """Before the end of its block."""


class Meanwhile(NamedTuple):
    """What others do at this point."""

    work: Callable[[], object]


class Publish(NamedTuple):
    type: str = "order.paid"
    payload: Any = b'{"id": 42}'
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


class PublishMany(NamedTuple):
    drafts: Sequence[Draft]


class Refused(NamedTuple):
    """A publish that raises; the transaction goes on."""

    publish: Publish
    errors: list[Exception]


class Nested(NamedTuple):
    """Steps inside a savepoint, which is then rolled back or released."""

    steps: tuple[Any, ...]
    keep: bool


class Undone(Exception):
    """Rolls back what it is raised in."""


class Application:
    """One that is synchronous."""

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A connection with an open transaction, which commits unless an exception leaves it."""
        raise NotImplementedError
        yield

    def execute(self, connection: Any, statement: str) -> None:
        connection.execute(statement)

    @contextmanager
    def savepoint(self, connection: Any) -> Iterator[None]:
        name = next(_SAVEPOINTS)
        self.execute(connection, f"SAVEPOINT {name}")
        try:
            yield
        except Undone:
            self.execute(connection, f"ROLLBACK TO SAVEPOINT {name}")
            return
        self.execute(connection, f"RELEASE SAVEPOINT {name}")

    def play(self, *steps: Any, keep: bool = True) -> list[Any]:
        """What the publishes returned; the transaction is committed, or rolled back."""
        results: list[Any] = []
        try:
            with self.transaction() as connection:
                self._play(connection, steps, results)
                if not keep:
                    raise Undone
        except Undone:
            assert not keep
        return results

    def _play(self, connection: Any, steps: Sequence[Any], results: list[Any]) -> None:
        for step in steps:
            match step:
                case Order():
                    self.execute(connection, step.statement)
                case Execute(statement, fails):
                    with pytest.raises(Exception) if fails else nullcontext():  # noqa: PT011 - of any driver
                        self.execute(connection, statement)
                case Meanwhile(work):
                    work()
                case Commit():
                    connection.commit()
                case Publish(type, payload, options):
                    results.append(publish(connection, type, payload, **options))
                case PublishMany(drafts):
                    results.append(publish_many(connection, drafts))
                case Refused((type, payload, options), errors):
                    try:
                        publish(connection, type, payload, **options)
                    except Exception as error:
                        errors.append(error)
                case Nested(inner, keep):
                    with self.savepoint(connection):
                        self._play(connection, inner, results)
                        if not keep:
                            raise Undone


class AsyncApplication(Application):
    """One that is asynchronous, with an event loop for each transaction."""

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def aexecute(self, connection: Any, statement: str) -> None:
        await connection.execute(statement)

    @asynccontextmanager
    async def asavepoint(self, connection: Any) -> AsyncIterator[None]:
        name = next(_SAVEPOINTS)
        await self.aexecute(connection, f"SAVEPOINT {name}")
        try:
            yield
        except Undone:
            await self.aexecute(connection, f"ROLLBACK TO SAVEPOINT {name}")
            return
        await self.aexecute(connection, f"RELEASE SAVEPOINT {name}")

    def play(self, *steps: Any, keep: bool = True) -> list[Any]:
        async def whole() -> list[Any]:
            results: list[Any] = []
            try:
                async with self.atransaction() as connection:
                    await self._aplay(connection, steps, results)
                    if not keep:
                        raise Undone
            except Undone:
                assert not keep
            return results

        return asyncio.run(whole())

    async def _aplay(self, connection: Any, steps: Sequence[Any], results: list[Any]) -> None:
        for step in steps:
            match step:
                case Order():
                    await self.aexecute(connection, step.statement)
                case Execute(statement, fails):
                    with pytest.raises(Exception) if fails else nullcontext():  # noqa: PT011 - of any driver
                        await self.aexecute(connection, statement)
                case Meanwhile(work):
                    work()
                case Commit():
                    await connection.commit()
                case Publish(type, payload, options):
                    results.append(await apublish(connection, type, payload, **options))
                case PublishMany(drafts):
                    results.append(await apublish_many(connection, drafts))
                case Refused((type, payload, options), errors):
                    try:
                        await apublish(connection, type, payload, **options)
                    except Exception as error:
                        errors.append(error)
                case Nested(inner, keep):
                    async with self.asavepoint(connection):
                        await self._aplay(connection, inner, results)
                        if not keep:
                            raise Undone


# --- drivers ---


class Psycopg(Application):
    def __init__(self, url: str, **options: Any) -> None:
        self.url, self.options = url, options

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with psycopg.connect(self.url, **self.options) as connection, connection.transaction():
            yield connection

    @contextmanager
    def savepoint(self, connection: Any) -> Iterator[None]:
        try:
            with connection.transaction():
                yield
        except Undone:
            pass


class PsycopgPipeline(Psycopg):
    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with (
            psycopg.connect(self.url, **self.options) as connection,
            connection.pipeline(),
            connection.transaction(),
        ):
            yield connection


class PsycopgAsync(AsyncApplication):
    def __init__(self, url: str, **options: Any) -> None:
        self.url, self.options = url, options

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        async with await psycopg.AsyncConnection.connect(self.url, **self.options) as connection:
            yield connection


class Psycopg2(Application):
    def __init__(self, url: str) -> None:
        self.url = url

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with closing(psycopg2.connect(self.url)) as connection, connection:
            yield connection

    def execute(self, connection: Any, statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)


class Asyncpg(AsyncApplication):
    def __init__(self, url: str, **options: Any) -> None:
        self.url, self.options = url, options

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        connection = await asyncpg.connect(self.url, **self.options)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    @asynccontextmanager
    async def asavepoint(self, connection: Any) -> AsyncIterator[None]:
        try:
            async with connection.transaction():
                yield
        except Undone:
            pass


class AsyncpgPool(Asyncpg):
    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        async with (
            asyncpg.create_pool(self.url, min_size=1, max_size=1) as pool,
            pool.acquire() as connection,
            connection.transaction(),
        ):
            yield connection


class Sqlite3(Application):
    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with closing(sqlite3.connect(self.path, timeout=20)) as connection, connection:
            yield connection


class Sqlite3ByHand(Application):
    """Opens its transactions itself, as the guide says."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with closing(sqlite3.connect(self.path, timeout=20, isolation_level=None)) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection


class Aiosqlite(AsyncApplication):
    def __init__(self, path: Path) -> None:
        self.path = path

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        async with aiosqlite.connect(self.path, timeout=20) as connection:
            yield connection
            await connection.commit()


# --- SQLAlchemy ---


class SqlalchemyConnection(Application):
    def __init__(self, url: str, **options: Any) -> None:
        self.url, self.options = url, options

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        engine = sqlalchemy.create_engine(self.url, **self.options)
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()

    def execute(self, connection: Any, statement: str) -> None:
        connection.execute(sqlalchemy.text(statement))

    @contextmanager
    def savepoint(self, connection: Any) -> Iterator[None]:
        try:
            with connection.begin_nested():
                yield
        except Undone:
            pass


class SqlalchemySession(SqlalchemyConnection):
    @contextmanager
    def transaction(self) -> Iterator[Any]:
        engine = sqlalchemy.create_engine(self.url, **self.options)
        try:
            with Session(engine) as session, session.begin():
                yield session
        finally:
            engine.dispose()


class SqlalchemyScopedSession(SqlalchemyConnection):
    @contextmanager
    def transaction(self) -> Iterator[Any]:
        engine = sqlalchemy.create_engine(self.url)
        session = scoped_session(sessionmaker(engine))
        try:
            yield session
            session.commit()
        finally:
            session.remove()
            engine.dispose()


class SqlalchemyAsyncConnection(AsyncApplication):
    def __init__(self, url: str) -> None:
        self.url = url

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        engine = create_async_engine(self.url)
        try:
            async with engine.begin() as connection:
                yield connection
        finally:
            await engine.dispose()

    async def aexecute(self, connection: Any, statement: str) -> None:
        await connection.execute(sqlalchemy.text(statement))

    @asynccontextmanager
    async def asavepoint(self, connection: Any) -> AsyncIterator[None]:
        try:
            async with connection.begin_nested():
                yield
        except Undone:
            pass


class SqlalchemyAsyncSession(SqlalchemyAsyncConnection):
    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        engine = create_async_engine(self.url)
        try:
            async with AsyncSession(engine) as session, session.begin():
                yield session
        finally:
            await engine.dispose()


class SqlalchemyAsyncScopedSession(SqlalchemyAsyncConnection):
    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        engine = create_async_engine(self.url)
        session = async_scoped_session(async_sessionmaker(engine), scopefunc=asyncio.current_task)
        try:
            yield session
            await session.commit()
        finally:
            await session.remove()
            await engine.dispose()


# --- Django ---


class Django(Application):
    def __init__(self, database: dict[str, Any]) -> None:
        self.alias = next(_ALIASES)
        configured = connections.configure_settings({"default": {}, self.alias: database})
        connections.settings[self.alias] = configured[self.alias]

    @property
    def connection(self) -> Any:
        return connections[self.alias]

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        try:
            with transaction.atomic(using=self.alias):
                yield self.connection
        finally:
            self.connection.close()

    def execute(self, connection: Any, statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    @contextmanager
    def savepoint(self, connection: Any) -> Iterator[None]:
        try:
            with transaction.atomic(using=self.alias):
                yield
        except Undone:
            pass


def django_on_postgres(url: str, **options: Any) -> Django:
    parts = conninfo_to_dict(url)
    return Django(
        {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts["dbname"],
            "USER": parts["user"],
            "HOST": parts["host"],
            "PORT": parts["port"],
            "OPTIONS": options,
        }
    )


def django_on_sqlite(path: Path, **options: Any) -> Django:
    return Django(
        {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path), "OPTIONS": {"timeout": 20, **options}}
    )


def spelled(url: str, driver: str) -> str:
    """The URL for SQLAlchemy."""
    return url.replace("postgresql://", f"postgresql+{driver}://")


ON_POSTGRES: dict[str, Callable[[str], Application]] = {
    "psycopg": Psycopg,
    "psycopg in autocommit, with a block": lambda url: Psycopg(url, autocommit=True),
    "psycopg that prepares everything": lambda url: Psycopg(url, prepare_threshold=0),
    "psycopg with client cursors": lambda url: Psycopg(url, cursor_factory=psycopg.ClientCursor),
    "psycopg with raw cursors": lambda url: Psycopg(url, cursor_factory=psycopg.RawCursor),
    "psycopg in a pipeline": PsycopgPipeline,
    "psycopg in a pipeline, in autocommit": lambda url: PsycopgPipeline(url, autocommit=True),
    "psycopg, asynchronous": PsycopgAsync,
    "psycopg, asynchronous with raw cursors": lambda url: PsycopgAsync(
        url, cursor_factory=psycopg.AsyncRawCursor
    ),
    "psycopg2": Psycopg2,
    "asyncpg": Asyncpg,
    "asyncpg without a cache": lambda url: Asyncpg(url, statement_cache_size=0),
    "asyncpg's pool": AsyncpgPool,
    "SQLAlchemy, psycopg": lambda url: SqlalchemyConnection(spelled(url, "psycopg")),
    "SQLAlchemy, psycopg2": lambda url: SqlalchemyConnection(spelled(url, "psycopg2")),
    "SQLAlchemy, asyncpg": lambda url: SqlalchemyAsyncConnection(spelled(url, "asyncpg")),
    "SQLAlchemy, psycopg asynchronous": lambda url: SqlalchemyAsyncConnection(spelled(url, "psycopg")),
    "session, psycopg": lambda url: SqlalchemySession(spelled(url, "psycopg")),
    "session, psycopg2": lambda url: SqlalchemySession(spelled(url, "psycopg2")),
    "session, psycopg, serializable": lambda url: SqlalchemySession(
        spelled(url, "psycopg"), isolation_level="SERIALIZABLE"
    ),
    "session, asyncpg": lambda url: SqlalchemyAsyncSession(spelled(url, "asyncpg")),
    "session, psycopg asynchronous": lambda url: SqlalchemyAsyncSession(spelled(url, "psycopg")),
    "scoped session": lambda url: SqlalchemyScopedSession(spelled(url, "psycopg")),
    "scoped session, asynchronous": lambda url: SqlalchemyAsyncScopedSession(spelled(url, "asyncpg")),
    "Django": django_on_postgres,
    "Django binding on the server": lambda url: django_on_postgres(url, server_side_binding=True),
}

ON_SQLITE: dict[str, Callable[[Path], Application]] = {
    "sqlite3": Sqlite3,
    "sqlite3 by hand": Sqlite3ByHand,
    "aiosqlite": Aiosqlite,
    "SQLAlchemy": lambda path: SqlalchemyConnection(f"sqlite:///{path}"),
    "SQLAlchemy, aiosqlite": lambda path: SqlalchemyAsyncConnection(f"sqlite+aiosqlite:///{path}"),
    "session": lambda path: SqlalchemySession(f"sqlite:///{path}"),
    "session, aiosqlite": lambda path: SqlalchemyAsyncSession(f"sqlite+aiosqlite:///{path}"),
    "Django": django_on_sqlite,
}
