"""Checks event types, patterns, accounts, idempotency keys and mail addresses.

They are ASCII and compared byte for byte. Nothing is folded or normalised, so two names that look alike are never the
same by accident. A refusal suggests what was probably meant.
"""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from hookline.errors import Invalid
from hookline.validate.suggest import nearest

TYPE_LIMIT = 128

TYPE_PATTERN = r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*"
ACCOUNT_PATTERN = r"[A-Za-z0-9_.-]{1,64}"
KEY_PATTERN = r"[\x21-\x7e]{1,255}"

_TYPE = re.compile(TYPE_PATTERN)
_ACCOUNT = re.compile(ACCOUNT_PATTERN)
_KEY = re.compile(KEY_PATTERN)
EMAIL_LIMIT = 254
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL = re.compile(rf"(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")


@lru_cache(maxsize=1_024)  # asked for every event, of which most have one of a few types
def _is_type(text: str) -> bool:
    return _TYPE.fullmatch(text) is not None


def check_type(text: object, *, pointer: str = "/type") -> str:
    """An event type such as `order.paid`."""
    if not isinstance(text, str) or len(text) > TYPE_LIMIT or not _is_type(text):
        raise Invalid(
            "An event type is 1 to 128 characters: parts of letters, digits and _, separated by single dots.",
            pointer=pointer,
        )
    return text


def check_pattern(text: object, *, pointer: str) -> str:
    """A subscription of an endpoint: a type, a type followed by `.*`, or `*`."""
    if isinstance(text, str):
        if text == "*":
            return text
        stem = text.removesuffix(".*")
        if len(stem) <= TYPE_LIMIT and _TYPE.fullmatch(stem):
            return text
    raise Invalid(
        f"A pattern is an event type, an event type followed by .*, or *.{_meant_pattern(text)}",
        pointer=pointer,
    )


def _meant_pattern(text: object) -> str:
    if isinstance(text, str):
        stem = text[: TYPE_LIMIT + 4].rstrip(".*").replace("-", "_").replace("/", ".")
        if stem and stem != text and len(stem) <= TYPE_LIMIT and _TYPE.fullmatch(stem):
            return f" Did you mean {stem}{'.*' if text.endswith('*') else ''}?"
    return ""


def check_account(text: object, *, pointer: str = "/account") -> str:
    """An account's name."""
    if not isinstance(text, str) or not _ACCOUNT.fullmatch(text):
        raise Invalid("An account is 1 to 64 letters, digits, '_', '.' or '-'.", pointer=pointer)
    return text


def check_idempotency_key(text: object, *, pointer: str = "/idempotency_key") -> str:
    """A publisher's own name for an event."""
    if not isinstance(text, str) or not _KEY.fullmatch(text):
        raise Invalid("An idempotency key is 1 to 255 visible ASCII characters.", pointer=pointer)
    return text


def check_known(names: Iterable[object], known: Collection[str], *, at: str = "") -> None:
    """Raise `Invalid` (`unknown_field`) for the first name that is not a known one."""
    for name in names:
        if name not in known:
            raise Invalid(
                f"Unknown field {str(name)[:100]!r}.{did_you_mean(str(name), known)}",
                pointer=f"{at}/{pointer_step(name)}",
                code="unknown_field",
            )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence with the nearest of the known names, or nothing."""
    near = nearest(name, known)
    return "" if near is None else f" Did you mean {near}?"


def is_email(value: str) -> bool:
    """Whether it is one plain mail address, such as ops@example.com."""
    return len(value) <= EMAIL_LIMIT and bool(_EMAIL.fullmatch(value))


def is_text(value: str) -> bool:
    """Whether every database can hold the text: none with NUL or lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def pointer_step(name: object) -> str:
    """One step of a JSON pointer, never long."""
    return str(name)[:100].replace("~", "~0").replace("/", "~1")
