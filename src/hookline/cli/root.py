"""Finds the command that a command line names.

Each command has a module that is loaded when it is called, so that no command pays for the others.
"""

import contextlib
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click

from hookline.cli.examples import examples_text
from hookline.cli.overview import COMMANDS, NAME, front_page
from hookline.version import VERSION


class Root(click.Group):
    """All commands; each is loaded when it is called."""

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        with _our_hints():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        with _our_hints():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = COMMANDS.get(cmd_name)
        if home is None:
            return None
        found: click.Command = getattr(
            import_module(f"hookline.cli.commands.{home}"), cmd_name.replace("-", "_")
        )
        _add_examples(found, cmd_name)
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from hookline.validate.names import did_you_mean

            ctx.fail(f"There is no command {without_urls(args[0])!r}.{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return front_page()


def _add_examples(command: click.Command, path: str) -> None:
    """Show examples at the end of the command's help, and of each command in a group."""
    command.epilog = examples_text(path)
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            _add_examples(child, f"{path} {name}")


def without_urls(text: str) -> str:
    """The text with everything masked that may be a URL and hold a password."""
    return re.sub(r"\S*(?:://|@)\S*", "***", text)


@contextlib.contextmanager
def _our_hints() -> Iterator[None]:
    """Suggest a name where the server would: click finds a name of four letters near every other."""
    try:
        yield
    except click.NoSuchOption as error:
        if error.ctx is None:
            raise
        from hookline.validate.suggest import nearest

        known = {
            name.lstrip("-"): name
            for each in error.ctx.command.get_params(error.ctx)
            for name in (*each.opts, *each.secondary_opts)
            if name.startswith("--") and not getattr(each, "hidden", False)
        }
        near = nearest(error.option_name.lstrip("-"), known)
        hint = "" if near is None else f" Did you mean {known[near]}?"
        raise click.UsageError(
            f"There is no option {without_urls(error.option_name)!r}.{hint}", error.ctx
        ) from None
    except click.UsageError as error:
        name = getattr(error, "command_name", None)  # from click 8.4 on; before, it makes no suggestion
        if name is None or error.ctx is None or not isinstance(error.ctx.command, click.Group):
            said = error.format_message()
            if without_urls(said) == said:
                raise
            raise click.UsageError(without_urls(said), error.ctx) from None
        from hookline.validate.names import did_you_mean

        hint = did_you_mean(name, error.ctx.command.list_commands(error.ctx))
        raise click.UsageError(f"There is no command {without_urls(name)!r}.{hint}", error.ctx) from None


@click.group(cls=Root, name=NAME, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "--version", prog_name=NAME, message="%(prog)s %(version)s")
def root() -> None:
    """hookline sends webhooks and does not lose them."""
