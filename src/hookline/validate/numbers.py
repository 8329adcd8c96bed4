"""Checks numbers against the limits of a field.

The numbers come from JSON or from a program. A bool, NaN or an infinite number is never valid. A refusal names the
limits, and what was probably meant where that can be guessed.
"""

import re
from typing import Any

from hookline.errors import Invalid

DAY_S = 86_400.0

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": DAY_S}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?(ms|s|m|h|d)?")


def whole(value: Any, low: int, high: int, *, pointer: str) -> int:
    """A whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        name = _name(pointer)
        meant = f" Did you mean {value:.0f}?" if isinstance(value, float) and value.is_integer() else ""
        raise Invalid(
            f"{name} is a whole number from {low:,} to {high:,}.{meant or _meant(value, low, high)}",
            pointer=pointer,
        )
    return value


def number(value: Any, low: float, high: float, *, pointer: str, unit: str = "") -> float:
    """A number from `low` to `high`; a whole number stays whole."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Invalid(
            f"{_name(pointer)} is a number{unit} from {_shown(low)} to {_shown(high)}.{_meant(value, low, high)}",
            pointer=pointer,
        )
    return value


def seconds(text: str) -> float | None:
    """How long `90`, `500ms`, `90s`, `5m`, `2h` or `7d` is; None for anything else."""
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else float(found[1]) * _UNITS[found[2] or "s"]


def _meant(value: Any, low: float, high: float) -> str:
    meant = seconds(value[:100]) if isinstance(value, str) else None
    return f" Did you mean {meant:g}, as a number?" if meant is not None and low <= meant <= high else ""


def _name(pointer: str) -> str:
    """A pointer in prose: `/retry/schedule/3` is retry.schedule[3]."""
    return re.sub(r"\.([0-9]+)(?=\.|$)", r"[\1]", pointer.strip("/").replace("/", "."))


def _shown(bound: float) -> str:
    return f"{bound:,.0f}" if float(bound).is_integer() else f"{bound:g}"
