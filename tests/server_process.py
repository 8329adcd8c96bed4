"""A real `hookline serve` in a process of its own, as an operator would run it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confidential import confidential, revealed

CEILING_S = 180.0  # ours is not the only work of this machine
COMMAND = [sys.executable, "-m", "hookline"]
# A server that says more than usual: nothing confidential may be in that either.
SERVER = [sys.executable, str(Path(__file__).parent / "at_debug_level.py")]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: nothing of the test run's own settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOOKLINE_")}
    return {**inherited, **(extra or {})}


def run(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """A command that ends by itself."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=CEILING_S,
        check=False,
    )


def log_lines(stderr: str) -> list[dict[str, Any]]:
    """The lines of a server's log; each is JSON."""
    return [json.loads(line) for line in stderr.splitlines()]


class ServerProcess:
    """Started when entered, and listening; killed at the end if it still runs.

    It logs at debug level, and its end fails the test if anything confidential was printed. `lines` leaves the lines out
    that it prints for that alone.
    """

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = SERVER,
    ) -> None:
        self._command = [*command, "serve", "--port", "0", *arguments]
        self._cwd = cwd
        self._env = environment(env)
        self._errors = cwd / f"stderr-{id(self)}"
        self._output = cwd / f"stdout-{id(self)}"
        self.url = ""

    def start(self) -> None:
        with self._errors.open("wb") as errors, self._output.open("wb") as output:
            self.process = subprocess.Popen(
                self._command, cwd=self._cwd, env=self._env, stdout=output, stderr=errors
            )

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait_for_line(r"listening on ")
        except BaseException:
            self.kill()
            raise
        found = re.search(r"listening on (http://[^\s\"]+)", self.stderr)
        assert found is not None
        self.url = found[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def stderr(self) -> str:
        return self._errors.read_text(errors="replace")

    @property
    def stdout(self) -> str:
        return self._output.read_text()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its log as it usually is, but for lines that only say that the machine is busy."""
        is_running, text = self.process.poll() is None, self.stderr
        if is_running:
            text = text[: text.rfind("\n") + 1]  # the last line may not be whole yet
        return [
            line for line in log_lines(text) if line["event"] != "statement.slow" and line["level"] != "debug"
        ]

    @property
    def messages(self) -> list[str]:
        """What it said about itself."""
        return [line["message"] for line in self.lines if "message" in line]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def wait_for_line(self, pattern: str) -> None:
        deadline = time.monotonic() + CEILING_S
        while not re.search(pattern + r".*\n", self.stderr):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no line {pattern!r} (exit {self.process.poll()}):\n{self.stderr}")
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = CEILING_S) -> int:
        return self.process.wait(seconds)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(CEILING_S)
        found = revealed(self.stderr + self.stdout, confidential(self._env, self._command))
        assert not found, f"the server printed what is confidential: {found}"
