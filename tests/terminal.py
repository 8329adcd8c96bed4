"""Runs a command on a terminal of its own, as a person would."""

import fcntl
import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from server_process import CEILING_S, COMMAND, environment


class Terminal:
    """Runs a command when entered; `seen` is all that the person saw."""

    def __init__(self, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self._arguments = arguments
        self._cwd = cwd
        self._env = environment({"TERM": "xterm", "COLUMNS": "100", **(env or {})})
        self.seen = ""
        self._heeded = 0  # how much of it was waited for

    def __enter__(self) -> Self:
        ours, theirs = pty.openpty()
        self._screen = os.fdopen(ours, "r+b", buffering=0)
        self.process = subprocess.Popen(
            [*COMMAND, *self._arguments],
            cwd=self._cwd,
            env=self._env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(theirs)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(CEILING_S)
        self._screen.close()

    def wait_for(self, words: str) -> None:
        """Read on until the words were seen, after those that were waited for before."""
        while (found := self.seen.find(words, self._heeded)) < 0:
            assert self._read(), f"it ended without {words!r}:\n{self.seen}"
        self._heeded = found + len(words)

    def type(self, keys: bytes) -> None:
        """Press keys; b"\\x03" is Ctrl-C."""
        self._screen.write(keys)

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return self.process.wait(CEILING_S)

    def _read(self) -> bool:
        deadline = time.monotonic() + CEILING_S
        while not select.select([self._screen], [], [], 0.1)[0]:
            assert time.monotonic() < deadline, self.seen
        try:
            part = self._screen.read(65_536)
        except OSError:  # the other side is closed
            return False
        self.seen += (part or b"").decode(errors="replace")
        return bool(part)


def _own_terminal() -> None:
    """Make it the command's own, so that Ctrl-C reaches it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
