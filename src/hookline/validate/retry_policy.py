"""Checks an endpoint's retry policy.

The checked policy is stored as it is shown, and `rules.retry.policy_of` reads it. A policy is replaced as a whole,
never mixed from an old and a new one. The statuses that are retried are checked here too.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from hookline.errors import Invalid
from hookline.rules.retry import JITTERS, PRESETS
from hookline.validate import api_schema
from hookline.validate.api_schema import Schema, or_null
from hookline.validate.names import check_known, did_you_mean
from hookline.validate.numbers import DAY_S, number, whole

MOST_ATTEMPTS = 50
LONGEST_WAIT_S = 30 * DAY_S
DEFAULT_FACTOR = 2.0
DEFAULT_CAP_S = 3_600.0
DEFAULT_JITTER = "full"
MOST_STATUSES = 500

_JITTER: Schema = {
    "title": "Jitter",
    "anyOf": [
        api_schema.one_of(JITTERS),
        {
            "title": "JitterRange",
            **api_schema.object_of(below=api_schema.number(0, 1), above=api_schema.number(0, 1)),
            "minProperties": 1,
        },
    ],
}
_WAIT = api_schema.number(0, LONGEST_WAIT_S)
_POSITIVE_WAIT = api_schema.number(0.001, LONGEST_WAIT_S)
RETRY_SCHEMA: Schema = {
    "title": "RetryPolicy",
    "anyOf": [
        api_schema.named(
            "RetryByPreset",
            api_schema.object_of(("preset",), preset=api_schema.one_of(PRESETS), jitter=or_null(_JITTER)),
        ),
        api_schema.named(
            "RetryBySchedule",
            api_schema.object_of(
                ("schedule",),
                schedule={"type": "array", "minItems": 1, "maxItems": MOST_ATTEMPTS, "items": _WAIT},
                jitter=or_null(_JITTER),
            ),
        ),
        api_schema.named(
            "RetryByGrowth",
            api_schema.object_of(
                ("base", "attempts"),
                base=_POSITIVE_WAIT,
                factor=or_null(api_schema.number(1, 100)),
                cap=or_null(_POSITIVE_WAIT),
                attempts=api_schema.whole(1, MOST_ATTEMPTS),
                jitter=or_null(_JITTER),
            ),
        ),
    ],
}
RETRY_STATUSES_SCHEMA: Schema = {
    "type": "array",
    "maxItems": MOST_STATUSES,
    "items": {
        "title": "RetryStatus",
        "anyOf": [
            api_schema.whole(100, 199),
            api_schema.whole(300, 599),
            {"type": "string", "pattern": "^[1345]xx$"},
        ],
    },
}

_SHAPES = "{preset}, {schedule, jitter} or {base, factor, cap, attempts, jitter}"
_GROWING = ("base", "factor", "cap", "attempts", "jitter")
_ALL = ("preset", "schedule", *_GROWING)
_CLASS = re.compile(r"[1345]xx")


def retry(value: Any) -> dict[str, Any]:
    """A retry policy in the shape in which it is stored."""
    if not isinstance(value, Mapping):
        raise Invalid(f"retry is one of {_SHAPES}.{_meant(value)}", pointer="/retry")
    if not value:
        raise Invalid(f"retry is one of {_SHAPES}; it is empty.", pointer="/retry")
    if "preset" in value:
        return _preset(value)
    if "schedule" in value:
        return _schedule(value)
    return _growing(value)


def retry_statuses(value: Any) -> tuple[str | int, ...]:
    """The statuses after which a delivery is tried again."""
    allowed = 'statuses from 100 to 599 and classes such as "5xx", none of them 2xx'
    if not isinstance(value, list | tuple) or len(value) > MOST_STATUSES:
        raise Invalid(f"retry_statuses is a list of {allowed}.", pointer="/retry_statuses")
    for place, each in enumerate(value):
        if not _is_status(each):
            raise Invalid(
                f"retry_statuses contains {allowed}.{_meant_status(each)}", pointer=f"/retry_statuses/{place}"
            )
    return tuple(dict.fromkeys(value))


def _preset(value: Mapping[str, Any]) -> dict[str, Any]:
    _only(value, ("preset", "jitter"), with_="a preset")
    name = value["preset"]
    if not isinstance(name, str) or name not in PRESETS:
        near = did_you_mean(name, PRESETS) if isinstance(name, str) else ""
        raise Invalid(f"A preset is one of {', '.join(PRESETS)}.{near}", pointer="/retry/preset")
    return {"preset": name} | ({"jitter": _jitter(value["jitter"])} if _is_given(value, "jitter") else {})


def _schedule(value: Mapping[str, Any]) -> dict[str, Any]:
    _only(value, ("schedule", "jitter"), with_="a schedule")
    waits = value["schedule"]
    pointer = "/retry/schedule"
    if not isinstance(waits, list | tuple):
        raise Invalid("A schedule is a list of waits in seconds, such as [0, 30, 300].", pointer=pointer)
    if not waits:
        raise Invalid(
            "A schedule has at least one entry: [0] is a single attempt, [0, 30] one more after 30 seconds.",
            pointer=pointer,
        )
    # Checked before the entries: a list of a million entries is refused for its length.
    attempts = len(waits) + (waits[0] != 0)
    if attempts > MOST_ATTEMPTS:
        raise Invalid(
            f"A schedule has 1 to {MOST_ATTEMPTS} attempts; this one has {attempts:,}.", pointer=pointer
        )
    checked = [
        number(wait, 0, LONGEST_WAIT_S, pointer=f"{pointer}/{place}", unit=" of seconds")
        for place, wait in enumerate(waits)
    ]
    if checked[0] != 0:
        checked.insert(0, 0)
    return {"schedule": checked, "jitter": _jitter(value.get("jitter"))}


def _growing(value: Mapping[str, Any]) -> dict[str, Any]:
    _only(value, _GROWING, with_="base, factor, cap and attempts")
    for name in ("base", "attempts"):
        if not _is_given(value, name):
            raise Invalid(f"retry is one of {_SHAPES}; {name} is missing.", pointer=f"/retry/{name}")
    base = number(value["base"], 0.001, LONGEST_WAIT_S, pointer="/retry/base", unit=" of seconds")
    factor = value["factor"] if _is_given(value, "factor") else DEFAULT_FACTOR
    factor = number(factor, 1, 100, pointer="/retry/factor")
    cap = value.get("cap", DEFAULT_CAP_S)
    if cap is not None:
        cap = number(cap, 0.001, LONGEST_WAIT_S, pointer="/retry/cap", unit=" of seconds, or null,")
    attempts = whole(value["attempts"], 1, MOST_ATTEMPTS, pointer="/retry/attempts")
    longest = base * factor ** max(0, attempts - 2)
    if cap is None and longest > LONGEST_WAIT_S:
        raise Invalid(
            f"Without a cap the last wait would be {longest / DAY_S:,.0f} days; waits are up to 30 days "
            f"({LONGEST_WAIT_S:,.0f} seconds). Give a cap, or fewer attempts.",
            pointer="/retry/cap",
        )
    jitter = _jitter(value.get("jitter"))
    return {"base": base, "factor": factor, "cap": cap, "attempts": attempts, "jitter": jitter}


def _jitter(value: Any) -> str | dict[str, float]:
    if value is None:
        return DEFAULT_JITTER
    pointer = "/retry/jitter"
    kinds = f"{', '.join(JITTERS)} or {{below, above}}"
    if isinstance(value, Mapping):
        check_known(value, ("below", "above"), at=pointer)
        if not value:
            raise Invalid(f"jitter is {kinds}; it is empty.", pointer=pointer)
        return {
            side: number(value.get(side, 0), 0, 1, pointer=f"{pointer}/{side}") for side in ("below", "above")
        }
    if not isinstance(value, str) or value not in JITTERS:
        near = did_you_mean(value, JITTERS) if isinstance(value, str) else ""
        if isinstance(value, int | float) and 0 < value <= 1:
            near = f' Did you mean {{"below": {value:g}, "above": {value:g}}}?'
        raise Invalid(f"jitter is {kinds}.{near}", pointer=pointer)
    return value


def _only(value: Mapping[str, Any], known: tuple[str, ...], *, with_: str) -> None:
    check_known(value, _ALL, at="/retry")
    for name in value:
        if name not in known:
            raise Invalid(
                f"{name} cannot be combined with {with_}: retry is one of {_SHAPES}.",
                pointer=f"/retry/{name}",
            )


def _is_given(value: Mapping[str, Any], name: str) -> bool:
    return value.get(name) is not None


def _meant(value: Any) -> str:
    if isinstance(value, str) and value in PRESETS:
        return f" Did you mean {json.dumps({'preset': value})}?"
    if isinstance(value, str):
        return f' A preset is given as {{"preset": "patient"}}; the presets are {", ".join(PRESETS)}.'
    if isinstance(value, list | tuple) and 0 < len(value) <= 8:
        return ' Did you mean {"schedule": […]}?'
    return ""


def _is_status(value: Any) -> bool:
    if isinstance(value, str):
        return _CLASS.fullmatch(value) is not None
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return 100 <= value <= 599 and not 200 <= value <= 299


def _meant_status(value: Any) -> str:
    if isinstance(value, str):
        if value[:10].isdecimal() and len(value) == 3 and _is_status(int(value)):
            return f" Did you mean {int(value)}, as a number?"
        if _CLASS.fullmatch(value[:4].lower()) and len(value) == 3:
            return f' Did you mean "{value.lower()}"?'
        if value.lower() == "2xx":
            return " A 2xx answer is always accepted."
    elif isinstance(value, int) and 200 <= value <= 299:
        return " A 2xx answer is always accepted."
    return ""
