"""Prints JSON, and makes text safe to print."""

import json
from typing import Any

import click


def print_json(value: Any) -> None:
    """One JSON value."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def printable(text: str) -> str:
    """The text without what could move a terminal's cursor or change its colours."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
