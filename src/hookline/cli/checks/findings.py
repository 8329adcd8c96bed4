"""What did a check find?"""

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"  # works, and may not be what was meant
    BAD = "bad"  # does not work, or loses something


class Finding(NamedTuple):
    """One line of the doctor's."""

    check: str
    level: Level
    detail: str
    step: str | None = None  # what to do about it


def ok(check: str, detail: str) -> Finding:
    """All is well."""
    return Finding(check, Level.OK, detail)


def warn(check: str, detail: str, step: str) -> Finding:
    """Worth a look."""
    return Finding(check, Level.WARN, detail, step)


def bad(check: str, detail: str, step: str) -> Finding:
    """To be mended."""
    return Finding(check, Level.BAD, detail, step)
