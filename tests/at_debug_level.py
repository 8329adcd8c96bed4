"""Runs hookline with everything logged that it can log, so that tests can look through it for secrets.

`--libraries` as the first argument has the libraries say everything too.
"""

import logging
import sys

import structlog

made = structlog.make_filtering_bound_logger
structlog.make_filtering_bound_logger = lambda _: made(logging.DEBUG)
if sys.argv[1] == "--libraries":
    del sys.argv[1]
    configured = logging.basicConfig

    def configure(**settings: object) -> None:
        configured(**{**settings, "level": logging.DEBUG})  # type: ignore[arg-type]

    logging.basicConfig = configure  # type: ignore[assignment]
sys.argv[0] = "hookline"
del sys.path[0]  # the folder of tests, which no server sees

from hookline.cli import main  # noqa: E402 - it sets up logging

main()
