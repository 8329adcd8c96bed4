"""Runs the statements of a batch on the event loop while a thread commits.

The statements of a batch run on the loop's own thread: they are pure computation, and a second thread would wait up to
5 ms for the interpreter's lock at each one. Only the commit, which waits for the disk, runs on the writer thread.
Writes that arrive meanwhile form the next batch. Long work is done in parts, one part in each turn of the loop.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from hookline.errors import StoreUnavailable
from hookline.store.sqlite.driver.connection import BUSY_TIMEOUT_S
from hookline.store.sqlite.driver.faults import translated
from hookline.store.sqlite.driver.writer import CarryOut, Work, WriterTask, answer_all, run_apart, run_reading

T = TypeVar("T")

_RETRY_S = 0.005  # between two tries for a lock that another process holds


class OnLoop:
    """Runs statements on the loop and waits for the disk on a thread."""

    def __init__(self, connection: sqlite3.Connection, carry_out: CarryOut) -> None:
        connection.execute(
            "PRAGMA busy_timeout = 0"
        )  # the loop never waits for another process: the thread does
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._waiting: list[WriterTask] = []
        self._is_busy = False
        self._stopped: asyncio.Future[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._ended = asyncio.Event()  # the thread is about to end
        self._statements: queue.SimpleQueue[tuple[str, Callable[[sqlite3.Error | None], None]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._serve, name="hookline-sqlite-commit", daemon=True)
        self._thread.start()

    async def run(self, work: Work[T], *, transacts: bool = True) -> T:
        if self._stopped is not None:
            raise StoreUnavailable("The store is closed.")
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append(WriterTask(work, transacts=transacts, future=future))
        self._idle.clear()
        if not self._is_busy:
            self._is_busy = True
            self._loop.call_soon(self._begin)
        return await future

    async def stop(self) -> None:
        if self._stopped is None:
            self._stopped = self._loop.create_future()
            await self._idle.wait()
            # Without an executor, which waits on a thread: hookline also stops while the interpreter ends.
            self._statements.put(None)
            await self._ended.wait()
            self._thread.join()
            self._connection.close()
            self._stopped.set_result(None)
        await asyncio.shield(self._stopped)

    def _begin(self) -> None:
        jobs, self._waiting = self._waiting, []
        for job in jobs:
            if not job.transacts:
                run_reading(self._connection, job)
        answer_all([job for job in jobs if not job.transacts])
        writers = [job for job in jobs if job.transacts]
        if not writers:
            self._next()
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if not _is_locked(error):
                self._end(writers, error)
                return
            self._statements.put(("BEGIN IMMEDIATE", lambda refused: self._began(writers, refused)))
            return
        self._began(writers, None)

    def _began(self, jobs: list[WriterTask], refused: sqlite3.Error | None) -> None:
        if refused is not None:
            self._end(jobs, refused)
            return
        self._go_on(jobs, run_apart(self._connection, jobs))

    def _go_on(self, jobs: list[WriterTask], steps: Iterator[None]) -> None:
        try:
            for _ in steps:
                self._loop.call_soon(self._go_on, jobs, steps)
                return
        except sqlite3.Error as error:
            self._end(jobs, error)
            return
        self._statements.put(("COMMIT", lambda refused: self._end(jobs, refused)))

    def _end(self, jobs: list[WriterTask], refused: sqlite3.Error | None) -> None:
        if refused is not None:
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            for job in jobs:
                if job.error is None:
                    job.fail(translated(refused), cause=refused)
        answer_all(jobs)
        self._next()

    def _next(self) -> None:
        if self._waiting:
            self._loop.call_soon(self._begin)
        else:
            self._is_busy = False
            self._idle.set()

    def _serve(self) -> None:
        while (asked := self._statements.get()) is not None:
            statement, then = asked
            refused = self._wait_for(statement)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(then, refused)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended.set)

    def _wait_for(self, statement: str) -> sqlite3.Error | None:
        refused: sqlite3.Error | None = None
        for _ in range(int(BUSY_TIMEOUT_S / _RETRY_S)):
            try:
                self._connection.execute(statement)
                return None
            except sqlite3.Error as error:
                refused = error
                if not _is_locked(error):
                    break
            threading.Event().wait(_RETRY_S)
        return refused


def _is_locked(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
