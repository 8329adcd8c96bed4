"""Ends a command with an exit code.

The code is 0, or one that a script can tell apart, with one line on stderr.
"""

import sys
from typing import NoReturn

import click

from hookline.errors import ConfigError, HooklineError, Invalid, NotFound, StoreUnavailable

FAILED, USAGE, UNREACHABLE, NOT_FOUND, REFUSED = 1, 2, 3, 4, 5


class CommandError(HooklineError):
    """A command cannot continue; `exit_status` is that of the program, `status` the server's status."""

    def __init__(self, text: str, exit_status: int = FAILED, *, status: int | None = None) -> None:
        super().__init__(text)
        self.exit_status = exit_status
        self.status = status


class Errors:
    """Turns every error that ends a command into one line on stderr and an exit code."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        match error:
            case CommandError():
                self._fail(error, error.exit_status)
            case ConfigError():
                self._fail(error, USAGE)
            case Invalid():
                self._fail(error, USAGE)
            case NotFound():
                self._fail(error, NOT_FOUND)
            case StoreUnavailable():
                self._fail(error, UNREACHABLE)
            case HooklineError():
                self._fail(error, FAILED)

    def say(self, text: str) -> None:
        """Write the line."""
        click.echo(f"hookline: {text}", err=True)

    def _fail(self, error: Exception, code: int) -> NoReturn:
        text = "".join(each if each.isprintable() else " " for each in str(error))
        self.say(" ".join(text.split()))
        sys.exit(code)
