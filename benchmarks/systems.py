"""Starts the systems that are measured.

There are two with one interface: hookline as a user starts it, and the textbook worker. Both deliver to the same
receiver.
"""

import http.client
import json
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from children import Child, ChildFailed
from payload import ENDPOINTS, event_type

HERE = Path(__file__).parent
SECRET = "whsec_" + "aG9va2xpbmUtYmVuY2htYXJrLXNlY3JldCE="  # of the benchmark's endpoints, nobody else's
START_TIMEOUT = 30.0
TEXTBOOK_WORKERS = 3


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How events are published."""

    pace: str  # closed, open, idle
    batch: int  # events in one request
    rate: float  # events per second; 0 when the pace is closed
    connections: int


class System(msgspec.Struct, frozen=True, kw_only=True):
    """A running system."""

    pids: tuple[int, ...]
    publisher: tuple[str, ...]  # the command that publishes to it, but for the load


def publish_command(system: System, load: Load, *, start: int, stop: int, file: Path) -> list[str]:
    """The whole command of the process that publishes."""
    options = {
        "pace": load.pace,
        "batch": load.batch,
        "rate": load.rate,
        "connections": load.connections,
        "start": start,
        "stop": stop,
        "file": file,
    }
    return [
        *system.publisher,
        *(text for name, value in options.items() for text in (f"--{name}", str(value))),
    ]


@contextmanager
def hookline(
    receiver_port: int,
    *,
    command: Sequence[str],
    database: str,
    directory: Path,
    max_in_flight: int,
    processes: int = 1,
    pages: int = 0,
) -> Iterator[System]:
    """hookline with default settings and the benchmark's endpoints, and so many open pages of its dashboard."""
    port = free_port()
    serve = [*command, "serve", "--dev", "--host", "127.0.0.1", "--port", str(port), "--database", database]
    serve += ["--processes", str(processes)] if processes > 1 else []
    with Child("hookline", serve, directory=directory) as server:
        wait_until_ready(server, port)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        for number in range(ENDPOINTS):
            endpoint = {
                "url": f"http://127.0.0.1:{receiver_port}/{number}",
                "events": [event_type(number)],
                "max_in_flight": max_in_flight,
                "secret": SECRET,
            }
            _create_endpoint(connection, endpoint)
        connection.close()
        publisher = (sys.executable, str(HERE / "loadgen.py"), "--port", str(port))
        with ExitStack() as stack:
            if pages:
                watching = [
                    sys.executable,
                    str(HERE / "watching.py"),
                    "--port",
                    str(port),
                    "--pages",
                    str(pages),
                ]
                stack.enter_context(Child("watching", watching, directory=directory))
            yield System(pids=(server.pid,), publisher=publisher)
        _must_run(server)


@contextmanager
def textbook(receiver_port: int, *, database: str, directory: Path, pause: float) -> Iterator[System]:
    """The textbook's table and its three workers."""
    script = (sys.executable, str(HERE / "textbook.py"))
    with Child("create", [*script, "create", "--database", database], directory=directory) as create:
        create.wait(within=START_TIMEOUT)
    with ExitStack() as stack:
        options = ["--database", database, "--secret", SECRET, "--pause", str(pause)]
        workers = [
            stack.enter_context(Child(f"worker-{number}", [*script, "work", *options], directory=directory))
            for number in range(TEXTBOOK_WORKERS)
        ]
        publisher = (*script, "insert", "--database", database, "--port", str(receiver_port))
        yield System(pids=tuple(worker.pid for worker in workers), publisher=publisher)
        _must_run(*workers)


def _must_run(*children: Child) -> None:
    """Raise if the system has ended: its figures would mean nothing."""
    for child in children:
        if child.has_ended():
            raise ChildFailed(child.last_words())


def _create_endpoint(connection: http.client.HTTPConnection, endpoint: dict[str, object]) -> None:
    body = json.dumps(endpoint)
    connection.request("POST", "/v1/endpoints", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 201:
        raise ChildFailed(f"hookline refused an endpoint: {answer.status} {text!r}")


def wait_until_ready(server: Child, port: int) -> None:
    """Until the server on this port says so."""
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline and not server.has_ended():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass  # not listening yet
        finally:
            connection.close()
        time.sleep(0.05)
    raise ChildFailed(server.last_words())


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
