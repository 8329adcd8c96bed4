"""A lane moves between its states by the tables, and docs/lanes.md draws exactly these."""

import re
from enum import Enum
from pathlib import Path

import pytest

from hookline.rules.lane_state import (
    MODES,
    RECOVERIES,
    Mode,
    ModeStep,
    Recovery,
    RecoveryStep,
    mode_after,
    recovery_after,
)

DRAWN = re.compile(r"^ *(\w+) --> (\w+): (\w+)$", re.MULTILINE)


def drawn(heading: str) -> set[tuple[str, str, str]]:
    """The moves of a diagram in docs/lanes.md: from, to, by."""
    text = Path("docs/lanes.md").read_text()
    _, _, rest = text.partition(f"### {heading}\n")
    diagram, _, _ = rest.partition("\n### ")
    return {(found[1], found[2], found[3]) for found in DRAWN.finditer(diagram)}


@pytest.mark.parametrize(("heading", "table"), [("Mode", MODES), ("Recovery", RECOVERIES)])
def test_the_diagram_shows_the_table(heading: str, table: dict[tuple[Enum, Enum], Enum]):
    assert drawn(heading) == {
        (before.value, after.value, step.value) for (before, step), after in table.items()
    }


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("step", ModeStep)
def test_a_step_that_is_not_in_the_table_changes_nothing(mode: Mode, step: ModeStep):
    assert mode_after(mode, step) is MODES.get((mode, step), mode)


@pytest.mark.parametrize("recovery", Recovery)
@pytest.mark.parametrize("care", RecoveryStep)
def test_care_that_is_not_in_the_table_changes_nothing(recovery: Recovery, care: RecoveryStep):
    assert recovery_after(recovery, care) is RECOVERIES.get((recovery, care), recovery)


def test_a_lost_lane_stays_lost():
    assert {mode_after(Mode.LOST, step) for step in ModeStep} == {Mode.LOST}


def test_every_lane_that_is_not_lost_can_be_released_or_kept_on():
    """None has to wait for an operator: each mode leads to open and to lost."""
    for mode in set(Mode) - {Mode.LOST}:
        assert mode_after(mode, ModeStep.LOSE) is Mode.LOST
        assert Mode.OPEN in {mode, *(mode_after(mode, step) for step in ModeStep)}


def test_suspicion_comes_with_the_lane_only():
    """No step makes an owned lane suspect that was not: only the death of an owner does."""
    assert all(recovery_after(Recovery.NONE, care) is Recovery.NONE for care in RecoveryStep)
