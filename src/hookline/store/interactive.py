"""Tells whether an API call asks the store, or hookline itself.

A caller should learn soon that the database is slow, and not only after all earlier callers. So an API call waits only
a moment for its first session, and not much longer for all that it needs after that: a call that reads a little from
each of several sessions would otherwise wait in one line after the other. A call that only reads can be repeated, so
what it spent on its reads counts too: on a slow line these take longer than the waiting. hookline's own work, which nobody can repeat
later, waits for as long as a call may take.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class ApiCall:
    """One call of the API."""

    __slots__ = ("asked_at", "is_served", "only_reads", "request_id", "waited")

    def __init__(self, request_id: str, *, only_reads: bool) -> None:
        self.request_id = request_id  # for the log
        self.only_reads = only_reads
        self.asked_at: float | None = None  # the loop's time when it first asked for a session
        self.is_served = False
        self.waited = 0.0  # seconds, for all of its sessions


_CALL: ContextVar[ApiCall | None] = ContextVar("api_call", default=None)


@contextmanager
def api_call(request_id: str = "", *, only_reads: bool = False) -> Iterator[None]:
    """All calls of the store inside this block belong to one API call."""
    token = _CALL.set(ApiCall(request_id, only_reads=only_reads))
    try:
        yield
    finally:
        _CALL.reset(token)


def current_call() -> ApiCall | None:
    """The API call that asks; None: hookline itself."""
    return _CALL.get()
