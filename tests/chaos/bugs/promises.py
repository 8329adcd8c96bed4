"""Bugs: hookline answers before the work is done."""

import asyncio
import copy
import os
import signal
from collections.abc import Callable
from typing import Any

import msgspec

import hookline.cli.server.serve
import hookline.cli.server.worker
from hookline.pipeline.intake import accept
from hookline.pipeline.sending.client import HttpSender
from hookline.pipeline.sending.contract import SendResult
from hookline.store.contract import Acceptance

AHEAD_S = 0.3  # how long before the work is done


def settle_before_send() -> None:
    """A delivery counts as delivered before its request has left."""
    send = HttpSender.send

    def early(self: HttpSender, request: Any, done: Callable[[SendResult], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(done, SendResult(0.001, status=200))
        loop.call_later(AHEAD_S, send, self, request, lambda _: None)

    HttpSender.send = early


def answer_before_commit() -> None:
    """A publish is answered before its commit."""
    store = accept.Intake._store_batch
    kept: set[asyncio.Task[None]] = set()

    async def early(self: Any, entries: list[Any], now: float, seen: int) -> Acceptance:
        batch = [copy.copy(entry) for entry in entries]

        async def late() -> None:
            await asyncio.sleep(AHEAD_S)
            await store(self, batch, now, seen)
            for endpoint in {each for entry in batch for each in entry.endpoints}:
                self._handover.announce(endpoint)

        task = asyncio.create_task(late())
        kept.add(task)
        self._drop_reservations(entries)
        for entry in entries:
            entry.endpoints = ()
        return Acceptance(stale=False)

    accept.Intake._store_batch = early


def forget_keys() -> None:
    """The idempotency key is not part of the commit."""
    read = accept.Intake._store_batch

    async def keyless(self: Any, entries: list[Any], now: float, seen: int) -> Acceptance:
        for entry in entries:
            entry.event = msgspec.structs.replace(entry.event, idempotency_key=None)
        return await read(self, entries, now, seen)

    accept.Intake._store_batch = keyless


def exit_at_once() -> None:
    """SIGTERM ends the process at once."""

    def leave(_: asyncio.Event) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)

    hookline.cli.server.serve.on_signals = leave
    hookline.cli.server.worker.on_signals = leave


BUGS: dict[str, Callable[[], None]] = {
    "settle-before-send": settle_before_send,
    "answer-before-commit": answer_before_commit,
    "forget-keys": forget_keys,
    "exit-at-once": exit_at_once,
}
