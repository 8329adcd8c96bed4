"""Applications that process each event once, one for each driver that the kit knows.

Each does the same in its driver's own way: mark and effect in one transaction of its own connection.
"""

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import django
import psycopg
import sqlalchemy
from django.conf import settings
from django.db import connections, transaction
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from hookline.receiver import AsyncProcessOnce, ProcessOnce

_ALIASES = map("application{}".format, itertools.count())

if not settings.configured:
    settings.configure(USE_TZ=True, LOGGING_CONFIG=None)
    django.setup()

During = Callable[[], object]
CREATE = "CREATE TABLE IF NOT EXISTS effects (event_id text NOT NULL)"
EFFECTS = "SELECT event_id FROM effects ORDER BY event_id"
AGE_SQLITE = "UPDATE hookline_processed SET processed_at = processed_at - {seconds} WHERE event_id = '{id}'"
AGE_POSTGRES = "UPDATE hookline_processed SET processed_at = processed_at - interval '{seconds} s' WHERE event_id = '{id}'"


class Application(Protocol):
    """What the tests ask of each; calls from several threads at once are several requests at once."""

    def setup(self) -> None: ...

    def process(self, event_id: str, during: During = lambda: None, *, consumer: str = "default") -> bool:
        """Whether the event was new; `during` is called inside the transaction, after mark and effect."""

    def prune(self, **options: Any) -> int: ...

    def run(self, statement: str) -> list[Any]:
        """Any other statement, in a transaction of its own; the first column of its rows."""

    age: str


class Sqlite3:
    age = AGE_SQLITE

    def __init__(self, path: Path) -> None:
        self._path = path

    def _connect(self) -> Any:
        return closing(sqlite3.connect(self._path, timeout=20))

    def setup(self) -> None:
        with self._connect() as connection, connection:
            ProcessOnce().setup(connection)
            connection.execute(CREATE)

    def process(self, event_id: str, during: During = lambda: None, *, consumer: str = "default") -> bool:
        with self._connect() as connection, connection:
            if not ProcessOnce(consumer).mark(connection, event_id):
                return False
            connection.execute("INSERT INTO effects VALUES (?)", (event_id,))
            during()
            return True

    def prune(self, **options: Any) -> int:
        with self._connect() as connection, connection:
            return ProcessOnce().prune(connection, **options)

    def run(self, statement: str) -> list[Any]:
        with self._connect() as connection, connection:
            return [row[0] for row in connection.execute(statement).fetchall()]


class Psycopg:
    age = AGE_POSTGRES

    def __init__(self, url: str) -> None:
        self._url = url

    def setup(self) -> None:
        with psycopg.connect(self._url) as connection:
            ProcessOnce().setup(connection)
            connection.execute(CREATE)

    def process(self, event_id: str, during: During = lambda: None, *, consumer: str = "default") -> bool:
        with psycopg.connect(self._url) as connection:
            if not ProcessOnce(consumer).mark(connection, event_id):
                return False
            connection.execute("INSERT INTO effects VALUES (%s)", (event_id,))
            during()
            return True

    def prune(self, **options: Any) -> int:
        with psycopg.connect(self._url) as connection:
            return ProcessOnce().prune(connection, **options)

    def run(self, statement: str) -> list[Any]:
        with psycopg.connect(self._url) as connection:
            cursor = connection.execute(statement)
            return [row[0] for row in cursor.fetchall()] if cursor.description else []


class Django:
    def __init__(self, database: dict[str, Any]) -> None:
        self._alias = next(_ALIASES)
        configured = connections.configure_settings({"default": {}, self._alias: database})
        connections.settings[self._alias] = configured[self._alias]
        self.age = AGE_SQLITE if "sqlite" in database["ENGINE"] else AGE_POSTGRES

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        connection = connections[self._alias]
        try:
            with transaction.atomic(using=self._alias):
                yield connection
        finally:
            connection.close()

    def setup(self) -> None:
        with self._transaction() as connection, connection.cursor() as cursor:
            ProcessOnce().setup(connection)
            cursor.execute(CREATE)

    def process(self, event_id: str, during: During = lambda: None, *, consumer: str = "default") -> bool:
        with self._transaction() as connection, connection.cursor() as cursor:
            if not ProcessOnce(consumer).mark(connection, event_id):
                return False
            cursor.execute("INSERT INTO effects VALUES (%s)", [event_id])
            during()
            return True

    def prune(self, **options: Any) -> int:
        with self._transaction() as connection:
            return ProcessOnce().prune(connection, **options)

    def run(self, statement: str) -> list[Any]:
        with self._transaction() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return [row[0] for row in cursor.fetchall()] if cursor.description else []


