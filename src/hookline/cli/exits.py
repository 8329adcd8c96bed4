"""Ends a command with an exit code.

The code is 0, or one that a script can tell apart, with one line on stderr.
"""

import sys
from typing import NoReturn

import click

from hookline.errors import ConfigError, HooklineError, Invalid, NotFound, StoreUnavailable

FAILED, USAGE, UNREACHABLE, NOT_FOUND, REFUSED = 1, 2, 3, 4, 5


class CommandError(HooklineError):
    """A command cannot continue; `code` is its exit code, `status` the server's status."""

    def __init__(self, text: str, code: int = FAILED, *, status: int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.status = status


class Errors:
    """Turns every error that ends a command into one line on stderr and an exit code."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        match error:
            case CommandError():
                _fail(error, error.code)
            case ConfigError():
                _fail(error, USAGE)
            case Invalid():
                _fail(error, USAGE)
            case NotFound():
                _fail(error, NOT_FOUND)
            case StoreUnavailable():
                _fail(error, UNREACHABLE)
            case HooklineError():
                _fail(error, FAILED)


def _fail(error: Exception, code: int) -> NoReturn:
    text = "".join(each if each.isprintable() else " " for each in str(error))
    click.echo(f"hookline: {' '.join(text.split())}", err=True)
    sys.exit(code)
