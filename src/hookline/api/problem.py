"""Turns errors into problem documents.

A refusal is `application/problem+json` with one of these codes. Codes are stable: programs compare them. `title` and
`detail` are for people.
"""

import msgspec

from hookline.errors import (
    HooklineError,
    IdempotencyConflict,
    Invalid,
    NotFound,
    Overloaded,
    SchemaMismatch,
    StorageFull,
    StoreRefused,
    StoreUnavailable,
    TooLarge,
    Unreadable,
    WrongState,
)

RETRY_AFTER_S = 1
# The same words for an id that nobody has, an id that cannot exist, somebody else's id, and an unknown path: the
# caller learns nothing by comparing them.
NOTHING_HERE = "Not found: no such path, or nothing with this id."
MEDIA_TYPE = b"application/problem+json"

STATUSES = {
    "invalid_json": 400,
    "duplicate_key": 400,
    "too_deep": 400,
    "bad_request": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "wrong_state": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "rate_limited": 429,
    "internal": 500,
    "unavailable": 503,
    "overloaded": 503,
    "storage_full": 503,
}
TITLES = {
    400: "The request cannot be read",
    401: "An API key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "The request takes too long",
    409: "Wrong state",
    413: "Too large",
    415: "Unsupported media type",
    422: "The request is invalid",
    429: "Too many requests",
    500: "Internal error",
    503: "Try again later",
}


class Culprit(msgspec.Struct, frozen=True):
    """The part of the request that is invalid."""

    pointer: str
    detail: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457, with a stable code."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: list[Culprit] = []


class Refused(HooklineError):
    """A request that the API refuses by itself, before it asks anything of hookline."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        close: bool = False,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.headers = headers
        self.close = close  # the rest of the request is unread: the connection cannot be used again


def describe(error: Exception, *, request_id: str) -> Problem:
    """The problem document for an error; an error that is not ours reveals nothing."""
    match error:
        case SchemaMismatch():
            problem = _problem(error.code, error.detail, request_id)
            return msgspec.structs.replace(problem, errors=[Culprit(*each) for each in error.errors])
        case Invalid():
            return _problem(error.code, error.detail, request_id, pointer=error.pointer)
        case Refused() | Unreadable():
            return _problem(error.code, error.detail, request_id)
        case NotFound():
            return _problem("not_found", NOTHING_HERE, request_id)
        case WrongState():
            return _problem("wrong_state", str(error), request_id)
        case TooLarge():
            return _problem("too_large", str(error), request_id)
        case IdempotencyConflict():
            return _problem("idempotency_conflict", str(error), request_id, pointer="/idempotency_key")
        case StorageFull():
            return _problem("storage_full", "The disk of the database is full.", request_id)
        case StoreUnavailable():
            return _problem(
                "unavailable",
                "The database did not answer. Repeat the request; with an idempotency key nothing is sent twice.",
                request_id,
            )
        case StoreRefused():  # rights taken away, a newer schema: the log says what an operator has to do
            return _problem(
                "unavailable", "The database cannot be used now; the server's log says why.", request_id
            )
        case Overloaded():
            return _problem("overloaded", "The server is overloaded. Try again later.", request_id)
    return _problem(
        "internal", f"Internal error. The server's log has the details under {request_id}.", request_id
    )


def headers_for(problem: Problem) -> list[tuple[bytes, bytes]]:
    """The headers that belong to a problem of this kind."""
    headers = [(b"content-type", MEDIA_TYPE), (b"cache-control", b"no-store")]
    if problem.status == 503:
        headers.append((b"retry-after", b"%d" % RETRY_AFTER_S))
    if problem.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="hookline"'))
    return headers


def _problem(code: str, detail: str, request_id: str, *, pointer: str | None = None) -> Problem:
    status = STATUSES.get(code, 422)
    return Problem(
        type=f"urn:hookline:problem:{code}",
        title=TITLES[status],
        status=status,
        detail=detail,
        code=code,
        request_id=request_id,
        errors=[] if pointer is None else [Culprit(pointer, detail)],
    )
