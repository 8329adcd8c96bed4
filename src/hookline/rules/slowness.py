"""Decides whether an endpoint is slow."""

from collections.abc import Sequence

SLOW = 2.0  # seconds: shown as slow
VERY_SLOW = 5.0  # seconds: the circuit then trips at half its threshold
ENOUGH = 20  # with fewer samples nothing is decided


def p95(durations: Sequence[float]) -> float:
    """The 95th percentile by nearest rank, of at least one sample."""
    ordered = sorted(durations)
    return ordered[-(-95 * len(ordered) // 100) - 1]


def is_very_slow(durations: Sequence[float]) -> bool:
    """Whether the slowest answers take so long that fewer failures should trip the circuit."""
    return len(durations) >= ENOUGH and p95(durations) > VERY_SLOW


def is_slow_day(attempts: int, p95: float | None) -> bool:
    """Whether the endpoint is shown as slow, by the attempts of 24 hours and their 95th percentile."""
    return attempts >= ENOUGH and p95 is not None and p95 > SLOW
