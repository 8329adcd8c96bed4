"""Writes the addresses of pages with their filters, and reads the times in them."""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from hookline import rfc3339
from hookline.validate.numbers import seconds

_SPAN = re.compile(r"[0-9.]+ ?[a-z]+")


def address(path: str, query: Mapping[str, str | None] | None = None, **more: str | None) -> str:
    """A path with the parameters that say something."""
    given = {name: value for name, value in {**(query or {}), **more}.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def part(text: str) -> str:
    """A text as a part of a path."""
    return quote(text, safe="")


def moment(text: str, *, now: float) -> str:
    """A time as the API reads it: `2h` is so long ago. Any other text stays as it is; the API says what it thinks."""
    away = seconds(text) if _SPAN.fullmatch(text) else None
    return text if away is None or away > now else rfc3339.show(float(int(now - away)))
