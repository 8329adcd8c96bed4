"""Which process serves this file?

The one that holds a lock on the file beside it, and on the file itself: it may have other names, by hard links. The
kernel drops the locks however the process ends, so there is nothing to clear away after a kill; the file beside it
stays, with the process id inside for the message only.
"""

import fcntl
import os

from hookline.errors import StoreRefused


class ServingLock:
    """The right to serve a database file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._held: list[int] = []

    def acquire(self) -> None:
        """Claim the file, or say who has it.

        Before the process has a connection to it: closing any descriptor of a file ends the locks that SQLite has on it.
        """
        beside = f"{os.path.realpath(self._path)}.lock"
        claim = _open(beside, create=True)
        if not _lock(claim):
            holder = os.read(claim, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(claim)
            raise StoreRefused(
                f"Another process (pid {holder}) serves {self._path}: one process serves an SQLite file."
            )
        self._held.append(claim)
        database = _open(self._path, create=False)
        self._held.append(database)
        if not _lock(database):
            self.release()
            raise StoreRefused(
                f"Another process serves {self._path} under another of its names (a hard link): one process serves an SQLite file."
            )
        os.ftruncate(claim, 0)
        os.write(claim, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let others serve it; may be called twice."""
        while self._held:
            os.close(self._held.pop())


def _open(path: str, *, create: bool) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
    except OSError as error:
        raise StoreRefused(f"Cannot open {path}: {error.strerror}.") from error


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
