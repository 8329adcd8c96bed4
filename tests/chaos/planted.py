"""Can the checker see a bug?

This is `hookline` with a bug planted in it, named by CHAOS_BUG; without one it is `hookline` as it is. It
lives here and nowhere else: no release holds a line of it. Also here: at SIGUSR1 a running process reads
failpoints from the file that CHAOS_ARM names, so that the one that is to die can be chosen while it works.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import Any

import msgspec

import hookline.cli.serve
import hookline.cli.work
from hookline import failpoints
from hookline.cli import main
from hookline.pipeline import intake, worker
from hookline.pipeline.sender.contract import Answer
from hookline.pipeline.sender.http import HttpSender
from hookline.store.contract import Acceptance, Publication
from hookline.store.postgres import session as postgres_session
from hookline.store.postgres import sql as postgres_sql
from hookline.store.postgres.store import PostgresStore

AHEAD_S = 0.3  # how far a promise runs ahead of its deed, where that is the bug


def settle_before_send() -> None:
    """A delivery counts as delivered before its request has left."""
    send = HttpSender.send

    def early(self: HttpSender, request: Any, done: Callable[[Answer], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(done, Answer(0.001, status=200))
        loop.call_later(AHEAD_S, send, self, request, lambda _: None)

    HttpSender.send = early  # type: ignore[method-assign]


def answer_before_commit() -> None:
    """A publish is answered while its commit is still to come."""
    kept: set[asyncio.Task[None]] = set()

    async def early(self: Any, entries: list[Any], now: float, seen: int) -> Acceptance:
        batch = [Publication(entry.event, entry.endpoints, intake._digest(entry.draft)) for entry in entries]

        async def late() -> None:
            await asyncio.sleep(AHEAD_S)
            await self._store.accept(batch, catalogue=seen, now=now)
            for endpoint in {each for entry in entries for each in entry.endpoints}:
                self._worker.announce(endpoint)

        task = asyncio.create_task(late())
        kept.add(task)
        self._drop_reservations(entries)
        for entry in entries:
            entry.endpoints = ()
        return Acceptance(stale=False)

    intake.Intake._store_batch = early  # type: ignore[method-assign]


def forget_keys() -> None:
    """The idempotency key is not part of the commit."""
    read = intake.Intake._store_batch

    async def keyless(self: Any, entries: list[Any], now: float, seen: int) -> Acceptance:
        for entry in entries:
            entry.event = msgspec.structs.replace(entry.event, idempotency_key=None)
        return await read(self, entries, now, seen)

    intake.Intake._store_batch = keyless  # type: ignore[method-assign]


def settle_unfenced() -> None:
    """A worker that lost its lane settles all the same, whatever others settled before."""
    fence = "JOIN lanes l ON l.endpoint_id = s.endpoint_id AND l.epoch = s.epoch\n  WHERE l.owner IS NOT DISTINCT FROM me.id AND d.id"
    guard = "AND d.state = 'pending' AND d.attempts = s.number - 1 AND d.replays = s.replays"
    if fence not in postgres_sql.SETTLE or guard not in postgres_sql.SETTLE:
        raise SystemExit("the statement to be broken has changed: planted.py must follow")
    postgres_sql.SETTLE = postgres_sql.SETTLE.replace(fence, "\n  WHERE d.id").replace(guard, "")


def exit_at_once() -> None:
    """SIGTERM ends the process on the spot."""

    def leave(_: asyncio.Event) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)

    hookline.cli.serve.on_signals = leave
    hookline.cli.work.on_signals = leave


def bury_without_freeing() -> None:
    """A dead worker's row is cleared away and its lanes stay its own."""

    async def careless(store: Any, clock: Any, dead: Any) -> None:
        for id, beat in dead:
            if await store.bury(id, beat=beat, now=clock.now()):
                failpoints.failpoint("bury.after")

    worker.bury = careless


def commit_unflushed() -> None:
    """PostgreSQL answers a commit before it is on the disk, and hookline lets it."""
    postgres_session.HOT["synchronous_commit"] = "off"
    PostgresStore.__init__ = partialmethod(PostgresStore.__init__, unsafe=True)  # type: ignore[method-assign]


def wait_for_ever() -> None:
    """A call to the database has no ceiling."""
    PostgresStore.__init__ = partialmethod(PostgresStore.__init__, call_timeout=None)  # type: ignore[method-assign]


def take_what_is_taken() -> None:
    """Lanes are taken whether or not somebody has them."""
    free = "WHERE owner IS NULL AND NOT paused AND wake_at < 'infinity' AND wake_at <= to_timestamp($2) AND"
    if free not in postgres_sql.TAKE:
        raise SystemExit("the statement to be broken has changed: planted.py must follow")
    postgres_sql.TAKE = postgres_sql.TAKE.replace(
        free, "WHERE owner IS DISTINCT FROM $1 AND NOT paused AND $2 > 0 AND"
    )


BUGS: dict[str, Callable[[], None]] = {
    "settle-before-send": settle_before_send,
    "answer-before-commit": answer_before_commit,
    "forget-keys": forget_keys,
    "settle-unfenced": settle_unfenced,
    "exit-at-once": exit_at_once,
    "bury-without-freeing": bury_without_freeing,
    "commit-unflushed": commit_unflushed,
    "wait-for-ever": wait_for_ever,
    "take-what-is-taken": take_what_is_taken,
}


def _arm(*_: object) -> None:
    failpoints.plant(Path(os.environ["CHAOS_ARM"]).read_text())


if __name__ == "__main__":
    if os.environ.get("CHAOS_ARM"):
        signal.signal(signal.SIGUSR1, _arm)
    if bug := os.environ.get("CHAOS_BUG"):
        BUGS[bug]()
    main()
