"""Decides which worker moves the rows of outboxes: the one with the lowest id that lives.

Two by mistake cost only work. Workers of other versions are left out: an older one may not know of the outbox.
"""

from collections.abc import Iterable
from typing import NamedTuple

from hookline.model import WorkerId


class Candidate(NamedTuple):
    """Another worker, as far as the election asks."""

    id: WorkerId
    delivers: bool
    is_leaving: bool
    version: str


def moves(me: WorkerId, version: str, others: Iterable[Candidate]) -> bool:
    """Whether this worker moves, given the others that live."""
    return not any(
        other.id < me and other.delivers and not other.is_leaving and other.version == version
        for other in others
    )
