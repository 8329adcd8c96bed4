"""Runs several server processes under one parent.

The parent binds the port, has the schema checked once, and forks. Each child is a whole server on the inherited
socket. A connection that waits in the socket's queue is taken by any child that lives, so none is lost when a child
dies. (With a socket for each child, SO_REUSEPORT, those in the queue of the dead one are lost.) The parent itself runs
no event loop and no thread, so that it can fork again at any time, and it does nothing that could kill it.

Children are on a leash: a pipe whose other end only the parent holds. They stop as if by SIGTERM when the parent lets
go of it. That happens when the parent is told to stop, and also when it dies, however it dies. So a signal to the
whole group, as terminals and service managers send it, is no second signal to any process.
"""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import structlog

from hookline.cli.exits import FAILED
from hookline.cli.server.lifetime import STOPPED, UNDRAINED
from hookline.cli.server.logs import ServerErrors, tell
from hookline.clock import Clock
from hookline.errors import SchemaOutgrown
from hookline.rules.restarts import deaths_in_a_row, pause_after

_LOOK_EVERY = 60.0  # seconds; signals and children wake the parent, so this is only a fallback
_PID_BYTES = 4
_OUTGROWN = 78  # exit code of a child that finds the schema too new: the others would end likewise
_SAY_OUTGROWN = "hookline: The database was migrated by a later version and no longer supports this one: upgrade hookline."

log = structlog.get_logger()


class Child:
    """What a child knows of its parent."""

    def __init__(self, leash: int, reports: int, *, place: int) -> None:
        self.leash = leash  # readable when the parent lets go or is dead
        self.place = place  # which of the processes it is, from 0; one that replaces a dead one has its place
        self._reports = reports

    def is_up(self) -> None:
        """Tell the parent that this process answers."""
        with contextlib.suppress(OSError):  # the parent is dead: the leash says so too
            os.write(self._reports, os.getpid().to_bytes(_PID_BYTES))


