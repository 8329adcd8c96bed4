"""Reads the URL that a redirect points to."""

from urllib.parse import urljoin

_CODES = frozenset({301, 302, 303, 307, 308})


def next_url(status: int | None, location: str | None, *, current: str) -> str | None:
    """The URL of a redirect, unchecked; None when the answer is not a redirect."""
    if status not in _CODES or not location:
        return None
    try:
        return urljoin(current, location)
    except ValueError:
        return None
