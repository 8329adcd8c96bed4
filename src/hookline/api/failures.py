"""Logs the requests that the API could not answer, with the cause.

A caller who is to blame is told so in the answer, and needs no line. A database that is away fails thousands of requests
a second: beyond a limit they are only counted.
"""

from collections.abc import Callable

import structlog

from hookline.api.problem import Problem
from hookline.errors import HooklineError, NotReady

LINES = 50  # a second

log = structlog.get_logger()


class FailedRequests:
    """The requests that were answered with 5xx."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._second = 0
        self._lines = 0
        self._unnamed = 0

    def note(self, error: Exception, problem: Problem, *, method: str, path: str) -> None:
        """A request failed with this error and is answered with this problem."""
        if problem.status < 500 or isinstance(error, NotReady) or not self._has_room():
            return
        fields = {
            "request_id": problem.request_id,
            "method": method,
            "path": path,
            "status": problem.status,
            "code": problem.code,
        }
        if isinstance(error, HooklineError):
            log.warning("request.failed", **fields, error=f"{type(error).__name__}: {error}")
        else:
            log.error("request.failed", **fields, exc_info=error)

    def _has_room(self) -> bool:
        second = int(self._now())
        if second != self._second:
            unnamed, self._second, self._lines, self._unnamed = self._unnamed, second, 0, 0
            if unnamed:
                log.warning("requests.failed", count=unnamed, note=f"beyond {LINES} in a second")
        self._lines += 1
        self._unnamed += self._lines > LINES
        return self._lines <= LINES
