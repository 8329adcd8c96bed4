"""Fills a disk that nobody else uses.

It is a small file system in memory, mounted where only this process and its children see it: in a mount namespace of
their own, which ends with them. It is full when its size is set to what it holds.
"""

import ctypes
import os
import subprocess
from pathlib import Path

CLONE_NEWNS = 0x00020000
ROOM_KIB = 512 * 1024


def missing() -> str | None:
    """What this machine lacks for it, if anything."""
    if os.geteuid() != 0:
        return "a disk can be filled by root only"
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return None if tried.returncode == 0 else "this machine allows no mount namespaces"


class Disk:
    """Mounted at `place`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._become_private()
        place.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={ROOM_KIB}k,mode=0755", "tmpfs", place)

    def fill(self, *, leaving_kib: int = 0) -> None:
        """Leave no room, or only so much."""
        # What is written meanwhile may need a little more room: then that room is filled too.
        for spare in (0, 4, 64, 512):
            found = os.statvfs(self.place)
            used = (found.f_blocks - found.f_bfree) * found.f_frsize // 1024
            if _tries("mount", "-o", f"remount,size={used + leaving_kib + spare}k", self.place):
                return
        raise RuntimeError("the disk could not be filled")

    def free(self) -> None:
        """Make room again."""
        _run("mount", "-o", f"remount,size={ROOM_KIB}k", self.place)

    def close(self) -> None:
        _tries("umount", "--lazy", self.place)

    def _become_private(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        if library.unshare(CLONE_NEWNS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        _run("mount", "--make-rprivate", "/")


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _tries(*command: str | Path) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
