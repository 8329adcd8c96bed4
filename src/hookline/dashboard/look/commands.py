"""Shows texts in which commands stand between backticks."""

import re

from markupsafe import Markup, escape

_COMMAND = re.compile("`([^`]+)`")


def with_commands(text: str) -> Markup:
    """The text as HTML. A command is broken between its words only: an option keeps its two hyphens."""
    parts = _COMMAND.split(text)  # every second one is a command
    return Markup("").join(_shown(each) if place % 2 else escape(each) for place, each in enumerate(parts))


def _shown(command: str) -> Markup:
    words = Markup(" ").join(Markup('<span class="w">{}</span>').format(each) for each in command.split(" "))
    return Markup("<code>{}</code>").format(words)
