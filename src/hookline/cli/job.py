"""Starts a job on the server and waits for it.

It polls, and shows a bar, on a terminal only. The job does not depend on it: interrupting the command leaves the job
running.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from hookline.cli.exits import FAILED, CommandError
from hookline.cli.output import progress_bar

if TYPE_CHECKING:
    from hookline.cli.client import Client

_LOOK_EVERY = 0.2  # seconds

Job = dict[str, Any]


def run_job(client: "Client", path: str, chosen: dict[str, Any]) -> Job:
    """Start a job over the chosen dead letters; the job once it is finished."""
    import secrets

    # With its own key the request can be repeated without harm if the answer is lost.
    key = {"idempotency-key": secrets.token_hex(16)}
    return follow(client, path, client.post(path, {"filter": chosen}, headers=key))


def follow(client: "Client", path: str, job: Job) -> Job:
    """The job once it is finished."""
    try:
        with _bar(path, job) as show:
            return _follow(client, path, job, show)
    except KeyboardInterrupt:
        look = "hookline dead jobs" + (" --discards" if path.endswith("discards") else "")
        click.echo(f"The job {job['id']} continues on the server; `{look}` shows its progress.", err=True)
        raise


def _follow(client: "Client", path: str, job: Job, show: Callable[[Job], None]) -> Job:
    while True:
        show(job)
        if job["state"] == "done":
            return job
        if job["state"] != "running":
            why = f": {job['reason']}" if job.get("reason") else "."
            raise CommandError(f"the job {job['id']} failed after {job['done']:,} dead letters{why}", FAILED)
        threading.Event().wait(_LOOK_EVERY)
        job = client.get(f"{path}/{job['id']}")


@contextlib.contextmanager
def _bar(path: str, job: Job) -> Iterator[Callable[[Job], None]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with progress_bar(path.rpartition("/")[2]) as show:
        yield lambda now: show(now["done"] + now["failed"], now["matched"])
