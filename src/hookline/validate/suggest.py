"""Suggests the known name that was meant by an unknown one.

A wrong guess sends people the wrong way. So a name is suggested only if the given one could be a misspelling of it, or
a longer or shorter form: `prot` for `port`, `endpoint` for `endpoint_id`, `retries` for `retry`.
"""

import difflib
import re
from collections.abc import Iterable

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_READ = 100  # characters of a name; a longer one is no slip
_LEAST_PART = 3  # characters that the other name begins with
_LEAST_END = 4  # characters that the other name ends with, when they are no word of their own in it


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant, or None."""
    given = name[:_READ]
    near = [each for each in known if is_near(given, each)]
    return max(near, key=lambda each: _likeness(given, each), default=None)


def is_near(name: str, known: str) -> bool:
    """Whether the one could have been meant by the other."""
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
    """The words of a name, each in the singular: `max_retries` and `eventTypes` have two."""
    return [_singular(each) for each in re.split("[_-]", _HUMP.sub("_", name).lower())]


def _singular(word: str) -> str:
    return word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s")


def _is_part(one: list[str], other: list[str]) -> bool:
    """Whether either is a single word that the other begins or ends with."""
    return (len(one) == 1 and one[0] in (other[0], other[-1])) or (
        len(other) == 1 and other[0] in (one[0], one[-1])
    )


def _likeness(name: str, known: str) -> float:
    return difflib.SequenceMatcher(None, _bare(name), _bare(known)).ratio()


def _distance(one: str, other: str) -> int:
    """The number of letters to remove, add, change, or swap with the next, until both are the same."""
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
