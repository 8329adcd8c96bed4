"""Classifies the answer to an attempt.

Every answer has a class, so that no later code looks at a status again.
"""

from collections.abc import Iterable

from hookline.model import DEFAULT_RETRY_STATUSES, ErrorKind, Outcome


def expanded(statuses: Iterable[str | int]) -> frozenset[int]:
    """The statuses in a list of statuses and classes ("5xx")."""
    found: set[int] = set()
    for status in statuses:
        if isinstance(status, int):
            found.add(status)
        else:
            first = int(status[0]) * 100
            found.update(range(first, first + 100))
    return frozenset(found)


DEFAULT_RETRIED = expanded(DEFAULT_RETRY_STATUSES)


def is_accepted(status: int | None) -> bool:
    """Whether an answer with this status means that the receiver has the event."""
    return status is not None and 200 <= status < 300


def classify(
    status: int | None,
    error: ErrorKind | None,
    *,
    asks_to_wait: bool,
    retried: frozenset[int] = DEFAULT_RETRIED,
) -> tuple[Outcome, ErrorKind | None]:
    """The outcome of an attempt, and the kind of error if it was not accepted.

    `asks_to_wait`: the answer carried a `Retry-After`. `retried`: the statuses after which the endpoint wants another
    attempt.
    """
    if error is not None:
        return Outcome.TRANSIENT, error
    if status is None:
        return Outcome.TRANSIENT, ErrorKind.INTERNAL
    if is_accepted(status):
        return Outcome.ACCEPTED, None
    kind = _kind(status)
    if status in retried:
        slow_down = status == 429 or (status == 503 and asks_to_wait)
        return (Outcome.THROTTLED if slow_down else Outcome.TRANSIENT), kind
    if status == 410:
        return Outcome.GONE, kind
    if 300 <= status < 600:
        return Outcome.REJECTED, kind
    return Outcome.TRANSIENT, kind


def _kind(status: int) -> ErrorKind:
    match status:
        case 410:
            return ErrorKind.HTTP_410
        case 429:
            return ErrorKind.HTTP_429
        case _ if 300 <= status < 400:
            return ErrorKind.HTTP_3XX
        case _ if 400 <= status < 500:
            return ErrorKind.HTTP_4XX
        case _ if 500 <= status < 600:
            return ErrorKind.HTTP_5XX
        case _:
            return ErrorKind.PROTOCOL
