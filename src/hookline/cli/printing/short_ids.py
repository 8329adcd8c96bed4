"""Shortens ids for lists, and finds the whole id of what a person typed.

Ids are time-ordered, so those of the same moment begin alike: 8 characters say the second, 10 the millisecond, and the
random ones begin with the 15th. The last four characters of a delivery's id are its place among its event's
deliveries, which share all the others. So a delivery is shortened to the beginning of its event and that place, as in
`dlv_06f3b1q2a7k3m0p.3`.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hookline.cli.exits import NOT_FOUND, USAGE, CommandError

if TYPE_CHECKING:
    from hookline.cli.client import Client

WHOLE = 26
LEAST = 8
_SHOWN = {"evt": 15, "dlv": 15}  # made at any rate, by several processes
_SHOWN_OTHERS = 10  # made by people
_CANDIDATES = 10
_PLACE = 4  # characters
_TYPED = re.compile(r"([a-z]{2,3})_([0-7][0-9a-v]{0,25})(?:\.([0-9]{1,7}))?")
_PREFIX = {
    "event": "evt",
    "endpoint": "ep",
    "delivery": "dlv",
    "worker": "wrk",
    "replay": "rpl",
    "discard": "dsc",
    "key": "key",
}


class ShortIds:
    """Short forms that tell the ids of a list apart."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._length = {}
        digits: dict[str, set[str]] = {}
        for id in ids:
            kind, _, rest = id.partition("_")
            digits.setdefault(kind, set()).add(_of_event(rest) if kind == "dlv" else rest)
        for kind, all in digits.items():
            shown = _SHOWN.get(kind, _SHOWN_OTHERS)
            while shown < WHOLE and len({each[:shown] for each in all}) < len(all):
                shown += 1
            self._length[kind] = shown

    def show(self, id: str) -> str:
        """The short form of an id of the list."""
        kind, _, digits = id.partition("_")
        short = f"{kind}_{digits[: self._length[kind]]}"
        return f"{short}.{int(digits[-_PLACE:], 32)}" if kind == "dlv" else short


def looks_like_id(noun: str, text: str) -> bool:
    """Whether a text can be an id of this kind, a prefix of one or a short form."""
    typed = _TYPED.fullmatch(text)
    if typed is None or typed[1] != _PREFIX[noun]:
        return False
    return typed[3] is None or (noun == "delivery" and int(typed[3]) < 32**_PLACE)


def whole_id(client: "Client", noun: str, text: str) -> str:
    """The id that a person means by it: itself, a unique prefix of it, or its short form."""
    from hookline.errors import NotFound

    if not looks_like_id(noun, text):
        raise NotFound(noun, text[:100])
    start, _, place = text.partition(".")
    kind, _, digits = start.partition("_")
    if place and len(digits) >= WHOLE - _PLACE:
        return f"dlv_{_in_place(digits, place)}"
    if len(digits) == WHOLE:
        return text
    check_length(kind, digits, text)
    if not place:
        return _only(_found(client, start), text, noun)
    event = _only(_found(client, f"evt_{digits}"), text, noun)
    return f"dlv_{_in_place(event.partition('_')[2], place)}"


def whole_row_id(client: "Client", text: str) -> str:
    """The id of the refused row of an outbox that a person means: rows have no event that could be found by it."""
    from hookline.errors import NotFound

    kind, _, digits = text.partition("_")
    if not looks_like_id("event", text):
        raise NotFound("refused row", text[:100])
    if len(digits) == WHOLE:
        return text
    check_length(kind, digits, text)
    listed = client.pages("/v1/outbox/refused", limit=None)
    found = sorted({each["id"] for each in listed if each["id"].startswith(text)})
    return only(found[:_CANDIDATES], len(found) > _CANDIDATES, text, "refused row")


def with_whole_ids(client: "Client", filter: dict[str, Any]) -> dict[str, Any]:
    """The filter of a list, with the whole ids of the endpoint and the event that it names."""
    given = {noun: filter.get(f"{noun}_id") for noun in ("endpoint", "event")}
    return filter | {
        f"{noun}_id": whole_id(client, noun, text) for noun, text in given.items() if text is not None
    }


def check_length(kind: str, digits: str, text: str) -> None:
    """Raise unless there are enough characters."""
    if len(digits) < LEAST:
        raise CommandError(
            f"{text!r} is too short: give at least {LEAST} characters of the id after {kind}_.", USAGE
        )


def only(found: list[str], has_more: bool, text: str, noun: str) -> str:
    """The only id that was found; raises with the candidates if there are several."""
    from hookline.errors import NotFound

    if not found:
        raise NotFound(noun, text)
    if len(found) > 1:
        more = " …" if has_more else ""
        raise CommandError(f"{text} is ambiguous: {', '.join(found)}{more}. Give more characters.", USAGE)
    return found[0]


def _found(client: "Client", prefix: str) -> tuple[list[str], bool]:
    try:
        answer = client.get(f"/v1/ids/{prefix}")
    except CommandError as error:
        if error.exit_status == NOT_FOUND:  # a server that does not know the call yet
            return [], False
        raise
    return answer["data"], answer["has_more"]


def _only(found: tuple[list[str], bool], text: str, noun: str) -> str:
    return only(*found, text, noun)


def _of_event(digits: str) -> str:
    return digits[:-_PLACE] + "0" * _PLACE


def _in_place(digits: str, place: str) -> str:
    """The digits of the delivery at this place of the event."""
    number, text = int(place), ""
    for _ in range(_PLACE):
        text = "0123456789abcdefghijklmnopqrstuv"[number % 32] + text
        number //= 32
    return digits[: WHOLE - _PLACE] + text
