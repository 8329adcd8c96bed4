"""Which process serves this file?

The one that holds a lock on the file beside it. The kernel drops the lock however the process ends, so there
is nothing to clear away after a kill; the file stays, with the process id inside for the message only.
"""

import fcntl
import os

from hookline.errors import StoreRefused


class ServingLock:
    """The right to serve a database file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def acquire(self) -> None:
        """Claim the file, or say who has it."""
        try:
            descriptor = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreRefused(f"Cannot open {self._path}.lock: {error.strerror}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise StoreRefused(
                f"Another process (pid {holder}) serves {self._path}: one process serves an SQLite file."
            ) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others serve it; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
