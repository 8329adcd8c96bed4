"""Reads the query parameters of a request.

Each is known, given once and UTF-8. Anything else is refused with the name of the parameter.
"""

from urllib.parse import unquote_to_bytes

from hookline.errors import Invalid
from hookline.validate.names import did_you_mean


class Query:
    """The parameters of one request, as they were written."""

    def __init__(self, query_string: bytes, known: tuple[str, ...]) -> None:
        self.values: dict[str, str] = {}
        for pair in filter(None, query_string.split(b"&")):
            name, value = (_decoded(part) for part in (pair.partition(b"=")[0], pair.partition(b"=")[2]))
            if name not in known:
                raise Invalid(
                    f"There is no parameter {name[:100]!r} here.{did_you_mean(name, known)}",
                    pointer=name[:100],
                    code="unknown_parameter",
                )
            if name in self.values:
                raise invalid(name, "is given twice")
            self.values[name] = value

    @property
    def filters(self) -> dict[str, str]:
        """The parameters that choose what is listed."""
        return {name: value for name, value in self.values.items() if name not in ("limit", "cursor")}


def invalid(name: str, why: str) -> Invalid:
    """The parameter is invalid."""
    return Invalid(f"The parameter {name} {why}.", pointer=name, code="invalid_parameter")


def _decoded(part: bytes) -> str:
    try:
        return unquote_to_bytes(part.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise Invalid("The parameters are not UTF-8.", code="invalid_parameter") from None
