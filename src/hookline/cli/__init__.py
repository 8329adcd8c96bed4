"""What can be done from a shell?"""

import sys
from collections.abc import Sequence

from hookline.cli.commands import NAME, front_page
from hookline.version import VERSION


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name, and exit with its code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    # Answered here, without what reads a command line: that alone takes four times the interpreter's own start.
    if given in (["--help"], ["-h"]):
        print(front_page())
    elif given == ["--version"]:
        print(NAME, VERSION)
    else:
        from hookline.cli.root import root

        root(given, prog_name=NAME)
