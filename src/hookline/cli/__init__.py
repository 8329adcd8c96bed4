"""What can be done from a shell?

Each command lives in its own module; servers, clients and bars are imported only when one is called, so that
`hookline --help` loads none of them.
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from hookline.cli.dead import dead
from hookline.cli.deliveries import deliveries
from hookline.cli.endpoints import endpoints
from hookline.cli.events import replay, send
from hookline.cli.exits import Errors
from hookline.cli.options import json_option, settings
from hookline.version import VERSION

_Command = TypeVar("_Command", bound=Callable[..., Any])


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """hookline sends webhooks and does not lose them."""


for _part in (dead, deliveries, endpoints, replay, send):
    main.add_command(_part)


def _database_option(command: _Command) -> _Command:
    return click.option(
        "--database",
        metavar="URL",
        help="sqlite:///path.db or postgresql://…  [HOOKLINE_DATABASE; default sqlite:///hookline.db]",
    )(command)


@main.command()
@click.option(
    "--dev", is_flag=True, default=None, help="Loopback only, no key needed, private networks allowed."
)
@click.option("--host", help="Address to listen on.  [HOOKLINE_HOST; default 127.0.0.1]")
@click.option(
    "--port", metavar="N", help="Port to listen on, 0 for a free one.  [HOOKLINE_PORT; default 8080]"
)
@_database_option
def serve(**flags: Any) -> None:
    """Run the API and deliver."""
    with Errors():
        found = settings(flags)
        from hookline.cli.serve import run

        run(found)


@main.command()
@_database_option
@json_option
def migrate(as_json: bool, **flags: Any) -> None:
    """Bring the database's schema up to date."""
    with Errors():
        found = settings(flags)
        from hookline.cli.migrate import run

        applied = run(found)
        if as_json:
            click.echo(json.dumps({"applied": applied}))
            return
        for name in applied:
            click.echo(name)
        if not applied:
            click.echo("The schema is up to date.", err=True)


@main.command()
@json_option
def version(as_json: bool) -> None:
    """Print the version."""
    click.echo(json.dumps({"version": VERSION}) if as_json else f"hookline {VERSION}")