class Alchemy:
    """A session of SQLAlchemy; its engine keeps no connection."""

    def __init__(self, url: sqlalchemy.URL) -> None:
        self._engine = sqlalchemy.create_engine(url, poolclass=NullPool)
        self.age = AGE_SQLITE if url.get_backend_name() == "sqlite" else AGE_POSTGRES

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with Session(self._engine) as session, session.begin():
            yield session

    def setup(self) -> None:
        with self._transaction() as session:
            ProcessOnce().setup(session)
            session.execute(sqlalchemy.text(CREATE))

    def process(self, event_id: str, during: During = lambda: None, *, consumer: str = "default") -> bool:
        with self._transaction() as session:
            if not ProcessOnce(consumer).mark(session, event_id):
                return False
            session.execute(sqlalchemy.text("INSERT INTO effects VALUES (:id)"), {"id": event_id})
            during()
            return True

    def prune(self, **options: Any) -> int:
        with self._transaction() as session:
            return ProcessOnce().prune(session, **options)

    def run(self, statement: str) -> list[Any]:
        with self._transaction() as session:
            result = session.execute(sqlalchemy.text(statement))
            return list(result.scalars()) if result.returns_rows else []


class AlchemyConnection(Alchemy):
    """Its connection alone."""

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with self._engine.begin() as connection:
            yield connection


class Asynchronous:
    """An event loop for each request, in the thread that the test gave it."""

    age = AGE_POSTGRES

    def __init__(self, url: str) -> None:
        self._url = url

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def _fetch(self, connection: Any, statement: str) -> list[Any]:
        raise NotImplementedError

    def setup(self) -> None:
        async def work(connection: Any) -> None:
            await AsyncProcessOnce().setup(connection)
            await self._fetch(connection, CREATE)

        self._run(work)

    def process(self, event_id: str, during: During = lambda: None, *, consumer: str = "default") -> bool:
        async def work(connection: Any) -> bool:
            if not await AsyncProcessOnce(consumer).mark(connection, event_id):
                return False
            await self._fetch(connection, f"INSERT INTO effects VALUES ('{event_id}')")
            during()
            return True

        return bool(self._run(work))

    def prune(self, **options: Any) -> int:
        return int(self._run(lambda connection: AsyncProcessOnce().prune(connection, **options)))

    def run(self, statement: str) -> list[Any]:
        return list(self._run(lambda connection: self._fetch(connection, statement)))

    def _run(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        async def whole() -> Any:
            async with self._transaction() as connection:
                return await work(connection)

        return asyncio.run(whole())


class Asyncpg(Asynchronous):
    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        connection = await asyncpg.connect(self._url)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    async def _fetch(self, connection: Any, statement: str) -> list[Any]:
        return [row[0] for row in await connection.fetch(statement)]


class AsyncpgPool(Asyncpg):
    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        async with (
            asyncpg.create_pool(self._url, min_size=1, max_size=1) as pool,
            pool.acquire() as connection,
            connection.transaction(),
        ):
            yield connection


class PsycopgAsync(Asynchronous):
    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        async with await psycopg.AsyncConnection.connect(self._url) as connection:
            yield connection

    async def _fetch(self, connection: Any, statement: str) -> list[Any]:
        cursor = await connection.execute(statement)
        return [row[0] for row in await cursor.fetchall()] if cursor.description else []


class AlchemyAsync(Asynchronous):
    """An asynchronous session of SQLAlchemy."""

    driver = "asyncpg"

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        url = sqlalchemy.make_url(self._url).set(drivername=f"postgresql+{self.driver}")
        engine = create_async_engine(url, poolclass=NullPool)
        async with AsyncSession(engine) as session, session.begin():
            yield session

    async def _fetch(self, session: Any, statement: str) -> list[Any]:
        result = await session.execute(sqlalchemy.text(statement))
        return list(result.scalars()) if result.returns_rows else []


class AlchemyAsyncPsycopg(AlchemyAsync):
    driver = "psycopg"


def _alchemy_postgres(url: str, driver: str) -> Application:
    return Alchemy(sqlalchemy.make_url(url).set(drivername=f"postgresql+{driver}"))


ON_SQLITE: dict[str, Callable[[Path], Application]] = {
    "sqlite3": Sqlite3,
    "a session of SQLAlchemy": lambda path: Alchemy(sqlalchemy.make_url(f"sqlite:///{path}?timeout=20")),
    "SQLAlchemy": lambda path: AlchemyConnection(sqlalchemy.make_url(f"sqlite:///{path}?timeout=20")),
    "Django on SQLite": lambda path: Django(
        {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path), "OPTIONS": {"timeout": 20}}
    ),
}


def _django_postgres(url: str) -> Application:
    parts = conninfo_to_dict(url)
    return Django(
        {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts["dbname"],
            "USER": parts["user"],
            "HOST": parts["host"],
            "PORT": parts["port"],
        }
    )


ON_POSTGRES: dict[str, Callable[[str], Application]] = {
    "psycopg": Psycopg,
    "psycopg, asynchronous": PsycopgAsync,
    "asyncpg": Asyncpg,
    "a pool of asyncpg": AsyncpgPool,
    "Django on postgres": _django_postgres,
    "SQLAlchemy, psycopg": lambda url: _alchemy_postgres(url, "psycopg"),
    "SQLAlchemy, psycopg2": lambda url: _alchemy_postgres(url, "psycopg2"),
    "SQLAlchemy, asyncpg": AlchemyAsync,
    "SQLAlchemy, psycopg asynchronous": AlchemyAsyncPsycopg,
}
