"""Counts values by size, for metrics that are read later."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Protocol

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)  # the largest batches of accept and settle fit in


class Distribution(Protocol):
    """What a histogram's metric is made of, whoever counted it."""

    @property
    def edges(self) -> Sequence[float]:
        """The upper ends of the buckets, rising; a value that equals one lies below it."""

    @property
    def counts(self) -> Sequence[int]:
        """The values in each bucket since the process started; the last one is for those above all edges."""

    @property
    def total(self) -> float:
        """The sum of all values."""


class Histogram:
    """Values that are counted one by one."""

    __slots__ = ("counts", "edges", "total")

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = edges
        self.counts = [0] * (len(edges) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.edges, value)] += 1
        self.total += value

    def add_all(self, values: Iterable[float]) -> None:
        """Count many values."""
        counts, edges, total = self.counts, self.edges, self.total
        for value in values:
            counts[bisect_left(edges, value)] += 1
            total += value
        self.total = total
