"""Decides whether an endpoint is slow."""

SLOW = 2.0  # seconds: shown as slow
VERY_SLOW = 5.0  # seconds: the circuit then trips at half its threshold
ENOUGH = 20  # with fewer samples nothing is decided


def is_slow_day(attempts: int, p95: float | None) -> bool:
    """Whether the endpoint is shown as slow, by the attempts of 24 hours and their 95th percentile."""
    return attempts >= ENOUGH and p95 is not None and p95 > SLOW


def is_very_slow_day(attempts: int, p95: float | None) -> bool:
    """Whether the slowest answers take so long that fewer failures should trip the circuit."""
    return attempts >= ENOUGH and p95 is not None and p95 > VERY_SLOW
