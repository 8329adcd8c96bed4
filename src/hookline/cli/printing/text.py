"""Prints JSON, and makes text safe to print."""

import json
import re
from typing import Any

import click

# What JSON lets stand in a string although it moves a terminal's cursor or turns the text around it: DEL, the control
# characters that terminals read as ESC and a letter, line separators and marks of direction.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")


def print_json(value: Any) -> None:
    """One JSON value; what could harm a terminal is written as `\\u009b`, which is the same value."""
    click.echo(_UNSEEN.sub(_escaped, json.dumps(value, indent=2, ensure_ascii=False)))


def printable(text: str) -> str:
    """The text without what could move a terminal's cursor or change its colours."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"
