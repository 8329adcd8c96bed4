"""Reads the window of a report: how far it looks back, such as `24h`."""

import re

from hookline.errors import Invalid
from hookline.validate.numbers import DAY_S

LONGEST_S = 90 * DAY_S  # dead letters and hourly latencies are kept no longer

ALLOWED = "is a number of minutes, hours or days from 1m to 90d, such as 15m, 1h, 24h or 7d"
PATTERN = "[0-9]{1,6}[mhd]"

_UNITS = {"m": 60.0, "h": 3_600.0, "d": DAY_S}
_WINDOW = re.compile(PATTERN)


def window_seconds(text: object, *, pointer: str = "window") -> float:
    """The length of a window such as `15m`, `1h`, `24h` or `7d`, up to 90 days."""
    if isinstance(text, str) and _WINDOW.fullmatch(text):
        seconds = int(text[:-1]) * _UNITS[text[-1]]
        if 0.0 < seconds <= LONGEST_S:
            return seconds
    raise Invalid(f"{pointer} {ALLOWED}.", pointer=pointer, code="invalid_parameter")
