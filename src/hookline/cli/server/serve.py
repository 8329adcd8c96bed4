"""Runs a server.

It binds its port, opens the database, listens and says so. When it is told to stop, it accepts no more and drains. It
is one process, or several of the same kind under one parent (`processes`).
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address

import click
import structlog

from hookline.admin.audit import acting
from hookline.admin.key_cache import KeyCache
from hookline.admin.keys import KeyAdmin, KeyReport
from hookline.api.app import Api
from hookline.api.server import FINISH_WITHIN_S, ApiServer
from hookline.app import Hookline, key_admin, store_for, tls_contexts
from hookline.cli.database.origin import command_line
from hookline.cli.server import logs
from hookline.cli.server.lifetime import (
    end,
    on_letting_go,
    on_signals,
    prepare,
    say_stopping,
    spare_the_collector,
)
from hookline.cli.server.processes import Child, Parent
from hookline.cli.streams import give_up_printing
from hookline.clock import SystemClock
from hookline.config import Settings
from hookline.dashboard.app import Dashboard
from hookline.dashboard.visit.portal import Portal
from hookline.errors import ConfigError, HooklineError
from hookline.pipeline.sending import open_files
from hookline.rules.own_address import Place
from hookline.version import VERSION

DRAIN_BEGINS_S = 0.1  # after the signal, even if requests are still being answered
GRACE_S = 5.0  # for a process to end, beyond the time it has to finish its work
FIRST_KEY = """hookline created the first API key of this database. It is shown only once; keep it in a safe place:

    {key}

Send it as 'Authorization: Bearer <key>'; hookline's own commands read it from HOOKLINE_API_KEY.
It allows everything. `hookline keys create` creates restricted keys, `hookline keys revoke` revokes a key.

"""
FIRST_KEY_PRINTED = (
    "hookline created the first API key of this database and printed it, once, on standard output."
)
FIRST_KEY_LOST = (
    "hookline created the first API key of this database and could not print it: revoke it with `hookline keys "
    "revoke`, and create another with `hookline keys create --scope admin`."
)
NO_KEY_LEFT = (
    "hookline: all API keys of this database are revoked; `hookline keys create --scope admin` creates one."
)

Sources = Mapping[str, str]  # the flag, variable or file line that a setting comes from; defaults have none
_NO_SOURCES: Sources = {}

log = structlog.get_logger()


class CannotListen(HooklineError):
    """The address is taken or not one of this machine's, or the listening socket failed."""


def run(settings: Settings, *, delivers: bool = True, sources: Sources = _NO_SOURCES) -> None:
    """Serve until told to stop."""
    _check(settings)
    open_files.raise_limit()
    with contextlib.ExitStack() as sockets:
        listeners = _Listeners(settings, sockets)
        if settings.processes > 1:
            sys.exit(_parent(settings, listeners, delivers=delivers, sources=sources).run())
        end(is_drained=logs.in_loop(_serve_alone(settings, listeners, delivers=delivers, sources=sources)))


def _check(settings: Settings) -> None:
    if settings.dev and not _is_loopback(settings.host):
        raise ConfigError(
            f"--host: {settings.host} is not a loopback address; --dev listens on loopback only."
        )
    if settings.processes > 1 and settings.database.startswith("sqlite:"):
        raise ConfigError(
            f"--processes: {settings.processes} processes need PostgreSQL; an SQLite file is served by one."
        )
    Portal(settings)  # raises if its logo cannot be used
    tls_contexts(settings)  # likewise for the file of authorities


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"  # any other name may point anywhere


class _Listeners:
    """The socket that all processes share, and one of each process alone if its metrics are to be had apart."""

    def __init__(self, settings: Settings, sockets: contextlib.ExitStack) -> None:
        self.shared = sockets.enter_context(_listener(settings, settings.port, flag="--port"))
        self.own: list[socket.socket] = []
        first = settings.metrics_port
        if first is not None:
            for n in range(settings.processes):
                port = first + n if first else 0
                self.own.append(
                    sockets.enter_context(_listener(settings, port, flag="HOOKLINE_METRICS_PORT"))
                )

    def of(self, place: int) -> list[socket.socket]:
        """What the process of this number listens on."""
        return [self.shared, *self.own[place : place + 1]]

    def places(self) -> tuple[Place, ...]:
        """Where all of the processes listen."""
        return tuple(
            (host, port) for host, port, *_ in (each.getsockname() for each in (self.shared, *self.own))
        )

    def close(self) -> None:
        """Accept no more connections."""
        for each in (self.shared, *self.own):
            each.close()


def _listener(settings: Settings, port: int, *, flag: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, port))
    except (OSError, UnicodeError) as error:
        listener.close()
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotListen(f"cannot listen on {settings.host} port {port} (--host, {flag}): {why}.") from None
    return listener


