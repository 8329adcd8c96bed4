"""What does a log line say of an error?

Where it happened and its text, never the values that were at hand: among them are payloads and secrets.
"""

import logging
import sys
from typing import Any

import structlog


def plain(*, colors: bool) -> Any:
    """Renders lines for people. structlog's own choice shows every local variable beside a traceback."""
    return structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)


def keep_plain() -> None:
    """For a hookline inside an application that has not set up structlog; what it set up stays as it is."""
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.set_exc_info,
            plain(colors=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=_to_stderr,
    )


def _to_stderr(*_: Any) -> Any:
    """Wherever that goes by then: an application may put another in its place, and close the first."""
    return structlog.PrintLogger(sys.stderr)
