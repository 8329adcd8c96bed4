"""Measures how fast this machine runs plain Python at this moment.

On a shared machine the same code takes half as long again an hour later. A figure that comes with its yardstick can be
compared with another one.
"""

import time

_STEPS = 300_000
_TRIES = 5


def nanoseconds() -> float:
    """CPU time of one step of a plain loop, the best of a few tries: about half a second in all."""
    return min(_once() for _ in range(_TRIES))


def _once() -> float:
    total, began = 0, time.process_time_ns()
    for number in range(_STEPS):
        total += number * number
    return (time.process_time_ns() - began) / _STEPS