class _Place:
    """One of the processes, across its restarts."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.is_up = False
        self.began = 0.0
        self.deaths = 0  # in a row
        self.due = 0.0  # when to start it


class Parent:
    """Starts the children, restarts those that die, and stops with them."""

    def __init__(
        self,
        count: int,
        clock: Clock,
        *,
        prepare: Callable[[], None],
        serve: Callable[[Child], bool],
        on_up: Callable[[], None],
        on_leave: Callable[[], None],
        within: float,
    ) -> None:
        self._clock = clock
        self._prepare = prepare  # called once, in a process of its own, before the first child
        self._serve = serve  # called in a child, runs until it is stopped; returns whether all was finished
        self._on_up = on_up  # called when all of them answer
        self._on_leave = on_leave  # called when no more connections are accepted
        self._within = within  # seconds for the children to end
        self._places = [_Place() for _ in range(count)]
        self._signals = 0
        self._is_answering = False  # the first child has answered
        self._has_greeted = False
        self._deadline = float("inf")
        self._is_drained = True
        self._is_outgrown = False
        self._leash, self._held = os.pipe()
        self._reports, self._reporting = os.pipe()
        self._woken, self._waking = os.pipe()
        for end in (self._reports, self._woken, self._waking):
            os.set_blocking(end, False)

    def run(self) -> int:
        """Run until all children have ended; returns the exit code."""
        signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._count_signal)
        signal.signal(signal.SIGCHLD, _wake_only)
        failed = self._run_preparation()
        if failed:
            return failed
        while True:
            failed = self._reap()
            if failed:
                return failed
            if self._signals > 1 or self._clock.monotonic() >= self._deadline:
                self._kill()
            if self._signals and self._deadline == float("inf"):
                self._let_go()
            if not self._signals:
                self._start_those_due()
            elif not self._living():
                is_drained = self._is_drained and not self._is_outgrown
                tell("process.stopped", self._last_words(), drained=is_drained)
                return FAILED if self._signals > 1 or self._is_outgrown or not self._is_drained else 0
            self._wait()

    def _run_preparation(self) -> int:
        def work() -> int:
            self._prepare()
            return 0

        pid = self._fork(work)
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return FAILED if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            if self._signals > 1:
                os.kill(pid, signal.SIGKILL)
            self._wait()

    # --- children ---

    def _start_those_due(self) -> None:
        at = self._clock.monotonic()
        # The first one alone, until it answers: an error that stops it would stop the others too, and is printed once.
        places = self._places if self._is_answering else self._places[:1]
        for n, place in enumerate(places):
            if place.pid is None and place.due <= at:
                place.began, place.is_up = at, False
                place.pid = self._fork(partial(self._be_a_child, n))

    def _be_a_child(self, n: int) -> int:
        try:
            return 0 if self._serve(Child(self._leash, self._reporting, place=n)) else FAILED
        except SchemaOutgrown:
            return _OUTGROWN  # printed by the parent, once

    def _fork(self, work: Callable[[], int]) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            return pid
        code = FAILED
        try:
            self._forget_being_a_parent()
            with ServerErrors():
                code = work()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else FAILED
        except BaseException:
            log.exception("process.failed")
        finally:
            sys.stderr.flush()
            os._exit(code)  # the parent's exit handlers must not run in the child

    def _forget_being_a_parent(self) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for end in (self._held, self._reports, self._woken, self._waking):
            os.close(end)

    def _reap(self) -> int:
        """Find the children that died; returns an exit code when there is no point in going on."""
        for place in self._living():
            if place.pid is None:
                continue
            ended, status = os.waitpid(place.pid, os.WNOHANG)
            if not ended:
                continue
            pid, place.pid = place.pid, None
            code = os.waitstatus_to_exitcode(status)
            if code == _OUTGROWN:
                self._is_outgrown, self._signals = True, self._signals or 1
                continue
            if self._signals:
                self._is_drained = self._is_drained and code == 0
                continue
            if not self._is_answering:
                return code if code > 0 else FAILED
            at = self._clock.monotonic()
            place.deaths = deaths_in_a_row(place.deaths, lived=at - place.began)
            pause = pause_after(place.deaths)
            place.due = at + pause
            how = {"signal": signal.Signals(-code).name} if code < 0 else {"exit_code": code}
            log.warning("process.died", pid=pid, **how, restart_in_s=pause)
        return 0

    def _living(self) -> list[_Place]:
        return [place for place in self._places if place.pid is not None]

    # --- stopping ---

    def _let_go(self) -> None:
        count = len(self._living())
        message = f"hookline is stopping {count} processes; a second signal stops them at once."
        tell("process.stopping", message, processes=count)
        self._deadline = self._clock.monotonic() + self._within
        self._on_leave()
        os.close(self._held)

    def _kill(self) -> None:
        for place in self._living():
            if place.pid is not None:
                os.kill(place.pid, signal.SIGKILL)

    def _last_words(self) -> str:
        if self._is_outgrown:
            return _SAY_OUTGROWN
        return STOPPED if self._is_drained else UNDRAINED

    # --- waiting ---

    def _wait(self) -> None:
        """Wait until there is something to do."""
        at = self._clock.monotonic()
        due = [place.due for place in self._places if place.pid is None and self._is_answering]
        until = min([at + _LOOK_EVERY, self._deadline, *(due if not self._signals else [])])
        ready, _, _ = select.select([self._woken, self._reports], [], [], max(0.0, until - at))
        for end in ready:
            read = _all_of(end)
            if end == self._reports:
                self._hear(read)

    def _hear(self, reports: bytes) -> None:
        pids = {int.from_bytes(reports[n : n + _PID_BYTES]) for n in range(0, len(reports), _PID_BYTES)}
        for place in self._places:
            place.is_up = place.is_up or place.pid in pids
        self._is_answering = self._is_answering or bool(pids)
        if not (self._has_greeted or self._signals) and all(place.is_up for place in self._places):
            self._has_greeted = True
            self._on_up()

    def _count_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1


def _wake_only(number: int, frame: FrameType | None) -> None:
    """Do nothing: the signal wakes the parent only if it has a handler."""


def _all_of(end: int) -> bytes:
    read = b""
    with contextlib.suppress(BlockingIOError):
        while more := os.read(end, 65_536):
            read += more
    return read
