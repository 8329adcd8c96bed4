"""Lets a test make this process fail at chosen steps.

It does nothing unless `HOOKLINE_FAILPOINTS` is set, e.g. to `settle.before=kill@3,send.after=pause`. Each step that
matters for durability calls `failpoint("name")`; the test chooses from outside what happens there.
"""

import os
import signal
from collections.abc import Callable

# The store's verbs that write: `store.failpoints` calls a `.before` and an `.after` failpoint around each.
VERBS = frozenset(
    {"accept", "take", "take_these", "settle", "note", "mark", "condemn", "release", "wake"}
    | {"register", "beat", "bury", "free", "sweep", "retire", "look"}
    | {"create_endpoint", "update_endpoint", "delete_endpoint", "cancel_deleted", "reset_circuit"}
    | {"retry", "cancel", "redrive", "redrive_event", "discard", "create_job", "advance_job", "fail_job"}
    | {"create_key", "create_first_key", "revoke_key", "put_event_type", "delete_event_type", "put_account"}
    | {"create_session", "see_session", "open_link", "end_session", "end_sessions_of"}
    | {"write_audit", "prune_audit"}
    | {"flush_latencies", "fold_latencies", "roll_latencies", "claim_latency_days", "write_latency_days"}
    | {"take_alert_turn", "write_alerts", "prune_alerts"}
    | {"mark_sealed", "installation_secret", "prune", "prune_records", "take_prune_turn"}
    | {"publish_announcements", "take_notifications", "end_notifications"}
    | {"drop_from_outbox", "refuse", "refuse_again", "discard_refused", "note_source", "forget_source"}
)
STEPS = frozenset(
    {
        "handover.before",
        "load.after",
        "job.before",  # about to do a part of a bulk replay or discard
        "migrate.step",  # before a migration, and after each of its steps
        "job.after",  # the part is committed, its lanes are not woken
        "outbox.looked",  # rows were read, nothing of them is accepted
        "outbox.accepted",  # their events are stored, the rows are not dropped
        "outbox.dropped",
        "answer.after",  # the answer has arrived and is not settled
    }
)
NETWORK = frozenset(
    {
        "resolve.before",
        "resolve.after",
        "connect.before",
        "connect.after",
        "tls.before",
        "tls.after",
        "send.before",  # admitted, no byte written
        "send.after",  # the request is written, no answer yet
        "head.after",  # the answer's head has arrived, its body has not
    }
)
NAMES = STEPS | NETWORK | {f"{verb}.{side}" for verb in VERBS for side in ("before", "after")}


class Planted(Exception):
    """Raised by a failpoint switched to `error`."""


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _fail() -> None:
    raise Planted("a failpoint was switched to error")


_ACTIONS: dict[str, Callable[[], None]] = {"kill": _die, "pause": _stop, "error": _fail}
planted: dict[str, tuple[Callable[[], None], int]] = {}
_hits: dict[str, int] = {}


def plant(text: str) -> None:
    """Switch failpoints on: `name=action` or `name=action@n` (only at the n-th hit), comma-separated."""
    planted.clear()
    _hits.clear()
    for part in filter(None, text.split(",")):
        name, _, rest = part.partition("=")
        action, _, nth = rest.partition("@")
        if name not in NAMES or action not in _ACTIONS:
            raise ValueError(f"no such failpoint or action: {part!r}")
        planted[name] = (_ACTIONS[action], int(nth or 0))


def failpoint(name: str) -> None:
    """Do what a test planted under this name; otherwise nothing."""
    if not planted:
        return
    found = planted.get(name)
    if found is None:
        return
    action, nth = found
    _hits[name] = _hits.get(name, 0) + 1
    if nth in (0, _hits[name]):
        action()


plant(os.environ.get("HOOKLINE_FAILPOINTS", ""))
