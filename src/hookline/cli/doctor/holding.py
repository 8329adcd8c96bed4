"""Checks that nobody holds the database up."""

from collections.abc import Iterator

from hookline.cli.doctor.findings import Finding, bad, ok, warn
from hookline.rules.old_snapshots import is_old
from hookline.store.contract import Snapshot
from hookline.store.contract.doctor import Examination, Holder

MOMENT_S = 0.5  # a lock that is younger is nothing unusual
NAMED = 3


def check_holding(found: Examination) -> Iterator[Finding]:
    """Check for locks and old snapshots of other sessions, and for questions that were not answered in time."""
    holders = [each for each in found.holders if each.seconds is None or each.seconds >= MOMENT_S]
    for holder in holders[:NAMED]:
        yield _locked(holder)
    if found.unanswered:
        named = ", ".join(dict.fromkeys(found.unanswered))
        step = "end what holds the lock, then run this command again" if holders else "run this command again"
        yield warn("answers", f"the database did not say in time: {named}", step)
    # A lock that is a moment old can be what kept the database from answering.
    is_known = "locks" not in found.unanswered and not (found.unanswered and found.holders)
    if not holders and is_known:
        yield ok("locks", "no other session keeps a table locked")
    old = [each for each in found.snapshots if is_old(seconds=each.seconds, transactions=each.transactions)]
    for snapshot in old[:NAMED]:
        yield _old(snapshot)


def _locked(holder: Holder) -> Finding:
    since = "" if holder.seconds is None else f" for {holder.seconds:,.0f} s"
    if holder.pid is None:
        return bad(
            "locks",
            f"another process keeps {holder.what} locked{since}: publishes and deliveries wait",
            "end the program that has a transaction open on it",
        )
    name = f" ({holder.name})" if holder.name else ""
    return bad(
        "locks",
        f"session {holder.pid}{name} has kept the table {holder.what} locked{since}: publishes or deliveries wait",
        f"finish its transaction, or end it: SELECT pg_terminate_backend({holder.pid})",
    )


def _old(snapshot: Snapshot) -> Finding:
    age = (
        f"{snapshot.transactions:,} transactions"
        if snapshot.seconds is None
        else f"{snapshot.seconds:,.0f} s"
    )
    who = f"{snapshot.held_by} {snapshot.name or snapshot.pid or ''}".strip()
    return warn(
        "snapshots",
        f"{who} has kept dead rows from being removed for {age}",
        "end it if it is not needed: hookline gets slower meanwhile",
    )
