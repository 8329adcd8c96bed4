"""The command line of hookline."""

import sys
from collections.abc import Sequence

from hookline.cli.overview import COMMANDS, NAME, front_page
from hookline.cli.streams import OutputFailed, give_up_printing, open_streams
from hookline.version import VERSION


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name, and exit with its code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    open_streams()
    if not all(map(_is_text, given)):
        _end("an argument is not UTF-8 text.", 2)
    try:
        _run(given)
        sys.stdout.flush()
    except OutputFailed as error:
        give_up_printing()
        _end(None if error.is_unwanted else f"{error}.", 1)
    except KeyboardInterrupt:  # before click was loaded, which would say it
        _end("Aborted!", 1)
    except OSError as error:
        _end(f"{error.strerror or error}.", 1)


def _run(given: list[str]) -> None:
    # Answered here, without loading click: that alone takes four times as long as the interpreter's start.
    if given in (["--help"], ["-h"]):
        print(front_page())
    elif given == ["--version"]:
        print(NAME, VERSION)
    else:
        from hookline.cli.root import root
        from hookline.errors import MissingExtra, naming_extras

        try:
            with naming_extras(_called(given)):
                root(given, prog_name=NAME)
        except MissingExtra as error:
            _end(str(error), 1)


def _called(given: Sequence[str]) -> str:
    """The command as a person calls it."""
    name = next((each for each in given if each in COMMANDS), None)
    return "this command" if name is None else f"`{NAME} {name}`"


def _is_text(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:  # bytes from the shell that are not text
        return False
    return True


def _end(why: str | None, code: int) -> None:
    if why is not None:
        print(f"{NAME}: {why}", file=sys.stderr)
    sys.exit(code)
