"""Starts and stops a long-running process.

The first SIGTERM or SIGINT begins the stop: the process finishes what is under way and says so. A second signal ends
it at once. That loses nothing: what was not settled is sent again.
"""

import asyncio
import gc
import os
import signal
import sys

from hookline.app import Hookline, store_for
from hookline.cli.exits import FAILED
from hookline.cli.output import counted
from hookline.cli.server.logs import tell
from hookline.errors import SchemaBehind, SchemaMissing

GC_AFTER = 10_000  # objects; events and deliveries come and go by the thousand and hold no cycles
STOPPED = "hookline has stopped."
UNDRAINED = (
    "hookline has stopped before all requests were answered; the rest is sent again after the next start."
)


def on_signals(stopping: asyncio.Event) -> None:
    """Set the event at the first signal, end the process at the second.

    Only signals are counted: a parent may let go of a child just before the signal that both were sent.
    """
    was_told = False

    def stop() -> None:
        nonlocal was_told
        if was_told:
            sys.stderr.flush()
            os._exit(1)
        was_told = True
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)


def on_letting_go(leash: int, stopping: asyncio.Event) -> None:
    """Set the event when the other end of the pipe is closed: the parent is stopping, or dead."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_reader(leash)
        stopping.set()

    loop.add_reader(leash, stop)


async def prepare(database: str) -> None:
    """Create or migrate the schema of an embedded database that no process serves; create that of an empty shared one.

    Nothing else is done to a shared one: other processes, of another version, may be using it.
    """
    store = store_for(database)
    is_embedded = database.startswith("sqlite:")
    try:
        await store.open(serve=is_embedded)
    except SchemaMissing:
        await store.migrate()
    except SchemaBehind:
        if not is_embedded:
            raise
        await store.migrate()
    finally:
        await store.close()


def spare_the_collector() -> None:
    """Exclude what was built at the start from garbage collection: it stays, so scanning it again is wasted."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_AFTER, 20, 100)


def say_stopping(hookline: Hookline) -> None:
    """Say what is still to be finished."""
    in_flight = hookline.worker.dispatcher.in_flight
    if in_flight == 0:
        tell("process.stopping", "hookline is stopping; no request is in flight.", in_flight=0)
        return
    waiting = f"waiting up to {hookline.settings.drain_s:g} s for {counted(in_flight, 'request', 'requests')} in flight"
    message = f"hookline is stopping: {waiting}; a second signal stops it at once."
    tell("process.stopping", message, in_flight=in_flight)


def end(*, is_drained: bool) -> None:
    """Say how it ended; a process that left something unfinished has an exit code of its own."""
    tell("process.stopped", STOPPED if is_drained else UNDRAINED, drained=is_drained)
    if not is_drained:
        sys.exit(FAILED)
