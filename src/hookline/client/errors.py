"""The errors of a call to the server.

What the server refuses is raised as an `ApiError` that also is the error of `hookline.errors` for it, so that a program
need not know whether its hookline is a server's.
"""

from collections.abc import Sequence

import msgspec

from hookline import errors
from hookline.errors import HooklineError, InvalidPart


class ClientError(HooklineError):
    """A call failed."""


class Unreachable(ClientError):
    """The server could not be reached, or the connection broke before its answer arrived."""

    def __init__(self, url: str, why: str, *, may_be_done: bool, may_pass: bool = True) -> None:
        super().__init__(f"{url} cannot be reached: {why}.")
        self.may_be_done = may_be_done  # the request may have arrived
        self.may_pass = may_pass  # trying again may help; it does not help against a wrong certificate


class ClientClosed(ClientError, errors.NotRunning):
    """This client was closed."""

    def __init__(self) -> None:
        super().__init__("This client is closed.")


class UnexpectedAnswer(ClientError):
    """The answer is not hookline's: it is from a proxy that lost its server, or from another service."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"The answer ({status}) is not hookline's: {why}.")
        self.status = status


class ApiError(ClientError):
    """The server refused the call. `code` is stable, `detail` is for people."""

    def __init__(
        self,
        *,
        status: int,
        code: str,
        detail: str = "",
        title: str = "",
        request_id: str = "",
        errors: Sequence[InvalidPart] = (),
    ) -> None:
        where = ", ".join(each.pointer for each in errors if each.pointer)
        text = f"{detail or title}{f' ({where})' if where else ''} [{code}, {request_id}]"
        HooklineError.__init__(self, text)  # those between the two are told more than an answer says
        self.status = status
        self.code = code
        self.detail = detail
        self.title = title
        self.request_id = request_id  # the server's log has the request under this id
        self.errors = tuple(errors)
        self.pointer = self.errors[0].pointer if self.errors else ""


class NotFound(ApiError, errors.NotFound):
    """Nothing has that id, or it belongs to another account."""

    noun = id = ""


class WrongState(ApiError, errors.WrongState):
    """The state of the delivery, or of the endpoint, does not allow it."""

    verb = state = ""


class Unreadable(ApiError, errors.Unreadable):
    """The server cannot read the request."""


class TooLarge(ApiError, errors.TooLarge):
    """The request is over a size limit of the server."""

    limit_bytes = 0


class Invalid(ApiError, errors.Invalid):
    """The server can read the request, but a part of it is invalid."""


class SchemaMismatch(Invalid, errors.SchemaMismatch):
    """The payload does not match the schema of its type."""

    event_type = ""


class AccountMismatch(Invalid, errors.AccountMismatch):
    """The key is bound to another account."""


class IdempotencyConflict(ApiError, errors.IdempotencyConflict):
    """The idempotency key was already used for another event."""

    key = ""


class Unavailable(ApiError, errors.Unavailable):
    """The server cannot do it now (429, 503), and still could not when the client stopped trying."""


_BY_CODE: dict[str, type[ApiError]] = {
    "schema_mismatch": SchemaMismatch,
    "account_mismatch": AccountMismatch,
    "idempotency_conflict": IdempotencyConflict,
}
_BY_STATUS: dict[int, type[ApiError]] = {
    400: Unreadable,
    404: NotFound,
    409: WrongState,
    413: TooLarge,
    422: Invalid,
    429: Unavailable,
    503: Unavailable,
}


class Culprit(msgspec.Struct, frozen=True):
    """The part of the request that is invalid, as the server writes it."""

    pointer: str = ""
    detail: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457, as the server writes it."""

    status: int
    code: str
    detail: str = ""
    title: str = ""
    request_id: str = ""
    errors: tuple[Culprit, ...] = ()

    def error(self) -> ApiError:
        """The exception for this problem."""
        kind = _BY_CODE.get(self.code) or _BY_STATUS.get(self.status, ApiError)
        return kind(
            status=self.status,
            code=self.code,
            detail=self.detail,
            title=self.title,
            request_id=self.request_id,
            errors=[InvalidPart(each.pointer, each.detail) for each in self.errors],
        )
