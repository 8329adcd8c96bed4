"""Defines a control of a form, and how what was filled in is read: as text, as a number, or not at all."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hookline.errors import Invalid

Filled = Mapping[str, Sequence[str]]  # a form: what each name has
WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
SEPARATORS = re.compile(r"[,\s]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


class Control(msgspec.Struct, kw_only=True):
    """A control of a form, with the API's message about it."""

    name: str
    label: str
    pointer: str  # of the value that it sets
    kind: str = "text"  # area, choice, check, number, radio
    value: str = ""
    options: Sequence[tuple[str, str]] = ()  # of a choice: value and words
    help: str = ""
    only: str = ""  # with which choice above it counts
    placeholder: str = ""
    problem: str = ""
    problem_at: str = ""

    @property
    def id(self) -> str:
        """Its id on the page."""
        return "f-" + self.name.replace(".", "-")


def filled_in(form: Any) -> Filled:
    """What a form has for each name."""
    return {name: [str(each) for each in form.getlist(name)] for name in form}


def one(filled: Filled, name: str) -> str:
    """What a form has for a name that is there once."""
    found = filled.get(name, ())
    return found[0].strip() if found else ""


def placed(controls: Sequence[Control], error: Invalid) -> bool:
    """Put the message beside the control that it is about; False if it is about none of them."""
    near = [each for each in controls if _is_within(error.pointer, each.pointer)]
    if not near:
        return False
    best = max(near, key=lambda each: len(each.pointer))
    best.problem, best.problem_at = error.detail, error.pointer
    return True


def as_number(text: str) -> Any:
    """A number; the text itself if it is none, and None if there is none."""
    if WHOLE.fullmatch(text):
        return int(text)
    if len(text) < 50 and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text or None


def _is_within(pointer: str, outer: str) -> bool:
    return pointer == outer or pointer.startswith(outer + "/")
