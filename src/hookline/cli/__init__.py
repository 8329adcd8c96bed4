"""What can be done from a shell?"""

import os
import sys
from collections.abc import Sequence
from errno import EPIPE
from io import TextIOWrapper

from hookline.cli.commands import NAME, front_page
from hookline.version import VERSION


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name, and exit with its code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    _open_streams()
    if not all(map(_is_text, given)):
        _end("an argument is not text in UTF-8.", 2)
    try:
        _run(given)
        sys.stdout.flush()
    except OSError as error:
        _give_up_printing()
        # Whoever read our output has seen enough (`| head`): nothing to tell them.
        _end(None if error.errno == EPIPE else f"{error.strerror or error}.", 1)


def _run(given: list[str]) -> None:
    # Answered here, without what reads a command line: that alone takes four times the interpreter's own start.
    if given in (["--help"], ["-h"]):
        print(front_page())
    elif given == ["--version"]:
        print(NAME, VERSION)
    else:
        from hookline.cli.root import root

        root(given, prog_name=NAME)


def _open_streams() -> None:
    """Make what is printed harmless where nobody reads it, or where it has no characters for it."""
    # Closed by whoever started us (`>&-`, some supervisors), a stream is None here, and printing would fail.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - open as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _is_text(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:  # bytes of the shell's that were no text
        return False
    return True


def _give_up_printing() -> None:
    # The interpreter flushes once more at its end, and would complain about what we have dealt with.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _end(why: str | None, code: int) -> None:
    if why is not None:
        print(f"{NAME}: {why}", file=sys.stderr)
    sys.exit(code)
