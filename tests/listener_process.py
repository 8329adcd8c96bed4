"""A real `hookline listen` in a process of its own, printing JSON."""

import json
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from server_process import CEILING_S, COMMAND, environment


class ListenerProcess:
    """Started when entered, and listening; killed at the end if it still runs."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._command = [*command, "listen", "--port", "0", "--json", *arguments]
        self._cwd = cwd
        self._env = environment(env)
        self._lines: queue.Queue[str] = queue.Queue()
        self.said = ""  # on stderr
        self.url = ""

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command,
            cwd=self._cwd,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        while not self.url:
            line = self.process.stderr.readline()
            assert line, f"it ended: {self.said}"
            self.said += line
            if found := re.search(r"^listening on (http://\S+/)", line):
                self.url = found[1]
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(CEILING_S)
        self._reader.join(CEILING_S)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def shown(self) -> dict[str, Any]:
        """The next request that it shows."""
        found: dict[str, Any] = json.loads(self._lines.get(timeout=CEILING_S))
        return found

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ctrl-C, and the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        assert self.process.stderr is not None
        code = self.process.wait(CEILING_S)
        self.said += self.process.stderr.read()
        return code
