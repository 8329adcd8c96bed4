"""Reads the headers that verification needs.

Frameworks pass headers in many shapes: mappings of any case, lists of pairs, text or bytes, several values for one
name. Anything else is refused with a clear error.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hookline.receiver.refusal import Refusal, VerificationError

# Any object with `items()` is accepted, and any iterable of pairs (ASGI's `scope["headers"]`).
Headers = Mapping[Any, Any] | Iterable[Any]

MAX_LENGTH = 16_384  # of one value; 16 signatures of the longest kind have 1,500


class Fields:
    """The values of a request's headers, by name in lower case."""

    def __init__(self, headers: Headers) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in _pairs(headers):
            if (text := _text(name)) is not None:
                self._values.setdefault(text.lower(), []).append(_stripped(value))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> str | None:
        """The value of a header that verification does not need; None unless it is there once and readable."""
        values = self._values.get(name, ())
        return values[0] if len(values) == 1 and _is_readable(values[0]) else None

    def need(self, name: str) -> str:
        """The value of a header that must be there once, as visible ASCII."""
        values = self._values.get(name)
        if values is None:
            raise VerificationError(Refusal.MISSING_HEADER, f"The request has no header {name}.")
        if len(values) > 1:
            raise malformed(name, "appears more than once")
        (value,) = values
        if not _is_readable(value):
            raise malformed(name, "is empty, too long, or not visible ASCII")
        return value


def _is_readable(value: str) -> bool:
    return 0 < len(value) <= MAX_LENGTH and value.isascii() and value.isprintable()


def malformed(name: str, what: str) -> VerificationError:
    """The refusal of a header; it shows the header's name and not its value."""
    return VerificationError(Refusal.MALFORMED_HEADER, f"The header {name} {what}.")


def _pairs(headers: Any) -> Iterator[tuple[Any, Any]]:
    items = getattr(headers, "items", None)
    pairs = items() if callable(items) else headers
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise _unusable()
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise _unusable()
        name, value = pair
        for each in value if isinstance(value, list | tuple) else (value,):
            yield name, each


def _unusable() -> VerificationError:
    return VerificationError(
        Refusal.MALFORMED_HEADER, "The headers are neither a mapping nor a list of pairs."
    )


def _text(value: Any) -> str | None:
    # Latin-1 as WSGI and ASGI servers do: it keeps every byte, and what matters here is ASCII anyway.
    return value.decode("latin-1") if isinstance(value, bytes) else value if isinstance(value, str) else None


def _stripped(value: Any) -> str:
    return (_text(value) or "").strip(" \t")
