"""The commands that show how the installation is: once, or live."""

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from hookline.cli.exits import FAILED, UNREACHABLE, CommandError, Errors
from hookline.cli.options import json_option, read_account, settings, url_option
from hookline.cli.output import print_json

if TYPE_CHECKING:
    from hookline.cli.client import Client

WITHIN_S = 4.5  # the server answers within 4 seconds, also if its database does not
_EVERY_S = 2.0
_COLOURS = {"bad": "red", "warning": "yellow", "good": "green"}


@click.command()
@click.option("--account", callback=read_account, help="Only the endpoints of this account.")
@url_option
@json_option
def status(account: str | None, url: str | None, as_json: bool) -> None:
    """Say how the installation is, and what fails. Exits with 1 if it is not healthy."""
    with Errors():
        found = _asked(_client(url), account)
        if as_json:
            print_json(found)
        else:
            for line in _lines(found):
                click.echo(line)
        if not found["healthy"]:
            sys.exit(FAILED)


@click.command()
@click.option("--account", callback=read_account, help="Only the endpoints of this account.")
@url_option
def top(account: str | None, url: str | None) -> None:
    """Show what status shows, live. q or Ctrl-C ends it; without a terminal it is printed once."""
    with Errors():
        client = _client(url)
        found = _asked(client, account)
        if not (sys.stdout.isatty() and sys.stdin.isatty()):
            for line in _lines(found):
                click.echo(line)
            return
        _live(client, account, found)


def _live(client: "Client", account: str | None, found: dict[str, Any]) -> None:
    with _keys() as pressed, _screen() as show:
        show(_lines(found))
        while not pressed("q", within=_EVERY_S):
            try:
                lines = _lines(_asked(client, account))
            except CommandError as error:
                lines = [str(error)]
            show(lines)


@contextlib.contextmanager
def _screen() -> Iterator[Callable[[list[str]], None]]:
    """Shows lines on a screen of its own; what was there before comes back at the end."""

    def show(lines: list[str]) -> None:
        shown = [*lines[: shutil.get_terminal_size().lines - 2], "", "q ends"]
        click.echo("\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in shown) + "\x1b[J", nl=False)

    # The other screen, no cursor, and no second line for what is too long for one.
    click.echo("\x1b[?1049h\x1b[?25l\x1b[?7l", nl=False)
    try:
        yield show
    finally:
        click.echo("\x1b[?7h\x1b[?25h\x1b[?1049l", nl=False)


class _keys:
    """Reads single keys from the terminal; Ctrl-C ends like q."""

    def __enter__(self) -> "_keys":
        import termios
        import tty

        self._was = termios.tcgetattr(sys.stdin)
        tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        import termios

        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._was)
        return kind is KeyboardInterrupt

    def __call__(self, key: str, *, within: float) -> bool:
        import os
        import select

        if not select.select([sys.stdin], [], [], within)[0]:
            return False
        read = os.read(sys.stdin.fileno(), 64)
        return not read or key.encode() in read


def _client(url: str | None) -> "Client":
    from hookline.cli.client import Client

    found = settings({"url": url})
    return Client(found.url, found.api_key, timeout=WITHIN_S)


def _asked(client: "Client", account: str | None) -> dict[str, Any]:
    try:
        found: dict[str, Any] = client.get("/v1/status", account=account)
    except CommandError as error:
        if error.exit_status != UNREACHABLE:
            raise
        raise CommandError(f"{error} `hookline doctor` looks for the reason.", UNREACHABLE) from None
    return found


def _lines(found: dict[str, Any]) -> list[str]:
    from hookline.cli.printing.status_screen import status_lines
    from hookline.cli.printing.table import has_colour
    from hookline.clock import SystemClock

    width = shutil.get_terminal_size((80, 24)).columns
    head, *rest = status_lines(found, width=width, now=SystemClock().wall())
    if has_colour():
        head = click.style(
            head, fg=_COLOURS.get(found["level"]), bold=True
        )  # echo drops it without a terminal
    return [head, *rest]
