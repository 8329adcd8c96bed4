"""Defines a row of the fault matrix that measures, besides counting what was lost.

`Row` puts one running system through many faults and checks the ledgers. A study has a stage of its own for every
trial, sets up there what it needs, and compares what it measured with the matrix's figures.
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.chaos.stage import Stage


def _nothing() -> str:
    return ""


class Study(NamedTuple):
    """One row; `trial` sets up, causes the fault, measures, and reports to the stage."""

    fault: str
    stores: tuple[str, ...]
    trials: int  # 0: in the long set only, unless it is asked for by name
    bug: str  # planted by CONTROL=1; none: the matrix names no control
    shows: str  # the figure that the bug must spoil
    trial: Callable[[Stage], None]
    missing: Callable[[], str] = _nothing  # what the row needs and this machine lacks
    own_network: bool = False  # packets are dropped: other programs must not share the network
    unseen_on: tuple[str, ...] = ()  # stores that cannot count what the bug does
    seconds: float = 300.0  # a trial that takes longer is broken
