"""Tells whether an API call asks the store, or hookline itself.

A caller should learn soon that the database is slow, and not only after all earlier callers. So an API call waits only
a moment for its first session. Once it has one, it is served to the end. hookline's own work, which nobody can repeat
later, waits for as long as a call may take.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Visit:
    """One call of the API."""

    __slots__ = ("is_in",)

    def __init__(self) -> None:
        self.is_in = False


_VISIT: ContextVar[Visit | None] = ContextVar("visit", default=None)


@contextmanager
def visiting() -> Iterator[None]:
    """All questions to the store inside this block belong to one API call."""
    token = _VISIT.set(Visit())
    try:
        yield
    finally:
        _VISIT.reset(token)


def visitor() -> Visit | None:
    """The API call that asks; None: hookline itself."""
    return _VISIT.get()
