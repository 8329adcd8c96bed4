"""Decides when a failed delivery is tried again, if at all.

This is the only place that decides it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec


class Jitter(msgspec.Struct, frozen=True):
    """How far chance moves a wait: to between `1 - below` and `1 + above` times its length."""

    below: float
    above: float


FULL = Jitter(1.0, 0.0)
EQUAL = Jitter(0.5, 0.0)
NONE = Jitter(0.0, 0.0)
JITTERS = {"full": FULL, "equal": EQUAL, "none": NONE}


class Policy(msgspec.Struct, frozen=True):
    """How long to wait before each request; the first entry, the wait before the first request, is always 0."""

    waits: tuple[float, ...]  # seconds
    jitter: Jitter = FULL

    @property
    def attempts(self) -> int:
        """The number of requests, including the first."""
        return len(self.waits)

    @property
    def longest(self) -> float:
        """Seconds from the first request to the last, with the most that jitter can add."""
        return sum(self.waits) * (1.0 + self.jitter.above)


def growing(*, base: float, factor: float, cap: float | None, attempts: int, jitter: Jitter) -> Policy:
    """After the k-th failure the wait is base · factorᵏ⁻¹, limited by the cap."""
    waits = [0.0]
    wait = base
    for _ in range(attempts - 1):
        waits.append(wait if cap is None else min(cap, wait))
        wait *= factor
    return Policy(tuple(waits), jitter)


_MINUTE, _HOUR = 60.0, 3600.0

PRESETS: dict[str, Policy] = {
    "patient": Policy((0.0, 30.0, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 8 * _HOUR, 24 * _HOUR)),
    "minute": Policy(
        (0.0, _MINUTE, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 8 * _HOUR, 24 * _HOUR), Jitter(0.1, 0.1)
    ),
    "exponential": growing(base=30.0, factor=2.0, cap=_HOUR, attempts=5, jitter=FULL),
    "brisk": growing(base=30.0, factor=2.0, cap=_HOUR, attempts=5, jitter=Jitter(0.0, 0.2)),
    "eight": growing(base=30.0, factor=2.0, cap=_HOUR, attempts=8, jitter=FULL),
    "standard": Policy(
        (
            0.0,
            5.0,
            5 * _MINUTE,
            30 * _MINUTE,
            2 * _HOUR,
            5 * _HOUR,
            10 * _HOUR,
            14 * _HOUR,
            20 * _HOUR,
            24 * _HOUR,
        ),
        Jitter(0.2, 0.2),
    ),
    "quick": growing(base=0.05, factor=2.0, cap=None, attempts=5, jitter=NONE),  # for tests: over in a second
}
DEFAULT_PRESET = "patient"
DEFAULT_POLICY = PRESETS[DEFAULT_PRESET]


def policy_of(retry: Mapping[str, Any] | None, default: Policy) -> Policy:
    """The policy that an endpoint's checked `retry` describes; the default when it has none."""
    match retry:
        case None:
            return default
        case {"preset": preset}:
            policy = PRESETS[preset]
            return Policy(policy.waits, _jitter_of(retry["jitter"])) if "jitter" in retry else policy
        case {"schedule": waits, "jitter": jitter}:
            return Policy(tuple(map(float, waits)), _jitter_of(jitter))
        case _:
            cap = retry["cap"]
            return growing(
                base=float(retry["base"]),
                factor=float(retry["factor"]),
                cap=None if cap is None else float(cap),
                attempts=retry["attempts"],
                jitter=_jitter_of(retry["jitter"]),
            )


def _jitter_of(jitter: str | Mapping[str, float]) -> Jitter:
    if isinstance(jitter, str):
        return JITTERS[jitter]
    return Jitter(float(jitter["below"]), float(jitter["above"]))


def wait_after(failures: int, *, policy: Policy, roll: float, asked: float | None = None) -> float | None:
    """Seconds to wait after this many failed requests; None when there are no attempts left.

    `roll` is chance, in [0, 1). `asked` is the wait that the receiver's Retry-After asks for: it can lengthen the
    policy's wait, never replace it.
    """
    if failures >= policy.attempts:
        return None
    jitter = policy.jitter
    wait = policy.waits[failures] * (1.0 - jitter.below + roll * (jitter.below + jitter.above))
    return wait if asked is None else max(wait, asked)
