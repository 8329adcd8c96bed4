"""How does a process that stays begin and end?

The first SIGTERM or SIGINT begins the end: it finishes what is under way and says so. A second one ends the
process on the spot, which loses nothing: what was not settled is sent again.
"""

import asyncio
import gc
import os
import signal
import sys

import click

from hookline.app import Hookline, store_for
from hookline.cli.exits import FAILED
from hookline.cli.output import counted
from hookline.errors import SchemaBehind, SchemaMissing

GC_AFTER = 10_000  # objects; events and deliveries come and go by the thousand and hold no cycles
STOPPED = "hookline has stopped."
UNDRAINED = "hookline has stopped before all was answered; what is left is sent again after the next start."


def on_signals(stopping: asyncio.Event) -> None:
    """Set the event at the first signal, end at the second.

    Signals alone are counted: a child may be let go of by its parent just before the signal that both were sent.
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
    """Set the event when the other end of the pipe is closed: the parent stops, or is dead."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_reader(leash)
        stopping.set()

    loop.add_reader(leash, stop)


async def prepare(database: str) -> None:
    """Bring up the schema of an embedded database that nobody serves, and of a shared one that is empty.

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
    """What was built at the start stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_AFTER, 20, 100)


def say_stopping(hookline: Hookline) -> None:
    """What is still to be finished."""
    in_flight = hookline.worker.dispatcher.in_flight
    if in_flight == 0:
        click.echo("hookline is stopping; nothing is under way.", err=True)
        return
    under_way = f"{counted(in_flight, 'request', 'requests')} under way"
    within = f"{hookline.settings.drain_s:g} s at most"
    click.echo(f"hookline is stopping: {under_way}, {within}; a second signal ends it now.", err=True)


def end(*, is_drained: bool) -> None:
    """Say how it ended; a process that left something unfinished ends with a code of its own."""
    click.echo(STOPPED if is_drained else UNDRAINED, err=True)
    if not is_drained:
        sys.exit(FAILED)
