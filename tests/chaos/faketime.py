"""Gives one process a wall clock of its own.

libfaketime is loaded before everything else and reads its clock's offset from a file, so that the offset can be
changed while the process runs. The monotonic clock stays the machine's.
"""

from collections.abc import Mapping
from pathlib import Path

PLACES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1")


def library() -> Path | None:
    """Where it is on this machine."""
    return next((path for place in PLACES for path in sorted(Path("/").glob(place[1:]))), None)


def missing() -> str | None:
    """What this machine lacks for it, if anything."""
    return None if library() else "libfaketime is not installed (Debian: libfaketime)"


class WallClock:
    """The wall clock of one process, kept in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.offset = 0.0
        self.set(0.0)

    def set(self, seconds: float) -> None:
        """Set the offset from now on."""
        self.offset = seconds
        ready = self._file.with_suffix(".new")
        ready.write_text(f"{seconds:+g}\n" if abs(seconds) < 1e6 else f"{seconds:+.0f}\n")
        ready.chmod(0o644)
        ready.rename(self._file)  # never seen half written

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_CACHE_DURATION": "1",  # seconds until a change is seen
            "NO_FAKE_STAT": "1",
        }
