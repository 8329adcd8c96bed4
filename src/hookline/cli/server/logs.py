"""Sets up the log of a server or worker.

Everything that such a process writes to stderr has one shape: a line of JSON for machines, plain text on a terminal. That
includes its own messages, lines of libraries, warnings, and errors that nobody caught.
"""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Coroutine, MutableMapping
from typing import Any, TypeVar

import click
import structlog
import uvloop

from hookline.cli.exits import Errors
from hookline.cli.output import printable
from hookline.logs import plain
from hookline.store.interactive import current_call

T = TypeVar("T")
Fields = MutableMapping[str, Any]

log = structlog.get_logger()


class ServerErrors(Errors):
    """Sets up the log, and writes the error that ends the process there."""

    def __enter__(self) -> None:
        configure()

    def say(self, text: str) -> None:
        if is_for_people():
            super().say(text)
        else:
            log.error("process.failed", message=text)


def is_for_people() -> bool:
    """Is stderr a terminal?"""
    return sys.stderr.isatty()


def tell(event: str, message: str, **fields: Any) -> None:
    """Log what the process itself is doing; on a terminal only the message is shown."""
    if is_for_people():
        click.echo(message, err=True)
    else:
        log.info(event, message=message, **fields)


def in_loop(work: Coroutine[None, None, T]) -> T:
    """Run the work in an event loop whose errors go to the log."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_exception_handler(_say_loop_error)
        return runner.run(work)


def configure() -> None:
    """Set up logging for this process."""
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        _add_request_id,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    rendered: list[Any] = (
        [_escape, plain(colors="NO_COLOR" not in os.environ)]
        if is_for_people()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # One write for a line: processes that share the file do not write into each other's lines.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _name_library],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # A client that sends nonsense is answered 400. It must not be able to fill the log as well.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    logging.captureWarnings(True)
    sys.excepthook = lambda kind, error, trace: log.critical("process.failed", exc_info=(kind, error, trace))
    sys.unraisablehook = lambda failed: log.error("cleanup.failed", exc_info=_exc_info(failed))
    threading.excepthook = lambda failed: log.error("thread.failed", exc_info=_exc_info(failed))


def _exc_info(failed: Any) -> Any:
    return failed.exc_type, failed.exc_value, failed.exc_traceback


def _say_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of a callback. Only the error: asyncio's text shows the callback's arguments, also bytes received."""
    error = context.get("exception")
    log.error("callback.failed", exc_info=error if error is not None else False)


def _add_request_id(logger: Any, method: str, fields: Fields) -> Fields:
    """Name the API request that a line is about."""
    call = current_call()
    if call is not None and call.request_id:
        fields.setdefault("request_id", call.request_id)
    return fields


def _name_library(logger: Any, method: str, fields: Fields) -> Fields:
    """Give a library's line a name like that of our own lines."""
    fields["message"], fields["event"] = fields["event"], "library.logged"
    fields["logger"] = fields["_record"].name
    return fields


def _escape(logger: Any, method: str, fields: Fields) -> Fields:
    """Keep what others sent from moving the terminal's cursor."""
    return {name: printable(value) if isinstance(value, str) else value for name, value in fields.items()}
