"""Makes the kernel kill a process for its memory.

It uses a control group with a limit, of version 1 or 2, whichever this machine has. It needs root.
"""

import contextlib
import os
import time
from pathlib import Path

V1 = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")


def missing() -> str:
    """What a memory limit lacks here; nothing if it can be set."""
    if os.geteuid() != 0:
        return "root"
    return "" if _root() else "a memory control group"


class MemoryGroup:
    """Processes that share a memory limit."""

    def __init__(self, name: str) -> None:
        root = _root()
        if root is None:
            raise RuntimeError("there are no memory control groups here")
        self._is_first = root == V1
        self._path = root / name
        self._path.mkdir()

    def add(self, pid: int) -> None:
        """Count the process's allocations from now on."""
        (self._path / "cgroup.procs").write_text(str(pid))

    def limit(self, more_bytes: int) -> None:
        """Set the limit to this much more than is used."""
        name = ("memory.usage_in_bytes", "memory.limit_in_bytes")
        now, ceiling = name if self._is_first else ("memory.current", "memory.max")
        used = int((self._path / now).read_text())
        (self._path / ceiling).write_text(str(used + more_bytes))

    def close(self) -> None:
        """Remove the group; its processes have ended."""
        deadline = time.monotonic() + 5
        while self._path.exists() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # the kernel has not yet removed the last of them
                self._path.rmdir()
            time.sleep(0.02)


def _root() -> Path | None:
    if (V1 / "memory.limit_in_bytes").exists():
        return V1
    with contextlib.suppress(OSError):
        if "memory" in (V2 / "cgroup.subtree_control").read_text().split():
            return V2
    return None
