"""The findings of the doctor's checks."""

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"  # works, but may not be what was meant
    BAD = "bad"  # does not work, or loses something


class Finding(NamedTuple):
    """One line of the doctor's report."""

    check: str
    level: Level
    detail: str
    step: str | None = None  # what to do about it


def ok(check: str, detail: str) -> Finding:
    """A finding that nothing is wrong."""
    return Finding(check, Level.OK, detail)


def warn(check: str, detail: str, step: str) -> Finding:
    """A finding that is worth a look."""
    return Finding(check, Level.WARN, detail, step)


def bad(check: str, detail: str, step: str) -> Finding:
    """A finding that must be fixed."""
    return Finding(check, Level.BAD, detail, step)
