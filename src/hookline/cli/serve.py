"""How does the server process live and end?

It binds its port, opens the database, listens and says so. The first SIGTERM or SIGINT stops accepting and
drains; a second one ends the process on the spot, which loses nothing: what was not settled is sent again.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
from ipaddress import ip_address

import click
import uvloop

from hookline.api.app import Api
from hookline.api.server import ApiServer
from hookline.app import Hookline, store_for
from hookline.cli import logs
from hookline.cli.showing import counted
from hookline.config import Settings
from hookline.errors import ConfigError, HooklineError, SchemaMissing
from hookline.version import VERSION

GC_AFTER = 10_000  # objects; events and deliveries come and go by the thousand and hold no cycles
DRAIN_BEGINS_S = 0.1  # after the signal, even if requests are still being answered
STOPPED = "hookline has stopped."
UNDRAINED = "hookline has stopped before all was answered; what is left is sent again after the next start."


class CannotListen(HooklineError):
    """The address is taken or not one of this machine's, or listening came to an end."""


def run(settings: Settings) -> None:
    """Serve until told to stop."""
    _check(settings)
    logs.configure()
    listener = _listener(settings)
    with listener, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, listener))


def _check(settings: Settings) -> None:
    if settings.dev and not _is_loopback(settings.host):
        raise ConfigError(
            f"--host: {settings.host} is not this machine only; --dev listens on loopback alone."
        )
    if not settings.dev and settings.api_key is None:
        raise ConfigError(
            "no API key: set HOOKLINE_API_KEY to the key clients must send, or use --dev to try things out."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"  # any other name may be pointed anywhere


def _listener(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except (OSError, UnicodeError) as error:
        listener.close()
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotListen(f"cannot listen on {settings.host} port {settings.port}: {why}.") from None
    return listener


async def _serve(settings: Settings, listener: socket.socket) -> None:
    stopping = asyncio.Event()
    _on_signals(stopping)
    await _prepare(settings.database)
    hookline = Hookline(settings=settings, kind="serve")
    await hookline.start()
    _spare_the_collector()
    server = ApiServer(Api(hookline), hookline.clock)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await _either(server.is_listening, serving)
        click.echo(_greeting(settings, listener), err=True)
        await _either(stopping, serving)
    finally:
        server.leave()
        click.echo(_stopping(hookline.worker.dispatcher.in_flight, within=settings.drain_s), err=True)
        await asyncio.wait({serving}, timeout=DRAIN_BEGINS_S)
        is_drained = await hookline.stop()
        await serving
        click.echo(STOPPED if is_drained else UNDRAINED, err=True)


def _spare_the_collector() -> None:
    """What was built at the start stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_AFTER, 20, 100)


async def _either(event: asyncio.Event, serving: "asyncio.Task[None]") -> None:
    """Wait for the event; a server that ends by itself is an error, and raises its own if it had one."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if serving.done():
        await serving
        raise CannotListen("the server ended by itself.")


async def _prepare(database: str) -> None:
    """Bring up the schema of an embedded database, and of a shared one that is empty.

    Nothing else is done to a shared one: other processes, of another version, may be using it.
    """
    store = store_for(database)
    if database.startswith("sqlite:"):
        await store.migrate()
        return
    try:
        await store.open(serve=False)
    except SchemaMissing:
        await store.migrate()
    finally:
        await store.close()


def _on_signals(stopping: asyncio.Event) -> None:
    def stop() -> None:
        if stopping.is_set():
            sys.stderr.flush()
            os._exit(1)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)


def _stopping(in_flight: int, *, within: float) -> str:
    if in_flight == 0:
        return "hookline is stopping; nothing is under way."
    under_way = counted(in_flight, "request", "requests")
    return f"hookline is stopping: {under_way} under way, {within:g} s at most; a second signal ends it now."


def _greeting(settings: Settings, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    mode = (
        " (development mode: loopback only, no key needed, private networks allowed)" if settings.dev else ""
    )
    return f"hookline {VERSION} listening on http://{shown}:{port}{mode}"
