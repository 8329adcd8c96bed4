"""Runs the store's work on one connection in shared transactions.

Writes that wait together are committed together: one `BEGIN IMMEDIATE … COMMIT` and so one fsync. Each job has a
savepoint, so that a failing job undoes nothing of the others. `Threaded` does it on a thread of its own and answers the
event loop once a batch. `Inline` does the same at once on the caller's thread, for simulations, which must not have
threads.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from hookline.errors import HooklineError, RowRefused, StoreUnavailable
from hookline.store.sqlite.driver.faults import translated
from hookline.store.sqlite.driver.texts import is_unreadable, read_all_texts

T = TypeVar("T")
# Long work is a generator: it pauses where others may have their turn on its thread, within the same transaction.
Work = Callable[[sqlite3.Connection], T | Generator[None, None, T]]


class WriterTask:
    """A piece of work and its result."""

    __slots__ = ("error", "future", "repeats", "result", "transacts", "work")

    def __init__(
        self, work: Work[Any], *, transacts: bool, future: asyncio.Future[Any] | None = None
    ) -> None:
        self.work = work
        self.transacts = transacts
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None
        self.repeats = False  # it met a text that can be read the next time

    def run(self, connection: sqlite3.Connection) -> None:
        for _ in self.steps(connection):
            pass

    def begin_again(self) -> bool:
        """Whether it has to run once more, from its beginning."""
        if not self.repeats:
            return False
        self.repeats, self.error = False, None
        return True

    def steps(self, connection: sqlite3.Connection) -> Iterator[None]:
        try:
            result = self.work(connection)
            self.result = (yield from result) if isinstance(result, Generator) else result
        except sqlite3.Error as error:
            self.repeats = is_unreadable(error) and connection.text_factory is str
            if self.repeats:
                read_all_texts(connection)
            self.fail(translated(error), cause=error)
        except (OverflowError, UnicodeError) as error:  # raised while binding
            self.fail(
                RowRefused(f"SQLite cannot hold what it was given: {type(error).__name__}."), cause=error
            )
        except Exception as error:
            self.error = error

    def fail(self, error: HooklineError, *, cause: BaseException) -> None:
        error.__cause__ = cause
        self.error = error


def commit_together(connection: sqlite3.Connection, jobs: Sequence[WriterTask]) -> None:
    """Run the jobs in one transaction; only the failing ones leave nothing behind."""
    writers = []
    for job in jobs:
        if job.transacts:
            writers.append(job)
        else:
            run_reading(connection, job)
    if not writers:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        if len(writers) == 1:
            _run_alone(connection, writers[0])
        else:
            for _ in run_apart(connection, writers):
                pass
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        for job in writers:
            if job.error is None:
                job.fail(translated(error), cause=error)


def _run_alone(connection: sqlite3.Connection, job: WriterTask) -> None:
    job.run(connection)
    if job.repeats and connection.in_transaction and job.begin_again():
        connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        job.run(connection)
    if job.error is None:
        connection.execute("COMMIT")
    elif connection.in_transaction:
        connection.execute("ROLLBACK")


def run_apart(connection: sqlite3.Connection, jobs: Sequence[WriterTask]) -> Iterator[None]:
    """Run each job in a savepoint of the open transaction: a failing one undoes nothing of the others."""
    for job in jobs:
        connection.execute("SAVEPOINT job")
        yield from job.steps(connection)
        if job.error is not None:
            if not connection.in_transaction:  # a full disk ends the whole transaction
                raise sqlite3.OperationalError("the transaction was rolled back") from job.error
            connection.execute("ROLLBACK TO job")
            if job.begin_again():
                yield from job.steps(connection)
                if job.error is not None:
                    connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")


def run_each(connection: sqlite3.Connection, jobs: Sequence[WriterTask]) -> None:
    """Run jobs that only read."""
    for job in jobs:
        run_reading(connection, job)


def run_reading(connection: sqlite3.Connection, job: WriterTask) -> None:
    """Run a job that only reads; once more if it met a text that is not UTF-8."""
    job.run(connection)
    if job.begin_again():
        job.run(connection)


CarryOut = Callable[[sqlite3.Connection, Sequence[WriterTask]], None]


class Executor(Protocol):
    """Runs work on one connection, one batch after another."""

    def __init__(self, connection: sqlite3.Connection, carry_out: CarryOut) -> None: ...

    async def run(self, work: Work[T], *, transacts: bool = True) -> T:
        """Run it and wait for it; work that does not transact runs before the batch's transaction."""

    async def stop(self) -> None:
        """Finish the work handed in and close the connection."""


class Threaded:
    """A thread that takes everything that waits as one batch."""

    def __init__(self, connection: sqlite3.Connection, carry_out: CarryOut) -> None:
        self._connection = connection
        self._carry_out = carry_out
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[WriterTask | None] = queue.SimpleQueue()
        self._stopped: asyncio.Future[None] | None = None
        self._thread = threading.Thread(target=self._serve, name="hookline-sqlite", daemon=True)
        self._thread.start()

    async def run(self, work: Work[T], *, transacts: bool = True) -> T:
        if self._stopped is not None:
            raise StoreUnavailable("The store is closed.")
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.put(WriterTask(work, transacts=transacts, future=future))
        return await future

    async def stop(self) -> None:
        if self._stopped is None:
            self._stopped = self._loop.create_future()
            self._waiting.put(None)
        await asyncio.shield(self._stopped)
        self._thread.join()

    def _serve(self) -> None:
        going_on = True
        while going_on:
            batch = [self._waiting.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    batch.append(self._waiting.get_nowait())
            going_on = None not in batch
            jobs = [job for job in batch if job is not None]
            self._carry_out(self._connection, jobs)
            if jobs:
                self._on_loop(answer_all, jobs)
        self._connection.close()
        self._on_loop(self._say_stopped)

    def _on_loop(self, callback: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _say_stopped(self) -> None:
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)


def answer_all(jobs: Sequence[WriterTask]) -> None:
    """Give the waiting callers the results of their jobs."""
    for job in jobs:
        future = job.future
        if future is None or future.done():  # its caller was cancelled; the work stays done
            continue
        if job.error is None:
            future.set_result(job.result)
        else:
            future.set_exception(job.error)


class Inline:
    """Does everything at once, on the caller's thread."""

    def __init__(self, connection: sqlite3.Connection, carry_out: CarryOut) -> None:
        self._connection = connection
        self._carry_out = carry_out
        self._stopped = False

    async def run(self, work: Work[T], *, transacts: bool = True) -> T:
        if self._stopped:
            raise StoreUnavailable("The store is closed.")
        job = WriterTask(work, transacts=transacts)
        self._carry_out(self._connection, [job])
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    async def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._connection.close()
