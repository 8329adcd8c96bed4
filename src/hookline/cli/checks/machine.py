"""Does this machine let a server run?"""

import resource
import socket
from collections.abc import Iterator

from hookline.cli.checks.findings import Finding, bad, ok, warn

SPARE_FILES = 200  # beside requests under way: connections of clients and of the database, files


def check_port(host: str, port: int) -> Iterator[Finding]:
    """Can a server listen where it is told to?"""
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
                "stop what listens there, or use --port",
            )
            return
    yield ok("port", f"{port} is free on {host}")


def check_open_files(max_in_flight: int) -> Iterator[Finding]:
    """Are there enough file descriptors for all requests under way?"""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = max_in_flight + SPARE_FILES
    if limit != resource.RLIM_INFINITY and limit < needed:
        yield warn(
            "open files",
            f"{limit:,} are allowed, {needed:,} may be needed",
            f"ulimit -n {needed}, or lower HOOKLINE_MAX_IN_FLIGHT",
        )
    else:
        yield ok("open files", f"{limit:,} are allowed" if limit != resource.RLIM_INFINITY else "no limit")
