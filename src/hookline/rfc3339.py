"""Converts moments between seconds since 1970 and RFC 3339 text.

Text may have any zone but must have one. It is written in UTC with `Z` and microseconds.
"""

import math
import re
from datetime import UTC, datetime, timedelta, timezone

_SHAPE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))"
)

_FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
_BEFORE_ALL = "0001-01-01T00:00:00.000000Z"
_AFTER_ALL = "9999-12-31T23:59:59.000000Z"


def read(text: str) -> float:
    """Seconds since 1970; ValueError for text that is no moment, has no zone, or is a leap second."""
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise ValueError("not an RFC 3339 time with a zone")
    year, month, day, hour, minute, second = map(int, shape.group(1, 2, 3, 4, 5, 6))
    micros = int((shape[7] or "").ljust(6, "0")[:6])
    zone = UTC
    if shape[8] is None:
        hours, minutes = int(shape[10]), int(shape[11])
        if hours > 23 or minutes > 59:
            raise ValueError("not an RFC 3339 time with a zone")
        offset = timedelta(hours=hours, minutes=minutes)
        zone = timezone(-offset if shape[9] == "-" else offset)
    at = datetime(year, month, day, hour, minute, second, micros, tzinfo=zone).timestamp()
    if not can_be_shown(at):
        raise ValueError("not within the years 1 to 9999 in UTC")
    return at


def can_be_shown(at: float) -> bool:
    """Whether the moment has a four-digit year in UTC: a zone, or rounding, can carry it beyond."""
    return _FIRST <= at <= _LAST


def show(at: float) -> str:
    """`2026-05-04T10:20:30.400000Z`; a moment out of range is shown as the first or the last one that can be.

    A database may hold any time. One row with an odd one must not make a list fail.
    """
    global _shown
    if at == _shown[0]:
        return _shown[1]  # the events of one commit share their moment
    if not _FIRST <= at <= _LAST:
        return _BEFORE_ALL if at < _FIRST else _AFTER_ALL
    whole = math.floor(at)
    micros = round((at - whole) * 1e6)
    if micros == 1_000_000:
        whole, micros = whole + 1, 0
    text = f"{_whole_seconds(whole)}.{micros:06d}Z"
    _shown = (at, text)
    return text


def moment(at: float) -> datetime:
    """The same moment as a `datetime`, as it is read from its text."""
    return datetime.fromisoformat(show(at))


_shown: tuple[float, str] = (0.0, "1970-01-01T00:00:00.000000Z")
_last: tuple[int, str] = (0, "1970-01-01T00:00:00")


def _whole_seconds(whole: int) -> str:
    # Answers written within the same second share this part: it is a quarter of the cost of a publish's answer.
    global _last
    second, text = _last
    if second != whole:
        text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
        _last = (whole, text)
    return text
