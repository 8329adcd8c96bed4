"""Follows an example's README: runs the lines that it prints, in a copy of the example's folder."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from server_process import environment

EXAMPLES = Path(__file__).parents[2] / "examples"
CEILING_S = 180.0  # ours is not the only work of this machine
ADDRESS = re.compile(r"(http://127\.0\.0\.1:[1-9][0-9]*)[^0-9]")

Found = TypeVar("Found")


class Following:
    """Left with all that it started killed. Every server is on a port of its own, whatever the README says."""

    def __init__(self, example: str, folder: Path, *, replaced: Mapping[str, str] | None = None) -> None:
        self.folder = folder / example
        shutil.copytree(
            EXAMPLES / example, self.folder, ignore=shutil.ignore_patterns("*.db*", ".*", "__pycache__")
        )
        readme = (EXAMPLES / example / "README.md").read_text()
        self.blocks = [block.strip() for block in re.findall(r"^```sh\n(.+?)^```", readme, re.M | re.S)]
        self.replaced = dict(replaced or {})
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = environment({"PATH": path, "HOOKLINE_PORT": "0", "PYTHONUNBUFFERED": "1"})
        self._started: list[subprocess.Popen[bytes]] = []

    def run(self, line: str) -> str:
        """What a line prints that ends by itself."""
        return subprocess.run(
            ["bash", "-euc", self._adapted(line)],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            text=True,
            timeout=CEILING_S,
            check=True,
        ).stdout

    def export(self, line: str) -> None:
        """Have the variables of a line from now on."""
        pairs = self.run(f"{line}; env -0").split("\0")
        self.env.update(pair.split("=", 1) for pair in pairs if pair)

    def start(self, line: str) -> str:
        """Run a line in the background; the address that it listens on."""
        return self.listening(["bash", "-euc", f"exec {self._adapted(line.removesuffix('&'))}"])[1]

    def listening(self, command: list[str]) -> tuple["subprocess.Popen[bytes]", str]:
        """A program that listens, and its address."""
        output = self.folder / f"output-{len(self._started)}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.env, stdout=file, stderr=subprocess.STDOUT
            )
        self._started.append(process)

        def address() -> str | None:
            assert process.poll() is None, output.read_text()
            found = ADDRESS.search(output.read_text())
            return found and found[1]

        return process, until(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._started):
            process.send_signal(signal.SIGKILL)
            process.wait(CEILING_S)

    def _adapted(self, line: str) -> str:
        for old, new in self.replaced.items():
            line = line.replace(old, new)
        return line


def until(look: Callable[[], Found | None]) -> Found:
    """What is found, once something is."""
    deadline = time.monotonic() + CEILING_S
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found