async def _serve_alone(
    settings: Settings, listeners: _Listeners, *, delivers: bool, sources: Sources
) -> bool:
    stopping = asyncio.Event()
    on_signals(stopping)
    await prepare(settings.database)

    async def greet(hookline: Hookline) -> None:
        await _say_first_key(hookline.keys, hookline.key_cache, settings)
        _greet(settings, listeners)

    return await _serve(
        settings,
        listeners,
        stopping,
        delivers=delivers,
        sources=sources,
        on_listening=greet,
        on_stopping=say_stopping,
    )


def _parent(settings: Settings, listeners: _Listeners, *, delivers: bool, sources: Sources) -> Parent:
    async def prepare_all() -> None:
        await prepare(settings.database)
        store = store_for(settings.database)
        await store.open(serve=False)
        try:
            await _say_first_key(key_admin(store), KeyCache(store, SystemClock()), settings)
        finally:
            await store.close()

    async def serve(child: Child) -> bool:
        stopping = asyncio.Event()
        on_signals(stopping)
        on_letting_go(child.leash, stopping)

        async def report(hookline: Hookline) -> None:
            child.is_up()

        return await _serve(
            settings,
            listeners,
            stopping,
            place=child.place,
            delivers=delivers,
            sources=sources,
            on_listening=report,
        )

    return Parent(
        settings.processes,
        SystemClock(),
        prepare=lambda: logs.in_loop(prepare_all()),
        serve=lambda child: logs.in_loop(serve(child)),
        on_up=lambda: _greet(settings, listeners),
        on_leave=listeners.close,
        within=settings.drain_s + FINISH_WITHIN_S + GRACE_S,
    )


async def _serve(
    settings: Settings,
    listeners: _Listeners,
    stopping: asyncio.Event,
    *,
    place: int = 0,
    delivers: bool,
    sources: Sources,
    on_listening: Callable[[Hookline], Awaitable[None]],
    on_stopping: Callable[[Hookline], None] = lambda _: None,
) -> bool:
    """Serve until `stopping`; returns whether everything under way was finished."""
    hookline = Hookline(settings=settings, kind="serve" if delivers else "api", deliver=delivers)
    hookline.on_outgrown = stopping.set
    hookline.destinations.listening = listeners.places()
    await hookline.start()
    spare_the_collector()
    api = Api(hookline)
    api.pages = dashboard = Dashboard(hookline, api, sources=sources)
    server = ApiServer(api, hookline.clock)
    serving = asyncio.create_task(server.serve(sockets=listeners.of(place)))
    try:
        await _either(server.is_listening, serving)
        await on_listening(hookline)
        await _either(stopping, serving)
    finally:
        dashboard.leave()
        server.leave()
        on_stopping(hookline)
        await asyncio.wait({serving}, timeout=DRAIN_BEGINS_S)
        is_drained = await hookline.stop()
        await serving
    if hookline.outgrown is not None:
        raise hookline.outgrown
    return is_drained


async def _say_first_key(keys: KeyAdmin, key_cache: KeyCache, settings: Settings) -> None:
    """Say what an operator must know about keys where the settings name none."""
    if settings.dev or settings.api_key is not None:
        return
    with acting(command_line()):
        made = await keys.create_first()
    if made is not None:
        _show_first_key(made)
        return
    await key_cache.look()
    if key_cache.is_empty():
        logs.tell("keys.revoked", NO_KEY_LEFT)


async def _either(event: asyncio.Event, serving: "asyncio.Task[None]") -> None:
    """Wait for the event. A server that ends by itself is an error; its own exception is raised if it had one."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if serving.done():
        await serving
        raise CannotListen("the server stopped unexpectedly; its log says why.")


def _show_first_key(made: KeyReport) -> None:
    """Show the key once. A log is kept and passed on, so no credential goes there."""
    if logs.is_for_people():
        click.echo(FIRST_KEY.format(key=made.key), err=True, nl=False)
        return
    try:
        click.echo(made.key)
        message = FIRST_KEY_PRINTED
    except OSError:
        give_up_printing()
        message = FIRST_KEY_LOST
    log.warning("key.created", message=message, key_id=made.id)


def _greet(settings: Settings, listeners: _Listeners) -> None:
    host, port = listeners.shared.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    logs.tell(
        "server.started",
        _greeting(settings, url),
        version=VERSION,
        url=url,
        processes=settings.processes,
        metrics_ports=[port for _, port in listeners.places()[1:]],
        dev=settings.dev,
    )


def _greeting(settings: Settings, url: str) -> str:
    mode = (
        " (development mode: loopback only, no key needed, private networks allowed)" if settings.dev else ""
    )
    several = f" with {settings.processes} processes" if settings.processes > 1 else ""
    return f"hookline {VERSION} listening on {url}{several}{mode} - dashboard: {url}/"
