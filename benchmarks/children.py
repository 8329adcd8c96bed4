"""Starts, reads and ends the processes of a run.

Each is a direct child with its output in files, is ended by its own id however the run ends, and does not
outlive it: should the run itself be killed, the kernel sends the child SIGTERM.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

_PR_SET_PDEATHSIG = 1
_POLL = 0.01
_PATIENCE = 45.0  # for a child that was asked to end; hookline drains first
_LIBC = ctypes.CDLL(None)


class ChildFailed(RuntimeError):
    """A process ended, or said nothing in time, with what it wrote last."""


class Child:
    """A running process; as a context manager, ended on the way out."""

    def __init__(self, name: str, command: Sequence[str | Path], *, directory: Path) -> None:
        self.name = name
        self._out, self._err = directory / f"{name}.out", directory / f"{name}.err"
        # Settings of whoever runs this must not change what is measured.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HOOKLINE_")}
        with self._out.open("wb") as out, self._err.open("wb") as err:
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=directory,
                    env=environment,
                    start_new_session=True,  # Ctrl-C is for the run, which then ends its children in order
                    preexec_fn=partial(end_with_parent, signal.SIGTERM),
                )
            except OSError as error:
                raise ChildFailed(f"{name} cannot be started: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def first_line(self, *, within: float) -> bytes:
        """The first line of its output, as soon as it is written."""
        deadline = time.monotonic() + within
        while not (text := self._out.read_bytes()).count(b"\n"):
            if self.has_ended() or time.monotonic() > deadline:
                raise ChildFailed(self.last_words())
            time.sleep(_POLL)
        return text.splitlines()[0]

    def last_line(self, *, within: float) -> bytes:
        """The last line of its output, once it has ended well."""
        self.wait(within=within)
        return self._out.read_bytes().splitlines()[-1]

    def wait(self, *, within: float) -> None:
        """Wait until it has ended successfully."""
        try:
            status = self._process.wait(within)
        except subprocess.TimeoutExpired:
            raise ChildFailed(self.last_words()) from None
        if status != 0:
            raise ChildFailed(self.last_words())

    def last_words(self) -> str:
        """Its last output, for the person who started the run."""
        status = "does not answer" if self._process.poll() is None else f"ended: {self._process.returncode}"
        return f"{self.name} {status}\n{self._err.read_text(errors='replace')[-2000:]}"

    def end(self) -> None:
        """Ask it to end, make it end, and reap it; may be called twice."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def end_with_parent(how: signal.Signals) -> None:
    """Called in a new child: let the kernel send it this signal when we are gone."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, how)
