"""Commands that run hookline itself."""

import json
from typing import Any

import click

from hookline.cli.exits import Errors
from hookline.cli.options import database_option, dry_run_option, json_option, settings, settings_with_sources
from hookline.cli.output import print_json
from hookline.version import VERSION


@click.command()
@click.option(
    "--dev",
    is_flag=True,
    default=None,
    help="Development mode: listen on loopback only, need no API key, allow private networks.",
)
@click.option("--host", help="Address to listen on.  [HOOKLINE_HOST; default 127.0.0.1]")
@click.option(
    "--port", metavar="N", help="Port to listen on, 0 for a free one.  [HOOKLINE_PORT; default 8080]"
)
@click.option(
    "--processes",
    metavar="N",
    help="Number of server processes (PostgreSQL only).  [HOOKLINE_PROCESSES; default 1]",
)
@click.option("--no-worker", is_flag=True, help="Run only the API; other processes deliver.")
@database_option
def serve(no_worker: bool, **flags: Any) -> None:
    """Run the API server and deliver events."""
    from hookline.cli.server.logs import ServerErrors

    with ServerErrors():
        found, sources = settings_with_sources(flags)
        from hookline.cli.server.serve import run

        run(found, delivers=not no_worker, sources=sources)


@click.command()
@click.option("--dev", is_flag=True, default=None, help="Development mode: allow private networks.")
@database_option
def worker(**flags: Any) -> None:
    """Deliver events without serving the API. Any number of workers can share one PostgreSQL database."""
    from hookline.cli.server.logs import ServerErrors

    with ServerErrors():
        found = settings(flags)
        from hookline.cli.server.worker import run

        run(found)


@click.command()
@dry_run_option
@click.option(
    "--sql", is_flag=True, help="Print the statements that make an application's outbox, and do nothing else."
)
@database_option
@json_option
def migrate(dry_run: bool, sql: bool, as_json: bool, **flags: Any) -> None:
    """Bring the database schema up to date."""
    with Errors():
        found = settings(flags)
        if sql:
            from hookline.outbox import ddl

            click.echo(ddl("sqlite" if found.database.startswith("sqlite:") else "postgresql"), nl=False)
            return
        from hookline.cli.server.migrate import look, run

        names = look(found) if dry_run else run(found)
        if as_json:
            print_json({"would_apply": names} if dry_run else {"applied": names})
            return
        for name in names:
            click.echo(name)
        if not names:
            click.echo("The schema is up to date.", err=True)
        elif dry_run:
            click.echo("Dry run: these migrations would be applied; nothing was changed.", err=True)


@click.command()
@json_option
def version(as_json: bool) -> None:
    """Print the version."""
    click.echo(json.dumps({"version": VERSION}) if as_json else f"hookline {VERSION}")
