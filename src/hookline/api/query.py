"""What do the parameters of a list ask for?

Each is known, given once, and read strictly; anything else is refused with the name of the parameter.
"""

import re
from urllib.parse import unquote_to_bytes

from hookline import dead_letters, ids, rfc3339
from hookline.errors import Invalid, NotFound
from hookline.model import CircuitState, Reason, State
from hookline.names import check_account, check_type, did_you_mean

DEFAULT_LIMIT = 50
MAX_LIMIT = 200

_LIMIT = re.compile(r"[0-9]{1,3}")


class Query:
    """The parameters of one request."""

    def __init__(self, query_string: bytes, known: tuple[str, ...]) -> None:
        self._values: dict[str, str] = {}
        for pair in filter(None, query_string.split(b"&")):
            name, value = (_decoded(part) for part in (pair.partition(b"=")[0], pair.partition(b"=")[2]))
            if name not in known:
                raise Invalid(
                    f"There is no parameter {name[:100]!r} here.{did_you_mean(name, known)}",
                    pointer=name[:100],
                    code="unknown_parameter",
                )
            if name in self._values:
                raise _invalid(name, "is given twice")
            self._values[name] = value

    @property
    def filters(self) -> dict[str, str]:
        """All that chooses what is listed, as it was written."""
        return {name: value for name, value in self._values.items() if name not in ("limit", "cursor")}

    def text(self, name: str) -> str | None:
        return self._values.get(name)

    def limit(self) -> int:
        text = self._values.get("limit")
        if text is None:
            return DEFAULT_LIMIT
        if not _LIMIT.fullmatch(text) or not 1 <= int(text) <= MAX_LIMIT:
            raise _invalid("limit", f"is a whole number from 1 to {MAX_LIMIT}")
        return int(text)

    def account(self) -> str | None:
        text = self._values.get("account")
        if text is None:
            return None
        try:
            return check_account(text)
        except Invalid as error:
            raise _invalid("account", f"will not do: {error.detail}") from None

    def event_type(self) -> str | None:
        text = self._values.get("event_type")
        if text is None:
            return None
        try:
            return check_type(text)
        except Invalid as error:
            raise _invalid("event_type", f"will not do: {error.detail}") from None

    def flag(self, name: str) -> bool | None:
        match self._values.get(name):
            case None:
                return None
            case "true":
                return True
            case "false":
                return False
        raise _invalid(name, "is true or false")

    def state(self) -> State | None:
        text = self._values.get("state")
        if text is None:
            return None
        try:
            return State(text)
        except ValueError:
            raise _invalid("state", f"is one of {', '.join(State)}") from None

    def circuit(self) -> CircuitState | None:
        text = self._values.get("circuit")
        if text is None:
            return None
        try:
            return CircuitState(text)
        except ValueError:
            raise _invalid("circuit", f"is one of {', '.join(CircuitState)}") from None

    def reason(self) -> Reason | None:
        text = self._values.get("reason")
        return None if text is None else dead_letters.reason(text, pointer="reason", code="invalid_parameter")

    def id(self, name: str, noun: str) -> bytes | None:
        text = self._values.get(name)
        if text is None:
            return None
        try:
            return ids.read(noun, text)
        except NotFound:
            raise _invalid(name, f"is the id of an {noun}, such as {ids.show(noun, bytes(16))}") from None

    def moment(self, name: str) -> float | None:
        text = self._values.get(name)
        if text is None:
            return None
        try:
            return rfc3339.read(text)
        except ValueError:
            raise _invalid(name, "is an RFC 3339 time with a zone, such as 2026-01-31T12:00:00Z") from None


def _decoded(part: bytes) -> str:
    try:
        return unquote_to_bytes(part.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise Invalid("The parameters are not UTF-8.", code="invalid_parameter") from None


def _invalid(name: str, why: str) -> Invalid:
    return Invalid(f"The parameter {name} {why}.", pointer=name, code="invalid_parameter")
