"""Decides whether a row of an outbox is refused, by the error that its event met.

Without a code nothing is wrong with the row: it stays where it is.
"""

from hookline.errors import (
    AcceptFailed,
    HooklineError,
    IdempotencyConflict,
    Invalid,
    RowRefused,
    TooLarge,
    Unreadable,
)

OF_ITS_OWN = frozenset({"schema_mismatch", "fanout_limit", "loop_detected"})


def code_of(error: HooklineError) -> str | None:
    """The code of the refusal; None: the row is not to blame, or perhaps not."""
    match error:
        case Invalid():
            field = error.pointer.strip("/").partition("/")[0]
            return error.code if error.code in OF_ITS_OWN else f"invalid_{field or 'row'}"
        case IdempotencyConflict():
            return "idempotency_conflict"
        case TooLarge():
            return "too_large"
        case Unreadable():
            return "invalid_payload"
        case _:
            return None


def may_be_a_row(error: HooklineError) -> bool:
    """Whether one row of a batch that failed as a whole may be to blame."""
    return isinstance(error, AcceptFailed | RowRefused | Invalid)
