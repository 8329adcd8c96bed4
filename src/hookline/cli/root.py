"""How is the command found that a line names?

Each lives in a module of its own that is loaded when it is called, so that none pays for the others.
"""

from importlib import import_module
from typing import Any

import click

from hookline.cli.commands import COMMANDS, NAME, front_page
from hookline.version import VERSION


class Root(click.Group):
    """All commands, none of them loaded before it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = COMMANDS.get(cmd_name)
        if home is None:
            return None
        found: click.Command = getattr(import_module(f"hookline.cli.{home}"), cmd_name.replace("-", "_"))
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from hookline.names import did_you_mean

            ctx.fail(f"There is no command {args[0]!r}.{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return front_page()


@click.group(cls=Root, name=NAME, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "--version", prog_name=NAME, message="%(prog)s %(version)s")
def root() -> None:
    """hookline sends webhooks and does not lose them."""
