"""Defines the moves between a delivery's states.

                 deliver                        redrive
        ┌──────────────────────► delivered ───────────────┐
        │                                                 │
        │        bury                    redrive          ▼
    pending ───────────────────► dead ───────────────► pending
     │    ▲ │                     │                       ▲
     └────┘ │    cancel           │ discard               │
    retry,  │                     ▼      redrive          │
    retry   └──────────────────► cancelled ───────────────┘
    later

The first three verbs of the table settle an attempt; an operator asks for the others. `retry` makes a pending delivery
due now. `retry_later` settles a failed attempt that another one follows. Everything that is not in the table is
refused. The stores enforce it row by row, and the contract tests try every pair.
"""

from enum import StrEnum

from hookline.model import State


class Verb(StrEnum):
    """What can be done to a delivery."""

    DELIVER = "deliver"
    RETRY_LATER = "retry_later"
    BURY = "bury"
    RETRY = "retry"
    CANCEL = "cancel"
    REDRIVE = "redrive"
    DISCARD = "discard"


MOVES: dict[tuple[State, Verb], State] = {
    (State.PENDING, Verb.DELIVER): State.DELIVERED,
    (State.PENDING, Verb.RETRY_LATER): State.PENDING,
    (State.PENDING, Verb.BURY): State.DEAD,
    (State.PENDING, Verb.RETRY): State.PENDING,
    (State.PENDING, Verb.CANCEL): State.CANCELLED,
    (State.DELIVERED, Verb.REDRIVE): State.PENDING,
    (State.DEAD, Verb.REDRIVE): State.PENDING,
    (State.DEAD, Verb.DISCARD): State.CANCELLED,
    (State.CANCELLED, Verb.REDRIVE): State.PENDING,
}


def after(state: State, verb: Verb) -> State | None:
    """The state that the verb leads to; None when it is refused."""
    return MOVES.get((state, verb))
