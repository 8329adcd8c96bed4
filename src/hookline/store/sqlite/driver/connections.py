"""Gives each verb of the SQLite store the connection that it runs on.

All writes go through one connection, which commits waiting writes together. Loads have a connection of their own, and so
have the lists that people ask for, which may take long, and the counts, which take longest. A verb that is one piece of
work is a method whose second argument is its connection; a decorator names the connection.
"""

import os
import sqlite3
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from hookline.clock import Clock, SystemClock
from hookline.errors import StoreUnavailable
from hookline.store.contract.slow_verbs import SlowVerbs
from hookline.store.sqlite.driver.connection import connect
from hookline.store.sqlite.driver.lock import ServingLock
from hookline.store.sqlite.driver.presence import FilePresence
from hookline.store.sqlite.driver.timekeeping import FileTime
from hookline.store.sqlite.driver.writer import Executor, Threaded, Work, run_each

T = TypeVar("T")
Id = TypeVar("Id", bound=bytes)
P = ParamSpec("P")
S = TypeVar("S", bound="SqliteConnections")

Given = Callable[Concatenate[S, sqlite3.Connection, P], T]  # as it is written
Verb = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]  # as it is called


class SqliteConnections:
    """The file, with a connection for each kind of work."""

    def __init__(
        self,
        path: str,
        *,
        clock: Clock | None = None,
        executor: Callable[..., Executor] | None = None,
    ) -> None:
        self._path = path
        self._folder = os.path.dirname(path) or "."
        self._clock = clock or SystemClock()
        self._time = FileTime(self._clock)
        self._executor = executor
        self.slow_verbs = SlowVerbs()
        self._lock = ServingLock(path)
        self._presence: FilePresence | None = None
        self._writer: Executor | None = None
        self._loader: Executor | None = None
        self._lister: Executor | None = None
        self._counter: Executor | None = None  # made on first use

    async def _write(self, work: Work[T]) -> T:
        if self._writer is None:
            raise StoreUnavailable("The store is not open.")
        return await self._writer.run(work)

    async def _load(self, work: Work[T]) -> T:
        if self._loader is None:
            raise StoreUnavailable("The store is not open.")
        return await self._loader.run(work)

    async def _read(self, work: Work[T]) -> T:
        if self._lister is None:
            raise StoreUnavailable("The store is not open.")
        return await self._lister.run(work)

    async def _list(
        self, step: Callable[..., tuple[list[T], Id | None]], *, after: Id | None, limit: int
    ) -> list[T]:
        """Newest first, from below the id `after`: in steps, so that others have their turn."""
        found: list[T] = []
        while True:
            more, after = await self._read(partial(step, after=after, limit=limit - len(found)))
            found += more
            if after is None or len(found) == limit:
                return found

    async def _count(self, work: Work[T]) -> T:
        if self._lister is None:
            raise StoreUnavailable("The store is not open.")
        if self._counter is None:
            self._counter = (self._executor or Threaded)(connect(self._path), run_each)
        return await self._counter.run(work)


def on_writer(work: Given[S, P, T]) -> Verb[S, P, T]:
    """A verb that writes, in one transaction."""

    @wraps(work)
    async def verb(self: S, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._write(lambda connection: work(self, connection, *given, **named))

    return verb


def on_loader(work: Given[S, P, T]) -> Verb[S, P, T]:
    """A verb that reads what delivering waits for."""

    @wraps(work)
    async def verb(self: S, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._load(lambda connection: work(self, connection, *given, **named))

    return verb


def on_lister(work: Given[S, P, T]) -> Verb[S, P, T]:
    """A verb that reads what people ask for."""

    @wraps(work)
    async def verb(self: S, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._read(lambda connection: work(self, connection, *given, **named))

    return verb


def on_counter(work: Given[S, P, T]) -> Verb[S, P, T]:
    """A verb that counts, however many there are."""

    @wraps(work)
    async def verb(self: S, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._count(lambda connection: work(self, connection, *given, **named))

    return verb
