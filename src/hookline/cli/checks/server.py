"""Checks that a server answers and accepts the key."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from hookline.cli.checks.findings import Finding, bad, ok, warn
from hookline.cli.checks.machine import check_port
from hookline.cli.client import Client
from hookline.cli.exits import CommandError
from hookline.config import Settings

WITHIN_S = 5.0


def check_server(settings: Settings) -> Iterator[Finding]:
    """Check the server that client commands speak to, and where `serve` would listen."""
    client = Client(settings.url, settings.api_key, timeout=WITHIN_S)
    try:
        client.get("/readyz")
    except CommandError as error:
        if error.status is None:
            yield warn("server", str(error), "start it with `hookline serve`, or correct HOOKLINE_URL")
        else:
            yield bad("server", str(error), "read the server's log, or correct HOOKLINE_URL")
        yield from check_port(settings.host, settings.port)
        return
    yield ok("server", f"hookline answers at {settings.url}")
    yield from _check_key(client, settings)
    if not _is_here(settings):
        yield from check_port(settings.host, settings.port)


def _check_key(client: Client, settings: Settings) -> Iterator[Finding]:
    try:
        client.get("/v1/endpoints", limit=1)
    except CommandError as error:
        if error.status == 403:
            yield ok("key", "the server accepts it; it has no read scope")
            return
        step = "set HOOKLINE_API_KEY to a key of this server (`hookline keys create` creates one)"
        yield bad("key", str(error), step)
        return
    yield ok("key", "the server accepts it" if settings.api_key else "the server needs none")


def _is_here(settings: Settings) -> bool:
    """Do commands speak to the server that `serve` would start here?"""
    return urlsplit(settings.url).port == settings.port
