"""Checks that the open file is still the one under its name.

A process can still write to a file that was removed or replaced while it was open. Nobody will ever read that again.
"""

import os

from hookline.errors import StoreRefused


class FilePresence:
    """The file as it was when it was opened."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._was = _identity(path)

    def refuse_if_gone(self) -> None:
        """Raise when a write now would be lost."""
        if _identity(self._path) != self._was:
            raise StoreRefused(
                f"The database {self._path} was removed or replaced while it was open: put it back, or restart hookline."
            )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
