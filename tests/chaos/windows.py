"""Counts how many requests began at once, and how many within a span of time."""

from collections.abc import Iterable, Sequence

from tests.chaos.checker import Receipt


def most_within(moments: Iterable[float], seconds: float) -> int:
    """The largest number of moments in any span of this length, its end not counted."""
    ordered = sorted(moments)
    most = first = 0
    for n, moment in enumerate(ordered):
        while moment - ordered[first] >= seconds:
            first += 1
        most = max(most, n - first + 1)
    return most


def most_at_once(receipts: Iterable[Receipt]) -> int:
    """The largest number of requests that the receiver had open at one moment."""
    # One that ends at the very moment at which another begins is not open beside it.
    steps = sorted(step for each in receipts for step in ((each.began, 1), (each.ended, -1)))
    most = now = 0
    for _, change in steps:
        now += change
        most = max(most, now)
    return most


def gap_after(moments: Sequence[float], since: float) -> float:
    """How long after `since` the next moment was, 0.0 if there was none."""
    return min((moment - since for moment in moments if moment > since), default=0.0)
