"""Which moves can a delivery make?

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

The first three verbs of the table settle an attempt, the others are asked for by a person. `retry` makes a
pending delivery due now; `retry_later` is an attempt that failed with another to come. Everything not in the
table is refused. The stores enforce it row by row, and the contract tests walk every pair.
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
