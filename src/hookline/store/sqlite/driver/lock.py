"""Lets only one process serve a database file.

That process holds a lock on a file beside the database, and on the database file itself, which may have other names by
hard links. The kernel drops the locks however the process ends, so there is nothing to clean up after a kill. The file
beside the database stays; the process id in it is only for the error message.
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
        """Claim the file, or say which process has it.

        Before this process has a connection to it: closing any descriptor of a file ends SQLite's locks on it.
        """
        if self._held:
            raise StoreRefused(f"This process serves {self._path} already, and has not closed it.")
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
        """Let others serve the file; may be called twice."""
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
