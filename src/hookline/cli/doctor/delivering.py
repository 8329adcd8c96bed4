"""Checks that some process delivers what is due."""

from collections.abc import Iterator

from hookline import rfc3339
from hookline.cli.doctor.findings import Finding, bad, ok
from hookline.cli.doctor.trouble import is_stale, store_time
from hookline.cli.output import counted
from hookline.store.contract.doctor import MOST_COUNTED, Examination

LONG_S = 60.0  # a worker that starts now takes waiting deliveries within seconds


def check_delivering(found: Examination, *, wall: float, heartbeat: float) -> Iterator[Finding]:
    """Check it; `heartbeat` is how often a worker should be heard of, in seconds."""
    if {"workers", "deliveries that are due"} & set(found.unanswered):
        return
    is_file = found.server.startswith("SQLite")
    now = store_time(found, wall=wall)
    alive = [each for each in found.workers if not is_stale(each, now=now, heartbeat=heartbeat)]
    if delivering := sum(each.kind != "api" for each in alive):
        yield ok("deliveries", "1 process delivers" if delivering == 1 else f"{delivering} processes deliver")
        return
    if found.waiting is None or now - found.waiting.since < LONG_S:
        yield ok("deliveries", "none is overdue")
        return
    number = found.waiting.deliveries
    many = f"{counted(number, 'delivery', 'deliveries')}{' or more' if number >= MOST_COUNTED else ''}"
    step = "start `hookline worker`"
    if is_file:  # one process serves it
        step = "restart the server without --no-worker" if alive else "start `hookline serve`"
    yield bad(
        "deliveries",
        f"{many} {'is' if number == 1 else 'are'} due, the first since {rfc3339.show(found.waiting.since)}, and no running process delivers",
        step,
    )
