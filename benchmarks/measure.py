"""Measures one system under one load.

It starts a fresh receiver, the system, and a publisher that starts and stops at times agreed beforehand; then it waits,
for a limited time, until everything accepted has arrived.
"""

import http.client
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

import ledger
import loadgen
import receiver
import yardstick
from children import Child
from ledger import Speed, Window
from systems import HERE, SECRET, Load, System, publish_command
from usage import cpu_of, peak_mb_of

LEAD = 0.7  # seconds until the publisher, a Python that must start and connect, begins
ANSWER_TIMEOUT = 60.0


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long, in seconds."""

    warmup: float
    measured: float
    drain: float  # at most, after the last publish, until everything has arrived


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Whether what was accepted arrived exactly as sent, in numbers of events."""

    accepted: int
    missing: int
    duplicates: int
    corrupt: int
    forged: int  # with a wrong signature, of those sampled
    invented: int  # arrived without having been accepted
    refused: int
    unanswered: int
    example: str

    def holds(self) -> bool:
        wrong = self.missing + self.duplicates + self.corrupt + self.forged + self.invented
        return self.accepted > 0 and wrong == 0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    system: str
    store: str
    load: Load
    speed: Speed
    cpu_us: dict[str, float]  # by process: microseconds of CPU for each delivery
    peak_mb: dict[str, float]  # by process: the most any one of them had resident
    step_ns: float  # the yardstick, mean of just before and just after
    check: Check


Start = Callable[[int], AbstractContextManager[System]]  # given the receiver's port


def measure(
    name: str,
    store: str,
    load: Load,
    start: Start,
    *,
    timing: Timing,
    directory: Path,
    postmaster: int | None,
) -> Result:
    """Run it and compute the result."""
    step_ns = yardstick.nanoseconds()
    accepted, arrivals = directory / "accepted.times", directory / "arrivals.times"
    receive = [sys.executable, str(HERE / "receiver.py"), SECRET, str(arrivals)]
    with Child("receiver", receive, directory=directory) as sink:
        port = msgspec.json.decode(sink.first_line(within=ANSWER_TIMEOUT), type=dict[str, int])["port"]
        with start(port) as system:
            began = time.monotonic_ns() + int(LEAD * 1e9)
            opens = began + int(timing.warmup * 1e9)
            window = Window(start=opens, stop=opens + int(timing.measured * 1e9))
            publish = publish_command(system, load, start=began, stop=window.stop, file=accepted)
            with Child("generator", publish, directory=directory) as generator:
                roots = {name: system.pids, "receiver": (sink.pid,)}
                if postmaster is not None:
                    roots["postgres"] = (postmaster,)
                time.sleep(max(0, window.start - time.monotonic_ns()) / 1e9)
                before = {role: cpu_of(*pids) for role, pids in roots.items()}
                before["generator"] = cpu_of(generator.pid)
                patience = timing.measured + loadgen.LAST_ANSWERS + ANSWER_TIMEOUT
                sent = msgspec.json.decode(generator.last_line(within=patience), type=loadgen.Summary)
            _drain(port, sent.accepted, within=timing.drain)
            after = {role: cpu_of(*pids) for role, pids in roots.items()}
            after["generator"] = sent.cpu
            peak_mb = {role: peak_mb_of(*pids) for role, pids in roots.items()}
        sink.end()
        seen = msgspec.json.decode(sink.last_line(within=ANSWER_TIMEOUT), type=receiver.Summary)
    book = ledger.read_ledger(accepted, arrivals)
    # CPU is counted until the queue is empty, so deliveries are too: a backlog flatters nobody.
    deliveries = ledger.arrivals_since(book, window.start) or 1
    return Result(
        system=name,
        store=store,
        load=load,
        speed=ledger.speed(book, window),
        cpu_us={role: (after[role] - before[role]) * 1e6 / deliveries for role in after},
        peak_mb=peak_mb,
        step_ns=(step_ns + yardstick.nanoseconds()) / 2,
        check=_check(book, sent, seen),
    )


def _drain(port: int, accepted: int, *, within: float) -> None:
    """Wait until this many events have arrived, or time is up; the ledger tells afterwards which it was."""
    deadline = time.monotonic() + within
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_TIMEOUT)
    while time.monotonic() < deadline:
        connection.request("GET", "/count")
        if int(connection.getresponse().read()) >= accepted:
            break
        time.sleep(0.02)
    connection.close()


def _check(book: ledger.Ledger, sent: loadgen.Summary, seen: receiver.Summary) -> Check:
    return Check(
        accepted=sent.accepted,
        missing=ledger.count_missing(book),
        duplicates=seen.duplicates,
        corrupt=seen.corrupt,
        forged=seen.forged,
        invented=ledger.count_invented(book),
        refused=sent.refused,
        unanswered=sent.unanswered,
        example=seen.example,
    )
