"""Checks that a server answers and accepts the key."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from hookline import ids
from hookline.cli.client import Client
from hookline.cli.doctor.findings import Finding, bad, ok, warn
from hookline.cli.doctor.machine import check_port
from hookline.cli.doctor.trouble import is_stale, store_time
from hookline.cli.exits import CommandError
from hookline.config import Settings
from hookline.store import database_url
from hookline.store.contract.doctor import Examination

WITHIN_S = 1.5  # a person waits; a server that is not ready says so within a second


def check_server(settings: Settings, found: Examination | None, *, wall: float) -> Iterator[Finding]:
    """Check the server that client commands speak to, and where `serve` would listen."""
    client = Client(settings.url, settings.api_key, timeout=WITHIN_S)
    try:
        client.get("/readyz")
    except CommandError as error:
        if error.status is None:
            yield warn("server", str(error), "start it with `hookline serve`, or correct HOOKLINE_URL")
        else:
            is_ours = error.status == 503  # what says that it is not ready is the server itself
            first = "mend what is named above" if is_ours else "correct HOOKLINE_URL"
            yield bad("server", str(error), f"{first}, or read the server's log")
        if error.status != 503 or not _is_here(settings):
            yield from check_port(settings.host, settings.port)
        return
    yield ok("server", f"hookline answers at {settings.url}")
    yield from _check_key(client, settings)
    if found is not None and "workers" not in found.unanswered:
        yield from _check_installation(client, settings, found, wall=wall)
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


def _check_installation(
    client: Client, settings: Settings, found: Examination, *, wall: float
) -> Iterator[Finding]:
    """Check that the server uses this database: the processes that run there are heard of here.

    A copy of the database has the same contents, its secret too, but nobody's heartbeat.
    """
    try:
        listed = client.get("/v1/workers", limit=200)["data"]
    except (CommandError, KeyError, TypeError):
        return  # the key may not see them
    now = store_time(found, wall=wall)
    running = {each["id"] for each in listed if each["state"] != "stale"}
    here = {
        ids.show("worker", each.id)
        for each in found.workers
        if not is_stale(each, now=now, heartbeat=settings.heartbeat_s)
    }
    if running & here:
        yield ok("installation", "the server uses this database")
    elif running:
        yield bad(
            "installation",
            f"the server at {settings.url} uses another database than {database_url.shown(settings.database)}",
            "set HOOKLINE_URL and HOOKLINE_DATABASE to the same installation",
        )


def _is_here(settings: Settings) -> bool:
    """Do commands speak to the server that `serve` would start here?"""
    return urlsplit(settings.url).port == settings.port
