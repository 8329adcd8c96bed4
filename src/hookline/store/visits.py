"""Does somebody wait for the answer, or is it hookline itself that asks?

Somebody who calls while the database is slow should hear so soon, and not after everybody who came before. So a visitor
waits a moment only for the first session; one who was let in is served to the end, and hookline's own work, which
nobody can do later for it, waits for as long as a call may take.
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
    """What is asked of the store within this is asked by one visitor."""
    token = _VISIT.set(Visit())
    try:
        yield
    finally:
        _VISIT.reset(token)


def visitor() -> Visit | None:
    """Who asks; None: hookline itself."""
    return _VISIT.get()
