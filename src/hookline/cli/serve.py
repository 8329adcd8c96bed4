"""How does the server process live and end?

It binds its port, opens the database, listens and says so. Told to stop, it accepts no more and drains.
"""

import asyncio
import socket
from ipaddress import ip_address

import click
import uvloop

from hookline.api.app import Api
from hookline.api.server import ApiServer
from hookline.app import Hookline
from hookline.cli import logs
from hookline.cli.lifetime import on_signals, prepare, say_stopped, say_stopping, spare_the_collector
from hookline.config import Settings
from hookline.errors import ConfigError, HooklineError
from hookline.version import VERSION

DRAIN_BEGINS_S = 0.1  # after the signal, even if requests are still being answered
FIRST_KEY = """hookline made the first API key of this database. It is shown this once, and kept nowhere:

    {key}

Send it as 'Authorization: Bearer <key>'; hookline's own commands take it from HOOKLINE_API_KEY.
It may do everything: `hookline keys create` makes others that may do less, `hookline keys revoke` ends one.

"""
NO_KEY_LEFT = (
    "hookline: all keys of this database are revoked; `hookline keys create --scope admin` makes one.\n"
)


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
    on_signals(stopping)
    await prepare(settings.database)
    hookline = Hookline(settings=settings, kind="serve")
    await hookline.start()
    spare_the_collector()
    server = ApiServer(Api(hookline), hookline.clock)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await _either(server.is_listening, serving)
        if not settings.dev and settings.api_key is None:
            click.echo(await _first_key(hookline), err=True, nl=False)
        click.echo(_greeting(settings, listener), err=True)
        await _either(stopping, serving)
    finally:
        server.leave()
        say_stopping(hookline)
        await asyncio.wait({serving}, timeout=DRAIN_BEGINS_S)
        is_drained = await hookline.stop()
        await serving
        say_stopped(is_drained=is_drained)


async def _first_key(hookline: Hookline) -> str:
    """What is to be said about keys where the settings name none."""
    made = await hookline.keys.create_first()
    if made is None:
        await hookline.keyring.look()
        return NO_KEY_LEFT if hookline.keyring.is_empty() else ""
    return FIRST_KEY.format(key=made.key)


async def _either(event: asyncio.Event, serving: "asyncio.Task[None]") -> None:
    """Wait for the event; a server that ends by itself is an error, and raises its own if it had one."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if serving.done():
        await serving
        raise CannotListen("the server ended by itself.")


def _greeting(settings: Settings, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    mode = (
        " (development mode: loopback only, no key needed, private networks allowed)" if settings.dev else ""
    )
    return f"hookline {VERSION} listening on http://{shown}:{port}{mode}"
