"""Asks before a command does what cannot be undone.

A person is asked; a program passes `--yes`. A program that does not pass it is refused, and nothing is done.
"""

import sys

import click

from hookline.cli.exits import FAILED, USAGE, CommandError


def must_agree(question: str, *, to: str) -> None:
    """Continue only if a person agrees; `to` is the verb in the message where nobody can be asked."""
    if not sys.stdin.isatty():
        raise CommandError(f"cannot ask for confirmation without a terminal: add --yes to {to}.", USAGE)
    if not click.confirm(question, err=True):
        raise CommandError("nothing was changed.", FAILED)
