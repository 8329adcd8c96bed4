"""When is a delivery that failed tried again, if ever?

This is the only place that answers that question.
"""

import msgspec


class Policy(msgspec.Struct, frozen=True):
    """How long to wait before each request; the first entry is the wait before the first."""

    waits: tuple[float, ...]  # seconds

    @property
    def attempts(self) -> int:
        """Requests in all, the first included."""
        return len(self.waits)


_MINUTE, _HOUR = 60.0, 3600.0
PATIENT = Policy(
    waits=(0.0, 30.0, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 8 * _HOUR, 24 * _HOUR),
)
DEFAULT_POLICY = PATIENT


def wait_after(failures: int, *, policy: Policy, roll: float) -> float | None:
    """Seconds to wait after this many failed requests, drawn by full jitter; None when attempts have run out."""
    if failures >= policy.attempts:
        return None
    return policy.waits[failures] * roll
