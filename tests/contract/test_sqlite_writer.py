"""Writes that wait together share a commit, and fail alone."""

import asyncio
import sqlite3
import threading

import pytest

from factories import NOW, a_publication
from hookline.errors import RowRefused, StoreUnavailable
from hookline.model import State
from hookline.store.sqlite.accept import write_batch
from hookline.store.sqlite.driver.connection import connect
from hookline.store.sqlite.driver.shared_commit import OnLoop
from hookline.store.sqlite.driver.writer import Inline, Threaded, commit_together, run_each
from hookline.store.sqlite.store import SqliteStore
from scenes import a_lane_in, accepted, in_state

pytestmark = pytest.mark.anyio


@pytest.fixture
async def traced(sqlite_path):
    """A writer, and the statements that SQLite got."""
    connection = connect(str(sqlite_path))
    connection.execute("CREATE TABLE notes (text NOT NULL)")
    statements = []
    connection.set_trace_callback(statements.append)
    writer = Threaded(connection, commit_together)
    yield writer, statements
    await writer.stop()


def note(text):
    return lambda connection: connection.execute("INSERT INTO notes VALUES (?)", (text,)).rowcount


def notes(connection):
    return [row[0] for row in connection.execute("SELECT text FROM notes ORDER BY rowid").fetchall()]


def fail(connection):
    note("not to be seen")(connection)
    raise LookupError("planted")


async def after_a_pause(writer, *works):
    """Hand in all of these while the writer is busy, so that they wait together."""
    busy, go_on = threading.Event(), threading.Event()

    def hold_up(connection):
        busy.set()
        go_on.wait(60)

    first = asyncio.ensure_future(writer.run(hold_up, transacts=False))
    await asyncio.to_thread(busy.wait, 60)
    waiting = [asyncio.ensure_future(writer.run(work)) for work in works]
    await asyncio.sleep(0)
    go_on.set()
    await first
    return await asyncio.gather(*waiting, return_exceptions=True)


async def test_what_waits_together_is_committed_together(traced):
    writer, statements = traced
    assert await after_a_pause(writer, *map(note, "abc")) == [1, 1, 1]
    assert statements.count("COMMIT") == statements.count("BEGIN IMMEDIATE") == 1
    assert await writer.run(notes) == ["a", "b", "c"]


async def test_a_job_that_fails_takes_nothing_of_the_others_with_it(traced):
    writer, _ = traced
    first, second, third = await after_a_pause(writer, note("a"), fail, note("c"))
    assert (first, third) == (1, 1)
    assert isinstance(second, LookupError)
    assert await writer.run(notes) == ["a", "c"]


async def test_a_statement_that_fails_is_told_in_our_words_and_leaves_nothing(traced):
    writer, _ = traced
    first, second = await after_a_pause(writer, note("a"), note(None))
    assert first == 1
    assert isinstance(second, RowRefused)
    assert isinstance(second.__cause__, sqlite3.IntegrityError)
    assert await writer.run(notes) == ["a"]


async def test_a_job_alone_that_fails_leaves_nothing(traced):
    writer, _ = traced
    with pytest.raises(LookupError):
        await writer.run(fail)
    assert await writer.run(notes) == []


async def test_a_transaction_that_is_lost_is_lost_for_all_of_its_jobs(traced):
    writer, _ = traced
    lose = [note("a"), lambda connection: connection.execute("ROLLBACK"), note("c")]
    answers = await after_a_pause(writer, *lose)
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    assert await writer.run(notes) == []
    assert await writer.run(note("d")) == 1


async def test_a_commit_that_fails_fails_every_job(traced):
    writer, _ = traced

    def leave_a_debt(connection):
        connection.execute("PRAGMA defer_foreign_keys = ON")
        connection.execute("INSERT INTO child VALUES (1)")

    def prepare(connection):
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TABLE child (id REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)")

    await writer.run(prepare, transacts=False)
    answers = await after_a_pause(writer, note("a"), leave_a_debt, note("c"))
    assert all(isinstance(answer, RowRefused) for answer in answers)
    assert await writer.run(notes) == []


async def test_a_cancelled_caller_does_not_undo_its_write(traced):
    writer, _ = traced
    task = asyncio.ensure_future(writer.run(note("a")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await writer.run(notes) == ["a"]


async def test_stopping_finishes_what_was_handed_in(traced, sqlite_path):
    writer, _ = traced
    waiting = [asyncio.ensure_future(writer.run(note(str(n)))) for n in range(20)]
    await asyncio.sleep(0)
    await writer.stop()
    assert await asyncio.gather(*waiting) == [1] * 20
    with pytest.raises(StoreUnavailable, match="closed"):
        await writer.run(notes)
    reader = Inline(connect(str(sqlite_path)), run_each)
    assert len(await reader.run(notes)) == 20
    await reader.stop()


async def test_in_line_everything_happens_at_once_and_on_this_thread(sqlite_path):
    store = SqliteStore(str(sqlite_path), executor=Inline)
    before = set(threading.enumerate())
    await store.open()
    lane = await a_lane_in(store)
    coroutine = accepted(store, a_publication(lane))
    with pytest.raises(StopIteration):
        coroutine.send(None)
    assert set(threading.enumerate()) <= before
    assert (await store.counts())[State.PENDING] == 1
    await in_state(store, State.DEAD)
    with pytest.raises(StoreUnavailable):
        await store._write(lambda connection: connection.execute("INSERT INTO nowhere VALUES (1)"))
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.wake([lane], now=NOW)


def in_parts(*texts, error=None):
    """Work that gives others their turn after each of its notes."""

    def work(connection):
        for text in texts:
            note(text)(connection)
            yield
        if error is not None:
            raise error
        return len(texts)

    return work


async def test_long_work_lets_the_loop_go_on_between_its_parts_and_is_one_transaction(sqlite_path):
    connection = connect(str(sqlite_path))
    connection.execute("CREATE TABLE notes (text NOT NULL)")
    other = connect(str(sqlite_path))
    writer = OnLoop(connection, commit_together)
    seen = []

    def work(connection):
        for text in "abc":
            note(text)(connection)
            asyncio.get_running_loop().call_soon(lambda: seen.append((notes(connection), notes(other))))
            yield
        return 3

    assert await writer.run(work) == 3
    assert seen == [(["a"], []), (["a", "b"], []), (["a", "b", "c"], [])]
    assert notes(other) == ["a", "b", "c"]
    await writer.stop()
    other.close()


@pytest.mark.parametrize("executor", [OnLoop, Threaded, Inline])
async def test_long_work_that_fails_leaves_nothing_of_its_parts(executor, sqlite_path):
    connection = connect(str(sqlite_path))
    connection.execute("CREATE TABLE notes (text NOT NULL)")
    writer = executor(connection, commit_together)
    with pytest.raises(LookupError):
        await writer.run(in_parts("a", "b", error=LookupError("planted")))
    assert await writer.run(in_parts("c", "d")) == 2
    assert await writer.run(notes) == ["c", "d"]
    await writer.stop()


async def test_an_accept_of_many_deliveries_is_work_in_parts(sqlite_path):
    store = SqliteStore(str(sqlite_path))
    await store.migrate()
    connection = connect(str(sqlite_path))
    publication = a_publication(*(bytes([1, n // 256, n % 256]) + bytes(13) for n in range(3_000)))
    folder = str(sqlite_path.parent)
    work = write_batch(connection, [publication], catalogue=0, now=NOW, due=float, folder=folder)
    assert sum(1 for _ in work) == 2
    connection.close()
