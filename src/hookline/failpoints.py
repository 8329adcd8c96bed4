"""Where can a test make this process fail?

Inert unless `HOOKLINE_FAILPOINTS` is set, e.g. `settle.before=kill@3,send.after=pause`. Each step that
matters for durability calls `failpoint("name")`; what happens there is chosen by the test from outside.
"""

import os
import signal
from collections.abc import Callable

NAMES = frozenset(
    {
        "accept.before",  # the batch is made up, nothing is written
        "accept.after",  # committed, nobody has been answered
        "handover.before",
        "take.after",
        "load.after",
        "send.before",  # admitted, no byte written
        "send.after",  # the request is written, no answer yet
        "answer.after",  # the answer is here, not settled
        "settle.before",
        "settle.after",  # committed, not acknowledged in memory
        "release.before",
        "release.after",  # released, not rechecked
        "wake.before",
        "bury.after",
        "free.after",
        "beat.before",
        "job.before",  # about to do some of a bulk replay or discard
        "migrate.step",  # before a migration, and after each of its steps
        "job.after",  # they are committed, their lanes not woken
    }
)


class Planted(Exception):
    """Raised by a failpoint switched to `error`."""


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _fail() -> None:
    raise Planted("a failpoint was switched to error")


_ACTIONS: dict[str, Callable[[], None]] = {"kill": _die, "pause": _stop, "error": _fail}
_planted: dict[str, tuple[Callable[[], None], int]] = {}
_hits: dict[str, int] = {}


def plant(text: str) -> None:
    """Switch failpoints on: `name=action` or `name=action@n` (at the n-th hit only), comma-separated."""
    _planted.clear()
    _hits.clear()
    for part in filter(None, text.split(",")):
        name, _, rest = part.partition("=")
        action, _, nth = rest.partition("@")
        if name not in NAMES or action not in _ACTIONS:
            raise ValueError(f"no such failpoint or action: {part!r}")
        _planted[name] = (_ACTIONS[action], int(nth or 0))


def failpoint(name: str) -> None:
    """Do what a test planted under this name; nothing otherwise."""
    if not _planted:
        return
    planted = _planted.get(name)
    if planted is None:
        return
    action, nth = planted
    _hits[name] = _hits.get(name, 0) + 1
    if nth in (0, _hits[name]):
        action()


plant(os.environ.get("HOOKLINE_FAILPOINTS", ""))
