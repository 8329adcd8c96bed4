"""The command that finds what is wrong with an installation, and says how to fix it."""

import os
import sys
from collections.abc import Generator
from typing import Any

import click

from hookline.cli.exits import FAILED, Errors
from hookline.cli.options import database_option, json_option, settings_with_sources, url_option
from hookline.cli.output import print_json, printable

_COLOURS = {"ok": "green", "warn": "yellow", "bad": "red"}


@click.command()
@database_option
@click.option("--host", help="Address that the server would listen on.  [HOOKLINE_HOST; default 127.0.0.1]")
@click.option(
    "--port", metavar="N", help="Port that the server would listen on.  [HOOKLINE_PORT; default 8080]"
)
@url_option
@json_option
def doctor(as_json: bool, **flags: Any) -> None:
    """Check the installation and suggest fixes.

    Prints one line per check: ok, warn or bad. Exits with 1 if a line is bad. Changes nothing.
    """
    with Errors():
        found = []
        for finding in _examine(flags):
            found.append(finding)
            if not as_json:
                click.echo(_line(finding))
        if as_json:
            print_json([each._asdict() for each in found])
        sys.exit(FAILED if any(each.level == "bad" for each in found) else 0)


def _examine(flags: dict[str, Any]) -> Generator[Any, None, None]:
    from hookline.cli.doctor.database import check_database
    from hookline.cli.doctor.delivering import check_delivering
    from hookline.cli.doctor.destinations import check_destinations
    from hookline.cli.doctor.findings import bad
    from hookline.cli.doctor.machine import check_open_files
    from hookline.cli.doctor.outboxes import check_outboxes
    from hookline.cli.doctor.secrets import check_secret_key
    from hookline.cli.doctor.server import check_server
    from hookline.cli.doctor.settings import check_file, check_settings
    from hookline.cli.doctor.spoiled_rows import check_spoiled_rows
    from hookline.cli.doctor.stored_endpoints import check_stored_endpoints
    from hookline.cli.doctor.trouble import check_trouble
    from hookline.clock import SystemClock
    from hookline.errors import ConfigError

    try:
        settings, sources = settings_with_sources(flags)
    except ConfigError as error:
        yield bad("configuration", str(error), "correct it, then run this command again for the other checks")
        return
    yield from check_settings(settings, sources)
    yield from check_file(sources, settings.database)
    wall = SystemClock().wall()
    found = yield from check_database(settings.database, wall=wall)
    yield from check_secret_key(settings.secret_key, found)
    if found is not None and found.schema is None and not found.missing_rights:
        yield from check_delivering(found, wall=wall, heartbeat=settings.heartbeat_s)
        yield from check_trouble(found, wall=wall, heartbeat=settings.heartbeat_s)
        yield from check_destinations(found, settings)
        yield from check_stored_endpoints(found, settings)
        yield from check_spoiled_rows(found)
    yield from check_outboxes(settings.outbox, settings.database, found, wall=wall)
    yield from check_open_files(settings.max_in_flight)
    yield from check_server(settings, found, wall=wall)


def _line(finding: Any) -> str:
    level = str(finding.level).ljust(4)
    if "NO_COLOR" not in os.environ:
        level = click.style(level, fg=_COLOURS[finding.level])  # echo drops the colour without a terminal
    step = "" if finding.step is None else f" → {printable(finding.step)}"
    return f"{level}  {finding.check}: {printable(finding.detail.rstrip('.'))}{step}"
