"""Checks that a server can run on this machine."""

import socket
from collections.abc import Iterator

from hookline.cli.doctor.findings import Finding, bad, ok, warn
from hookline.pipeline.sending import open_files
from hookline.rules.open_files import (
    RESERVED,
    slots_within,
)


def check_port(host: str, port: int) -> Iterator[Finding]:
    """Check that a server can listen where it is told to."""
    if port == 0:
        yield ok("port", "any free one")
        return
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            yield bad(
                "port",
                f"cannot listen on {host} port {port}: {why}",
                "stop the process that listens there, or choose another --port",
            )
            return
    yield ok("port", f"{port} is free on {host}")


def check_open_files(max_in_flight: int) -> Iterator[Finding]:
    """Check that there are enough file descriptors for all requests under way."""
    allowed = open_files.allowed_after_raising()
    if allowed is None:
        yield ok("open files", "no limit")
        return
    slots = slots_within(max_in_flight, allowed)
    if slots < max_in_flight:
        needed = max_in_flight + RESERVED
        yield warn(
            "open files",
            f"{allowed:,} are allowed: {slots:,} requests can be in flight at once, not {max_in_flight:,}",
            f"raise the hard limit (ulimit -Hn {needed}, LimitNOFILE={needed}), or lower HOOKLINE_MAX_IN_FLIGHT",
        )
    else:
        yield ok("open files", f"{allowed:,} are allowed")
