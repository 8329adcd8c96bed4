"""What did an answer mean?

Every answer means something: the classification is total, and nobody downstream looks at a status again.
"""

from hookline.model import ErrorKind, Outcome

_RETRIED = frozenset({408, 425})


def classify(
    status: int | None, error: ErrorKind | None, *, asks_to_wait: bool
) -> tuple[Outcome, ErrorKind | None]:
    """The meaning of an attempt's end, and the kind of error where it was not accepted.

    `asks_to_wait`: the answer carried a `Retry-After`.
    """
    if error is not None:
        return Outcome.TRANSIENT, error
    match status:
        case None:
            return Outcome.TRANSIENT, ErrorKind.INTERNAL
        case _ if 200 <= status < 300:
            return Outcome.ACCEPTED, None
        case 410:
            return Outcome.GONE, ErrorKind.HTTP_410
        case 429:
            return Outcome.THROTTLED, ErrorKind.HTTP_429
        case 503 if asks_to_wait:
            return Outcome.THROTTLED, ErrorKind.HTTP_5XX
        case _ if 500 <= status < 600:
            return Outcome.TRANSIENT, ErrorKind.HTTP_5XX
        case _ if status in _RETRIED:
            return Outcome.TRANSIENT, ErrorKind.HTTP_4XX
        case _ if 400 <= status < 500:
            return Outcome.REJECTED, ErrorKind.HTTP_4XX
        case _ if 300 <= status < 400:
            return Outcome.REJECTED, ErrorKind.HTTP_3XX
        case _:
            return Outcome.TRANSIENT, ErrorKind.PROTOCOL
