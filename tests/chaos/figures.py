"""Computes figures from measured times."""

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """By nearest rank; 0 of an empty list."""
    if not values:
        return 0.0
    return sorted(values)[math.ceil(share * len(values)) - 1]


def most_within(moments: Sequence[float], seconds: float) -> int:
    """The most moments in any window of this length."""
    ordered, most, first = sorted(moments), 0, 0
    for last, moment in enumerate(ordered):
        while ordered[first] <= moment - seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    """The most spans that overlap."""
    steps = sorted([(ended, -1) for _, ended in spans] + [(began, 1) for began, _ in spans])
    now = most = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How much the second value grows with the first, by least squares."""
    if len(points) < 2:
        return 0.0
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0
