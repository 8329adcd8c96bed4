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


class Step(Enum):
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


class Care(Enum):
    """What changes a lane's recovery."""

    BEGIN = "begin"
    INTERRUPT = "interrupt"  # suspects are left: they are sent with care later, or by the next owner
    FINISH = "finish"


MODES: dict[tuple[Mode, Step], Mode] = {
    (Mode.OPEN, Step.RELEASE): Mode.RELEASING,
    (Mode.OPEN, Step.STOP): Mode.GONE,
    (Mode.OPEN, Step.LOSE): Mode.LOST,
    (Mode.RELEASING, Step.KEEP): Mode.OPEN,
    (Mode.RELEASING, Step.STOP): Mode.GONE,
    (Mode.RELEASING, Step.LOSE): Mode.LOST,
    (Mode.GONE, Step.RELEASE): Mode.RELEASING,
    (Mode.GONE, Step.CHANGE): Mode.OPEN,
    (Mode.GONE, Step.LOSE): Mode.LOST,
}

RECOVERIES: dict[tuple[Recovery, Care], Recovery] = {
    (Recovery.SUSPECT, Care.BEGIN): Recovery.CAREFUL,
    (Recovery.CAREFUL, Care.INTERRUPT): Recovery.SUSPECT,
    (Recovery.CAREFUL, Care.FINISH): Recovery.NONE,
}


def mode_after(mode: Mode, step: Step) -> Mode:
    """The mode that the step leads to."""
    return MODES.get((mode, step), mode)


def recovery_after(recovery: Recovery, care: Care) -> Recovery:
    """The recovery that the step leads to."""
    return RECOVERIES.get((recovery, care), recovery)
