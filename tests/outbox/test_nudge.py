"""A server in the application's own process is told after the commit, and only then."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
import sqlalchemy
from django.db import transaction
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from hookline.outbox import apublish, nudge, nudging, publish
from outbox.applications import django_on_sqlite
from outbox.database import Sqlite


@pytest.fixture
def seen(sqlite: Sqlite) -> Iterator[list[int]]:
    """How many events a server that looks when it is told finds, each time."""
    found: list[int] = []
    unregister = nudging.register(lambda: found.append(len(sqlite.kept())))
    yield found
    unregister()


@contextmanager
def session_on(database: Sqlite) -> Iterator[Session]:
    engine = sqlalchemy.create_engine(f"sqlite:///{database.path}")
    with Session(engine) as session:
        yield session
    engine.dispose()


def test_a_nudge_is_heard_by_every_server_here_until_it_leaves():
    heard: list[str] = []
    leave_one = nudging.register(lambda: heard.append("one"))
    leave_two = nudging.register(lambda: heard.append("two"))
    nudge()
    leave_one()
    nudge()
    leave_two()
    nudge()
    leave_two()
    assert heard == ["one", "two", "two"]
    assert not nudging.is_watched()


def test_a_nudge_survives_a_server_whose_loop_has_closed():
    loop = asyncio.new_event_loop()
    heard = threading.Event()
    leave_one = nudging.register(lambda: loop.call_soon_threadsafe(lambda: None) and None)
    leave_two = nudging.register(heard.set)
    loop.close()
    nudge()
    leave_one()
    leave_two()
    assert heard.is_set()


def test_servers_may_come_and_go_on_many_threads():
    def come_and_go(_: int) -> None:
        for _ in range(200):
            leave = nudging.register(lambda: None)
            nudge()
            leave()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(come_and_go, range(8)))
    assert not nudging.is_watched()


FORKS = """
import os
from hookline.outbox import nudging
nudging.register(lambda: None)
child = os.fork()
if not child:
    os._exit(int(nudging.is_watched()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), nudging.is_watched())
"""


def test_a_child_process_does_not_wake_its_parents_server():
    ran = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stdout.split() == ["0", "True"]


# --- sessions of SQLAlchemy ---


def test_a_session_tells_when_it_has_committed(sqlite, seen):
    with session_on(sqlite) as session:
        publish(session, "order.paid", {})
        publish(session, "order.paid", {})
        assert seen == []
        session.commit()
        assert seen == [2]


def test_a_session_tells_nothing_of_commits_without_events(sqlite, seen):
    with session_on(sqlite) as session:
        publish(session, "order.paid", {})
        session.commit()
        session.execute(sqlalchemy.text("INSERT INTO orders VALUES (1)"))
        session.commit()
        assert seen == [1]
        publish(session, "order.paid", {})
        session.commit()
        assert seen == [1, 2]


def test_a_session_that_rolls_back_tells_nothing(sqlite, seen):
    with session_on(sqlite) as session:
        publish(session, "order.paid", {})
        session.rollback()
    assert seen == []


def test_the_end_of_a_savepoint_is_no_commit(sqlite, seen):
    with session_on(sqlite) as session, session.begin():
        with session.begin_nested():
            publish(session, "order.paid", {})
        with session.begin_nested():
            pass
        assert seen == []
    assert seen == [1]


def test_an_asynchronous_session_tells_when_it_has_committed(sqlite, seen):
    async def work() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{sqlite.path}")
        async with AsyncSession(engine) as session:
            await apublish(session, "order.paid", {})
            assert seen == []
            await session.commit()
        await engine.dispose()

    asyncio.run(work())
    assert seen == [1]


def test_a_session_has_no_more_to_do_where_no_server_runs(sqlite):
    with session_on(sqlite) as session:
        publish(session, "order.paid", {})
        assert session.info == {}


# --- Django ---


@pytest.fixture
def atomic(sqlite: Sqlite) -> Iterator[Callable[[], transaction.Atomic]]:
    made = django_on_sqlite(sqlite.path)
    with closing(made.connection):
        yield lambda: transaction.atomic(using=made.alias)


def test_django_tells_when_it_has_committed(atomic, seen):
    with atomic() as _, atomic():
        publish(connection_of(atomic), "order.paid", {})
    assert seen == [1]


def test_django_that_rolls_back_tells_nothing(atomic, seen):
    def fail() -> None:
        with atomic():
            publish(connection_of(atomic), "order.paid", {})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with atomic(), pytest.raises(ZeroDivisionError):
        fail()  # to a savepoint
    assert seen == []


def test_django_without_autocommit_publishes_beside_a_server(sqlite, seen):
    made = django_on_sqlite(sqlite.path)
    with closing(made.connection) as connection:
        transaction.set_autocommit(False, using=made.alias)
        publish(connection, "order.paid", {})
        transaction.commit(using=made.alias)
    assert len(sqlite.kept()) == 1


def test_django_has_no_more_to_do_where_no_server_runs(atomic):
    with atomic():
        publish(connection_of(atomic), "order.paid", {})
        assert connection_of(atomic).run_on_commit == []


def connection_of(atomic: Callable[[], transaction.Atomic]) -> object:
    from django.db import connections

    return connections[atomic().using]


def test_a_plain_connection_leaves_it_to_the_application(sqlite, seen):
    with closing(sqlite3.connect(sqlite.path)) as connection:
        publish(connection, "order.paid", {})
        connection.commit()
    assert seen == []
    nudge()
    assert seen == [1]
