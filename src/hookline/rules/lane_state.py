"""Defines the moves between the states of an owned lane.

A lane has two states that are independent of each other. Its mode says whether deliveries may be handed to it and sent.
Its recovery says whether a dead owner may have had some of them under way. A step that is not in a table changes
nothing: whoever keeps a lane that is lost by now, for example, has come too late. docs/lanes.md draws both tables.
"""

from enum import Enum


class Mode(Enum):
    """Whether a lane may send."""

    OPEN = "open"
    RELEASING = "releasing"  # it is being given up: nothing is handed to it
    GONE = "gone"  # its endpoint said so: nothing is sent until it is disabled, or changed
    LOST = "lost"  # it is another worker's, or nobody's


class ModeStep(Enum):
    """What changes a lane's mode."""

    RELEASE = "release"
    KEEP = "keep"  # it was not released after all
    STOP = "stop"  # the endpoint answered 410
    CHANGE = "change"  # an operator changed the endpoint
    LOSE = "lose"


class Recovery(Enum):
    """How a lane recovers from the death of its last owner."""

    NONE = "none"
    SUSPECT = "suspect"  # the owner died: what it may have had under way is sent with care first
    CAREFUL = "careful"  # being sent with care now: nothing more is loaded


class RecoveryStep(Enum):
    """What changes a lane's recovery."""

    BEGIN = "begin"
    INTERRUPT = "interrupt"  # suspects are left: they are sent with care later, or by the next owner
    FINISH = "finish"


MODES: dict[tuple[Mode, ModeStep], Mode] = {
    (Mode.OPEN, ModeStep.RELEASE): Mode.RELEASING,
    (Mode.OPEN, ModeStep.STOP): Mode.GONE,
    (Mode.OPEN, ModeStep.LOSE): Mode.LOST,
    (Mode.RELEASING, ModeStep.KEEP): Mode.OPEN,
    (Mode.RELEASING, ModeStep.STOP): Mode.GONE,
    (Mode.RELEASING, ModeStep.LOSE): Mode.LOST,
    (Mode.GONE, ModeStep.CHANGE): Mode.OPEN,
    (Mode.GONE, ModeStep.LOSE): Mode.LOST,
}

RECOVERIES: dict[tuple[Recovery, RecoveryStep], Recovery] = {
    (Recovery.SUSPECT, RecoveryStep.BEGIN): Recovery.CAREFUL,
    (Recovery.CAREFUL, RecoveryStep.INTERRUPT): Recovery.SUSPECT,
    (Recovery.CAREFUL, RecoveryStep.FINISH): Recovery.NONE,
}


def mode_after(mode: Mode, step: ModeStep) -> Mode:
    """The mode that the step leads to."""
    return MODES.get((mode, step), mode)


def recovery_after(recovery: Recovery, care: RecoveryStep) -> Recovery:
    """The recovery that the step leads to."""
    return RECOVERIES.get((recovery, care), recovery)
