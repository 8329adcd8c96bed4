"""Instruments that only the hookline of these runs has.

It can stall or run out of memory at a failpoint, die at a step of its migrations, count its tasks and connections at SIGUSR2, and
record how long the store took. Variables switch them on; in a released hookline there are none.
"""

import asyncio
import gc
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hookline import failpoints
from hookline.pipeline.sending.client import HttpSender
from hookline.store.postgres.migrations import schema as postgres_schema
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.migrations import schema as sqlite_schema
from hookline.store.sqlite.store import SqliteStore

STALL_S = 2.0
VERBS = ("take", "load", "settle", "accept")


def install() -> None:
    """Do what the variables say."""
    failpoints._ACTIONS["stall"] = stall
    failpoints._ACTIONS["hog"] = hog
    signal.signal(signal.SIGUSR2, _count)
    if os.environ.get("CHAOS_TIMES"):
        times = Path(os.environ["CHAOS_ARM"]).with_suffix(".times")
        for store in (PostgresStore, SqliteStore):
            for verb in VERBS:
                _time(store, verb, times)
    if step := os.environ.get("CHAOS_MIGRATION_STEP"):
        _die_at_step(int(step))


def _count(*_: object) -> None:
    """At SIGUSR2: write down how many tasks there are, and how many connections to receivers are open and idle."""
    senders = [each for each in gc.get_objects() if type(each) is HttpSender]
    connections, idle = sum(each.open_sockets for each in senders), sum(each.idle for each in senders)
    file = Path(os.environ["CHAOS_ARM"]).with_suffix(".counts")
    unfinished = file.with_suffix(".counting")
    unfinished.write_text(f"{len(asyncio.all_tasks())} {connections} {idle}\n")
    unfinished.rename(file)  # whoever waits for it reads all of it


def stall() -> None:
    """Block the event loop, as work does that should run in a thread."""
    end = time.monotonic() + STALL_S
    while time.monotonic() < end:
        pass
    print("chaos.stalled", file=sys.stderr, flush=True)


def hog() -> None:
    """Allocate memory until the kernel kills the process."""
    kept = []
    while True:
        kept.append(bytearray(os.urandom(4096) * 256))


def _time(store: type, verb: str, file: Path) -> None:
    plain: Callable[..., Any] = getattr(store, verb)
    out = file.open("a", buffering=1)

    async def timed(self: Any, *arguments: Any, **named: Any) -> Any:
        at, began = time.time(), time.monotonic()
        try:
            return await plain(self, *arguments, **named)
        finally:
            out.write(f"{verb} {at:.6f} {time.monotonic() - began:.6f}\n")

    setattr(store, verb, timed)


def _die_at_step(last: int) -> None:
    """Kill this process before this step of the migrations: a statement on SQLite, a call on PostgreSQL."""
    steps = itertools.count(1)

    def step() -> None:
        if next(steps) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    statements = sqlite_schema._statements

    def counted(script: str) -> Iterator[str]:
        for statement in statements(script):
            step()
            yield statement
        step()  # all is done but the record

    sqlite_schema._statements = counted
    plain = postgres_schema.bring_up_to_date

    async def watched(connection: Any) -> list[str]:
        return await plain(_Watched(connection, step))

    import hookline.store.postgres.store as store

    store.bring_up_to_date = watched


class _Watched:
    """A connection that counts its statements."""

    def __init__(self, connection: Any, step: Callable[[], None]) -> None:
        self._connection = connection
        self._step = step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def execute(self, *arguments: Any) -> Any:
        self._step()
        done = await self._connection.execute(*arguments)
        self._step()
        return done
