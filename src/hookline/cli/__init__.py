"""What can be done from a shell?

Each command lives in its own module, imported only when it is called: `hookline --help` does not load a server.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from hookline import config
from hookline.errors import ConfigError, HooklineError, StoreUnavailable
from hookline.version import VERSION

FAILED, USAGE, UNREACHABLE = 1, 2, 3

_Command = TypeVar("_Command", bound=Callable[..., Any])


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """hookline sends webhooks and does not lose them."""


def _database_option(command: _Command) -> _Command:
    return click.option(
        "--database",
        metavar="URL",
        help="sqlite:///path.db or postgresql://…  [HOOKLINE_DATABASE; default sqlite:///hookline.db]",
    )(command)


_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


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
    with _Errors():
        settings = _settings(flags)
        from hookline.cli.serve import run

        run(settings)


@main.command()
@_database_option
@_json_option
def migrate(as_json: bool, **flags: Any) -> None:
    """Bring the database's schema up to date."""
    with _Errors():
        settings = _settings(flags)
        from hookline.cli.migrate import run

        applied = run(settings)
        if as_json:
            click.echo(json.dumps({"applied": applied}))
            return
        for name in applied:
            click.echo(name)
        if not applied:
            click.echo("The schema is up to date.", err=True)


@main.command()
@_json_option
def version(as_json: bool) -> None:
    """Print the version."""
    click.echo(json.dumps({"version": VERSION}) if as_json else f"hookline {VERSION}")


class _Errors:
    """One line on stderr and an exit code for whatever a command cannot go on with."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        match error:
            case ConfigError():
                _fail(error, USAGE)
            case StoreUnavailable():
                _fail(error, UNREACHABLE)
            case HooklineError():
                _fail(error, FAILED)


def _fail(error: Exception, code: int) -> NoReturn:
    click.echo(f"hookline: {' '.join(str(error).split())}", err=True)
    sys.exit(code)


def _settings(flags: dict[str, Any]) -> config.Settings:
    return config.load(flags, environ=os.environ, file=Path(config.FILE))
