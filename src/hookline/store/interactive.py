"""Tells whether an API call asks the store, or hookline itself.

A caller should learn soon that the database is slow, and not only after all earlier callers. So an API call waits only
a moment for its first session, and not much longer for all that it needs after that: a call that reads a little from
each of several sessions would otherwise wait in one line after the other. hookline's own work, which nobody can repeat
later, waits for as long as a call may take.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class ApiCall:
    """One call of the API."""

    __slots__ = ("is_served", "request_id", "waited")

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id  # for the log
        self.is_served = False
        self.waited = 0.0  # seconds, for all of its sessions


_CALL: ContextVar[ApiCall | None] = ContextVar("api_call", default=None)


@contextmanager
def api_call(request_id: str = "") -> Iterator[None]:
    """All calls of the store inside this block belong to one API call."""
    token = _CALL.set(ApiCall(request_id))
    try:
        yield
    finally:
        _CALL.reset(token)


def current_call() -> ApiCall | None:
    """The API call that asks; None: hookline itself."""
    return _CALL.get()
