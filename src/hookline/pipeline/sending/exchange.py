"""Tracks a request until it is answered."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

import structlog

from hookline.model import NO_TIMINGS, ErrorKind, Timings
from hookline.pipeline.sending.contract import Request, SendResult

if TYPE_CHECKING:
    from hookline.pipeline.sending.connection import Connection

_log = structlog.get_logger()


class Phase(StrEnum):
    """What a connection waits for while it is being opened."""

    DNS = "looking up the name"
    CONNECT = "connecting"
    TUNNEL = "waiting for the egress proxy"
    TLS = "shaking hands for TLS"


OVERDUE = {
    Phase.DNS: ErrorKind.DNS,
    Phase.CONNECT: ErrorKind.CONNECT_TIMEOUT,
    Phase.TUNNEL: ErrorKind.CONNECT_TIMEOUT,
    Phase.TLS: ErrorKind.TLS,
}


class Progress:
    """How long each phase of opening a connection took, in seconds, and the current phase."""

    __slots__ = ("connect", "dns", "phase", "tls")

    def __init__(self) -> None:
        self.phase = Phase.DNS
        self.dns: float | None = None
        self.connect: float | None = None
        self.tls: float | None = None


class Exchange:
    """One request and its pending answer."""

    __slots__ = (
        "_done",
        "connection",
        "deadline",
        "progress",
        "request",
        "started",
        "task",
        "was_sent",
        "was_sent_again",
        "written_at",
    )

    def __init__(self, request: Request, done: Callable[[SendResult], None], started: float) -> None:
        self.request = request
        self._done: Callable[[SendResult], None] | None = done
        self.started = started
        self.deadline = started + request.timeout
        self.written_at = started
        self.was_sent = False  # bytes may have left this machine
        self.was_sent_again = False  # the one retry after a stale connection is used up
        self.connection: Connection | None = None
        self.progress: Progress | None = None  # None: it had an idle connection
        self.task: asyncio.Task[None] | None = None  # opens the connection

    @property
    def is_over(self) -> bool:
        """Whether it has been answered."""
        return self._done is None

    def timings(self, first_byte: float | None) -> Timings:
        """The phases that happened so far."""
        progress = self.progress
        if progress is None:
            return NO_TIMINGS if first_byte is None else Timings(None, None, None, first_byte)
        return Timings(progress.dns, progress.connect, progress.tls, first_byte)

    def end(self, answer: SendResult) -> None:
        """Deliver the answer, only the first time; the caller's own errors stay with the caller."""
        done = self._done
        if done is None:
            return
        self._done = None
        try:
            done(answer)
        except Exception:
            _log.exception("answer.refused", host=self.request.target.host, status=answer.status)
