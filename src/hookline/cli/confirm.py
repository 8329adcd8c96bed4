"""May the command do what cannot be undone?

A person is asked; a program says `--yes`. One that says nothing is refused, and nothing is done.
"""

import sys

import click

from hookline.cli.exits import FAILED, USAGE, CommandError


def must_agree(question: str, *, to: str) -> None:
    """Go on only if a person says so; `to` is the verb for whoever cannot be asked."""
    if not sys.stdin.isatty():
        raise CommandError(f"to {to} without being asked, add --yes.", USAGE)
    if not click.confirm(question, err=True):
        raise CommandError("nothing was done.", FAILED)
