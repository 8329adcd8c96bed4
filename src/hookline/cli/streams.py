"""Handles output that cannot be written, or that nobody reads.

Data that cannot be printed is a failure: a script must not take it for an answer. Messages that cannot be printed are
lost, and that is all: a disk full of logs stops no server and changes no exit code.
"""

import io
import os
import sys
from errno import EBADF, EPIPE
from typing import IO, Any


class OutputFailed(OSError):
    """The output did not arrive."""

    @property
    def is_unwanted(self) -> bool:
        """Has the reader seen enough (`| head`)?"""
        return self.errno == EPIPE

    def __str__(self) -> str:
        if self.errno == EBADF:
            return "standard output is closed"
        return f"standard output cannot be written to: {self.strerror}"


class _Data(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror) from None


class _Messages(io.FileIO):
    def write(self, data: Any) -> int:
        whole = memoryview(data).nbytes
        try:
            return super().write(data) or whole  # None: it has no room now
        except OSError:
            return whole


def open_streams() -> None:
    """Make the three streams usable, whatever their state at the start."""
    # A stream that our parent closed (`>&-`, some supervisors) is None here. Its descriptor is taken before a database
    # gets it. Printing to it fails, because it is open for reading only.
    for place, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            os.dup2(os.open(os.devnull, os.O_RDONLY), place)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open as long as the process
    if sys.stdout is sys.__stdout__:  # or a program that called us has put its own there
        sys.stdout = _written(sys.stdout, _Data(1, "w", closefd=False))
    if sys.stderr is sys.__stderr__:
        sys.stderr = _written(sys.stderr, _Messages(2, "w", closefd=False))


def give_up_printing() -> None:
    """Drop what could not be printed: the interpreter would try again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _written(was: IO[str] | None, raw: io.FileIO) -> io.TextIOWrapper:
    like = was if isinstance(was, io.TextIOWrapper) else None
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if like is None else like.encoding,
        errors="backslashreplace",  # where the stream's encoding cannot show it
        line_buffering=like is None or like.line_buffering,
        write_through=like is not None and like.write_through,
    )
