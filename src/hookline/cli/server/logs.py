"""Sets up the log.

Log lines go to stderr, one line each: JSON for machines, plain text on a terminal. Lines from libraries appear from
the level warning on and have the same shape.
"""

import logging
import os
import sys
from typing import Any

import structlog

from hookline.logs import plain


def configure() -> None:
    """Set up logging for this process."""
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    on_terminal = sys.stderr.isatty()
    rendered: list[Any] = (
        [plain(colors="NO_COLOR" not in os.environ)]
        if on_terminal
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # A client that sends nonsense is answered 400. It must not be able to fill the log as well.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
