"""Makes the reference in docs/cli.md; `python tests/cli_reference.py` writes it."""

from collections.abc import Iterator
from pathlib import Path

import click

from hookline.cli.root import root

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
TITLE = "## Reference\n"
OPENING = "Generated from the commands' own help. Every command also takes `--help`.\n"

Words = tuple[str, ...]


def commands(
    command: click.Command = root, path: Words = ("hookline",)
) -> Iterator[tuple[Words, click.Command]]:
    """Every command that does something, with the words that call it."""
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield path, command
    if not isinstance(command, click.Group):
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        yield from commands(child, (*path, name))


def reference() -> str:
    """The reference's text, from its title to the end of the page."""
    return TITLE + "\n" + OPENING + "".join(_entry(path, command) for path, command in commands())


def _entry(path: Words, command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(path))
    usage = " ".join(["hookline", *path[1:], *command.collect_usage_pieces(context)]).replace("...", "…")
    help = " ".join((command.help or "").split("\n\n")[0].split())
    rows = [
        f"| `{_flags(option, context)}` | {' '.join((option.help or '').split())}{_default(option)} |"
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
    ]
    table = "\n| option | |\n|---|---|\n" + "\n".join(rows) + "\n" if rows else ""
    return f"\n### {' '.join(path)}\n\n`{usage}`\n\n{help}\n{table}"


def _flags(option: click.Option, context: click.Context) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" {option.make_metavar(context)}"
    return (names + value).replace("|", "\\|")  # a bar would end the table's cell


def _default(option: click.Option) -> str:
    return f" [{option.default}]" if option.show_default else ""


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(text.partition(TITLE)[0] + reference(), "utf-8")
