"""Renders errors in log lines.

A line shows where an error happened and its text. It never shows local variables: they hold payloads and secrets.
"""

import logging
import sys
from typing import Any

import structlog


def plain(*, colors: bool) -> Any:
    """Renders lines for people. structlog's default shows every local variable beside a traceback."""
    return structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)


def keep_plain() -> None:
    """Set up structlog for a hookline inside an application that has not; an application's own setup is kept."""
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
    """Looks `sys.stderr` up for each line: an application may replace it and close the first one."""
    return structlog.PrintLogger(sys.stderr)
