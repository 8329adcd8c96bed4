"""The errors of a call to the server."""

from collections.abc import Sequence

import msgspec

from hookline.errors import HooklineError


class ClientError(HooklineError):
    """A call failed."""


class Unreachable(ClientError):
    """The server could not be reached, or the connection broke before its answer arrived."""

    def __init__(self, url: str, why: str, *, may_be_done: bool, may_pass: bool = True) -> None:
        super().__init__(f"{url} cannot be reached: {why}.")
        self.may_be_done = may_be_done  # the request may have arrived
        self.may_pass = may_pass  # trying again may help; it does not help against a wrong certificate


class UnexpectedAnswer(ClientError):
    """The answer is not hookline's: it is from a proxy that lost its server, or from another service."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"The answer ({status}) is not hookline's: {why}.")
        self.status = status


class Culprit(msgspec.Struct, frozen=True):
    """The part of the request that is invalid."""

    pointer: str = ""
    detail: str = ""


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
        errors: Sequence[Culprit] = (),
    ) -> None:
        where = ", ".join(each.pointer for each in errors if each.pointer)
        super().__init__(f"{detail or title}{f' ({where})' if where else ''} [{code}, {request_id}]")
        self.status = status
        self.code = code
        self.detail = detail
        self.title = title
        self.request_id = request_id  # the server's log has the request under this id
        self.errors = tuple(errors)


class NotFound(ApiError):
    """Nothing has that id, or it belongs to another account."""


class Unavailable(ApiError):
    """The server cannot do it now (429, 503), and still could not when the client stopped trying."""


_BY_STATUS: dict[int, type[ApiError]] = {404: NotFound, 429: Unavailable, 503: Unavailable}


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
        return _BY_STATUS.get(self.status, ApiError)(
            status=self.status,
            code=self.code,
            detail=self.detail,
            title=self.title,
            request_id=self.request_id,
            errors=self.errors,
        )
