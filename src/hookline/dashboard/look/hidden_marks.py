"""Writes out the characters of a text that are not seen but change how it is read.

A mark of direction turns the text around it, and a control character does what it likes with it. A receiver that sends
them would decide how its answer looks to an operator. They are shown as what they are, such as `\\u202e`.
"""

import re
from typing import Any

from markupsafe import Markup, escape

_MARKS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
_IN_TEXT = re.compile(f"[{_MARKS}\u2028\u2029]")
_IN_PAYLOAD = re.compile(f"[{_MARKS}]")  # a line that a publisher ends with U+2028 stays as it was published


def visible(value: Any) -> Any:
    """The value to show: a text with such characters has them written out, everything else stays as it is."""
    return _written_out(value, _IN_TEXT) if isinstance(value, str) and _IN_TEXT.search(value) else value


def visible_payload(text: str) -> Markup:
    """The same for a payload, escaped."""
    return _written_out(text, _IN_PAYLOAD) if _IN_PAYLOAD.search(text) else escape(text)


def _written_out(text: str, marks: re.Pattern[str]) -> Markup:
    shown, end = [], 0
    for found in marks.finditer(text):
        shown += [escape(text[end : found.start()]), _MARK.format(_name(found.group()))]
        end = found.end()
    return Markup("").join([*shown, escape(text[end:])])


_MARK = Markup('<span class="unseen">{}</span>')


def _name(mark: str) -> str:
    return f"\\x{ord(mark):02x}" if ord(mark) < 0x100 else f"\\u{ord(mark):04x}"
