"""Runs a process that delivers and has no API.

On PostgreSQL any number of workers share the lanes with each other and with servers. An SQLite file has one process,
and it may be a worker.
"""

import asyncio

from hookline.app import Hookline, tls_contexts
from hookline.cli.server import logs
from hookline.cli.server.lifetime import end, on_signals, prepare, say_stopping, spare_the_collector
from hookline.config import Settings
from hookline.pipeline.sending import open_files
from hookline.store.database_url import shown
from hookline.version import VERSION


def run(settings: Settings) -> None:
    """Deliver until told to stop."""
    tls_contexts(settings)  # raises if the file of authorities cannot be used
    open_files.raise_limit()
    end(is_drained=logs.in_loop(_work(settings)))


async def _work(settings: Settings) -> bool:
    stopping = asyncio.Event()
    on_signals(stopping)
    await prepare(settings.database)
    hookline = Hookline(settings=settings, kind="worker")
    hookline.on_outgrown = stopping.set
    await hookline.start()
    spare_the_collector()
    database = shown(settings.database)
    logs.tell(
        "worker.started",
        f"hookline {VERSION} delivering from {database}",
        version=VERSION,
        database=database,
    )
    try:
        await stopping.wait()
    finally:
        say_stopping(hookline)
        is_drained = await hookline.stop()
    if hookline.outgrown is not None:
        raise hookline.outgrown
    return is_drained
