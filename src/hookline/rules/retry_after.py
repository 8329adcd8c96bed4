"""Reads how long a receiver asks us to wait.

This is the only place where a receiver's Retry-After enters. It is capped here, so that no other code has to.
"""

from datetime import UTC
from email.utils import parsedate_to_datetime

LONGEST_ASKED = 86_400.0  # seconds; a receiver that asks for more is tried again after a day
_LONGEST_TEXT = 64  # a date has 29 characters


def asked_wait(value: str, *, wall: float) -> float | None:
    """Seconds that a `Retry-After` asks for, as seconds or as a date, at most a day; None when it is neither."""
    text = value.strip()
    if not text or len(text) > _LONGEST_TEXT or not text.isascii():
        return None
    if text.isdigit():
        return min(float(text), LONGEST_ASKED)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return min(max(0.0, moment.timestamp() - wall), LONGEST_ASKED)
    except (ValueError, OverflowError):
        return None
