"""Starts, watches and ends a `hookline` process."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
CEILING_S = 120.0  # the machine has other work, too


class Process:
    """One process of this run, with the bug that its settings name."""

    def __init__(self, folder: Path, name: str, *arguments: str, settings: Mapping[str, str]) -> None:
        self.name = name
        self.arm_file = folder / f"{name}.arm"
        self._log = folder / f"{name}.log"
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("HOOKLINE_")}
        with self._log.open("wb") as log:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.planted", *arguments],
                cwd=ROOT,
                env={**inherited, "CHAOS_ARM": str(self.arm_file), **settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def lives(self) -> bool:
        return self.child.poll() is None

    def wait_until(self, pattern: str) -> str:
        """Wait for a line that matches; returns what its group caught."""

        def find() -> "re.Match[str] | None":
            lives = self.lives  # checked first: the process may write the line and end
            found = re.search(pattern, self.log)
            if not lives and not found:
                raise RuntimeError(f"hookline ended ({self.child.returncode}):\n{self.log[-2000:]}")
            return found

        return wait_for(find, f"the line {pattern!r}").group(1)

    def arm(self, failpoints: str) -> None:
        """Switch failpoints on while it runs."""
        self.arm_file.write_text(failpoints)
        self.child.send_signal(signal.SIGUSR1)

    def disarm(self) -> None:
        """Switch them off, and wait until that is done: the process may still die at one meanwhile."""
        self.arm("")
        wait_for(lambda: not self.arm_file.exists() or not self.lives, "failpoints to be switched off")

    def kill(self) -> None:
        self.child.kill()
        self.child.wait(CEILING_S)


def wait_for(look: Callable[[], T | None], what: str, seconds: float = CEILING_S) -> T:
    """The first true value that `look` returns."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.05)
    return found
