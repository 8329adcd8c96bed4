"""Defines a row of the fault matrix.

See registry.py for how one is added.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from tests.chaos.checker import GRACE_S, Limits
from tests.chaos.process import Process
from tests.chaos.scene import IN_FLIGHT, TAKEOVER_S, Scene
from tests.chaos.system import System

BOTH, POSTGRES, SQLITE = ("sqlite", "postgres"), ("postgres",), ("sqlite",)
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
    needs: tuple[Callable[[], str | None], ...] = ()  # each says what is missing on this machine, if anything


def pause(system: System, least: float, most: float) -> None:
    """Wait for as long as the seed says."""
    time.sleep(system.rng.uniform(least, most))


def replace(system: System, ended: Process) -> None:
    """Start another process in its place, once everything that it wrote is read: see the checker."""
    time.sleep(GRACE_S)
    system.replace(ended)
