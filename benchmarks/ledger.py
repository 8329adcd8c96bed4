"""Checks that every accepted event arrived exactly as it was sent, and computes how fast.

It takes what the generator and the receiver wrote down, event by event; nothing is sampled or estimated.
"""

import math
from array import array
from collections.abc import Sequence
from pathlib import Path

import msgspec


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The measured time, on the machine's monotonic clock."""

    start: int  # nanoseconds
    stop: int

    @property
    def seconds(self) -> float:
        return (self.stop - self.start) / 1e9

    def holds(self, moment: int) -> bool:
        return self.start <= moment < self.stop


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """By event number: when it was accepted, published (due, in an open loop) and when it arrived."""

    accepted_at: Sequence[int]  # 0: not answered, -1: refused
    published_at: Sequence[int]  # 0: never arrived
    arrived_at: Sequence[int]


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """How fast, within the window."""

    accepted_per_s: float
    delivered_per_s: float
    p50_ms: float | None  # from published to arrived, of the events published in the window
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    drained_s: float  # from the window's end to the last arrival


def read_ledger(accepted: Path, arrivals: Path) -> Ledger:
    """What the two files say."""
    times = _read(arrivals)
    half = len(times) // 2
    return Ledger(accepted_at=_read(accepted), published_at=times[:half], arrived_at=times[half:])


def count_missing(ledger: Ledger) -> int:
    """Events that were accepted and never arrived."""
    arrived = len(ledger.arrived_at)
    return sum(
        accepted > 0 and (seq >= arrived or not ledger.arrived_at[seq])
        for seq, accepted in enumerate(ledger.accepted_at)
    )


def count_invented(ledger: Ledger) -> int:
    """Events that arrived although they were refused, or never sent."""
    sent = len(ledger.accepted_at)
    return sum(
        arrived > 0 and (seq >= sent or ledger.accepted_at[seq] < 0)
        for seq, arrived in enumerate(ledger.arrived_at)
    )


def arrivals_since(ledger: Ledger, moment: int) -> int:
    """How many events arrived from this moment on."""
    return sum(arrived >= moment for arrived in ledger.arrived_at)


def speed(ledger: Ledger, window: Window) -> Speed:
    """The window's rates and percentiles."""
    waits = sorted(
        arrived - published
        for published, arrived in zip(ledger.published_at, ledger.arrived_at, strict=True)
        if arrived and window.holds(published)
    )
    return Speed(
        accepted_per_s=sum(map(window.holds, ledger.accepted_at)) / window.seconds,
        delivered_per_s=sum(map(window.holds, ledger.arrived_at)) / window.seconds,
        p50_ms=_percentile(waits, 0.50),
        p95_ms=_percentile(waits, 0.95),
        p99_ms=_percentile(waits, 0.99),
        max_ms=_percentile(waits, 1.0),
        drained_s=max(0, max(ledger.arrived_at, default=0) - window.stop) / 1e9,
    )


def _percentile(waits: Sequence[int], share: float) -> float | None:
    """In milliseconds, by nearest rank, from sorted nanoseconds."""
    if not waits:
        return None
    return waits[math.ceil(share * len(waits)) - 1] / 1e6


def _read(path: Path) -> Sequence[int]:
    numbers = array("q")
    numbers.frombytes(path.read_bytes())
    return numbers
