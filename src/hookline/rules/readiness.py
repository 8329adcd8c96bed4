"""Decides whether publishes are accepted, from how the last ones went."""

from typing import NamedTuple

LATE = 1.0  # seconds for which a publish may wait for its commit
RECENT = 0.5  # seconds for which a good commit speaks for the next one


class Publishing(NamedTuple):
    """How publishing goes, by the monotonic clock."""

    waiting_since: float | None = None  # publishes wait, and nothing has moved since
    committed_at: float = float("-inf")  # when the last good commit began
    refused_at: float = float("-inf")
    refusal: str = ""  # the last one


def fault(publishing: Publishing, *, at: float) -> str | None:
    """Why publishes are not accepted; None: as far as the last ones tell, they are."""
    since = publishing.waiting_since
    if since is not None and at - since >= LATE:
        return f"publishes have been waiting for {at - since:.1f} s"
    # Whoever was refused comes back soon. Until then a refusal counts, or every second answer would be wrong.
    if publishing.refused_at > publishing.committed_at and at - publishing.refused_at < LATE:
        return publishing.refusal
    return None


def is_shown(publishing: Publishing, *, at: float) -> bool:
    """Does a good commit show that publishes are accepted, so that nothing has to be tried?"""
    return at - publishing.committed_at < RECENT
