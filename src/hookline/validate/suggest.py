"""Which of the known names was meant by one that is none of them, if any?

A wrong guess sends people the wrong way, so that a name is only suggested which could be the same one mistyped, or
the same one longer or shorter: `prot` for `port`, `endpoint` for `endpoint_id`, `retries` for `retry`.
"""

import difflib
import re
from collections.abc import Iterable

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_READ = 100  # characters of a name; what is longer was no slip
_LEAST_PART = 3  # characters that begin the other name
_LEAST_END = 4  # characters that end it without standing apart from the rest


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant, or None."""
    given = name[:_READ]
    near = [each for each in known if is_near(given, each)]
    return max(near, key=lambda each: _likeness(given, each), default=None)


def is_near(name: str, known: str) -> bool:
    """Could the one have been meant by the other?"""
    given, meant = _bare(name), _bare(known)
    if given == meant:
        return True
    shorter, longer = sorted((given, meant), key=len)
    if len(shorter) >= _LEAST_PART and longer.startswith(shorter):
        return True
    if len(shorter) >= _LEAST_END and longer.endswith(shorter):
        return True
    if _is_part(_words(name), _words(known)):
        return True
    slips = len(longer) // 3
    return len(longer) - len(shorter) <= slips and _distance(given, meant) <= slips


def _bare(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _words(name: str) -> list[str]:
    """What it is made of, each in the singular: `max_retries` and `eventTypes` are two."""
    return [_singular(each) for each in re.split("[_-]", _HUMP.sub("_", name).lower())]


def _singular(word: str) -> str:
    return word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s")


def _is_part(one: list[str], other: list[str]) -> bool:
    """Is either a single word, with which the other begins or ends?"""
    return (len(one) == 1 and one[0] in (other[0], other[-1])) or (
        len(other) == 1 and other[0] in (one[0], one[-1])
    )


def _likeness(name: str, known: str) -> float:
    return difflib.SequenceMatcher(None, _bare(name), _bare(known)).ratio()


def _distance(one: str, other: str) -> int:
    """Letters to leave out, add, change, or swap with the next, until both are the same."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
