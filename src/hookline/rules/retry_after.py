"""How long does a receiver ask us to wait?"""

from datetime import UTC
from email.utils import parsedate_to_datetime

_LONGEST_TEXT = 64  # a date has 29 characters


def asked_wait(value: str, *, wall: float) -> float | None:
    """Seconds asked for by a `Retry-After`, given as seconds or as a date; None when it is neither."""
    text = value.strip()
    if not text or len(text) > _LONGEST_TEXT or not text.isascii():
        return None
    if text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return max(0.0, moment.timestamp() - wall)
    except (ValueError, OverflowError):
        return None
