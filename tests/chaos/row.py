"""Defines a row of the fault matrix.

See registry.py for how one is added.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.chaos.checker import GRACE_S, Limits
from tests.chaos.process import Process
from tests.chaos.scene import IN_FLIGHT, TAKEOVER_S, Scene
from tests.chaos.system import System

BOTH, POSTGRES, SQLITE = ("sqlite", "postgres"), ("postgres",), ("sqlite",)
BATCH = 100  # events of one publish
BURST = 400  # events of one trial
ARMED_S = 5.0  # a failpoint that is not reached by then is skipped
REDELIVERY_S = TAKEOVER_S + 2.0


class Row(NamedTuple):
    """One row: `trial` does the harm and repairs it, and returns what it found wrong."""

    fault: str
    stores: tuple[str, ...]
    trials: int
    bug: str  # planted by CONTROL=1
    shows: str  # the violation that the bug must cause
    trial: Callable[[System], list[str]]
    limits: Limits = Limits(in_flight=IN_FLIGHT, redelivery_s=REDELIVERY_S)
    scene: Scene = Scene()
    everyday: bool = False  # part of `make test`
    system: type[System] = System
    own_network: bool = False  # in a network where every address is its own: see tests/security/namespace.py
    needs: tuple[Callable[[], str | None], ...] = ()  # each says what is missing on this machine, if anything


def pause(system: System, least: float, most: float) -> None:
    """Wait for as long as the seed says."""
    time.sleep(system.rng.uniform(least, most))


def size(system: System, everyday: int, whole: int) -> int:
    """How many there are of something: few in `make test`, and where a bug is all that is looked for."""
    return everyday if system.bug or math.isinf(system.leeway) else whole


def publish_each(system: System, types: Sequence[str], **payload: object) -> list[str]:
    """Publish one event of each type, that no ledger knows; returns their ids. No two have the same payload."""
    ids = []
    for since in range(0, len(types), BATCH):
        events = [{"type": each, "payload": {"to": each, **payload}} for each in types[since : since + BATCH]]
        status, answer = system.call("POST", "/v1/events/batch", {"events": events})
        if status != 202:
            raise RuntimeError(f"a batch was answered {status}: {answer}")
        ids += [str(each["id"]) for each in answer["results"]]
    return ids


def replace(system: System, ended: Process) -> None:
    """Start another process in its place, once everything that it wrote is read: see the checker."""
    time.sleep(GRACE_S)
    system.replace(ended)
