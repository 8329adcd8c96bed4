"""Decides up to when everything that was accepted from an outbox has left it.

Pruning waits for that: an event that was pruned while its row is still in an outbox would be sent again. It is the
start of a LOOK that saw all rows, once these rows and those that were moved before are dropped.
"""

from collections.abc import Iterable

import msgspec

EVERY_S = 60.0  # between two beginnings


class Clearing(msgspec.Struct, frozen=True):
    """What is clear, and what is to be dropped before more is."""

    clear_at: float | None = None  # the store's time
    began_at: float | None = None  # of the LOOK that is waited for; None: none is
    waits_for: frozenset[int] = frozenset()  # numbers


def is_due(clearing: Clearing, *, now: float) -> bool:
    """Whether the next LOOK has to be one that sees all rows."""
    last = clearing.clear_at if clearing.began_at is None else clearing.began_at
    return last is None or now - last >= EVERY_S


def after_look(clearing: Clearing, *, began: float, numbers: Iterable[int]) -> Clearing:
    """After a LOOK by number and without floor that was not full; `numbers` are its rows and those moved before."""
    left = frozenset(numbers)
    if not left:
        return Clearing(began)
    if clearing.began_at is not None and not is_due(clearing, now=began):
        return clearing
    return Clearing(clearing.clear_at, began, left)


def after_drop(clearing: Clearing, numbers: Iterable[int]) -> Clearing:
    """After rows with these numbers were dropped."""
    if clearing.began_at is None:
        return clearing
    left = clearing.waits_for.difference(numbers)
    return Clearing(clearing.began_at) if not left else msgspec.structs.replace(clearing, waits_for=left)
