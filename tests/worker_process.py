"""A real `hookline worker` in a process of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from server_process import SERVER, ServerProcess


class WorkerProcess(ServerProcess):
    """Started when entered, and delivering; killed at the end if it still runs."""

    def __init__(self, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        super().__init__(cwd=cwd, env=env)
        self._command = [*SERVER, "worker", *arguments]

    def __enter__(self) -> Self:
        self.start()
        self.wait_for_line(r"delivering from ")
        return self
