"""Turns the fields that are objects into controls and back: headers, rate limit, circuit and retry policy."""

from typing import Any

import msgspec

from hookline.dashboard.pages.endpoints.field_control import SEPARATORS, Control, Filled, as_number, one
from hookline.dashboard.pages.endpoints.field_words import CHOICES
from hookline.errors import Invalid
from hookline.model import CircuitPolicy
from hookline.rules.retry import JITTERS, PRESETS
from hookline.validate.headers import MASK
from hookline.validate.names import pointer_step
from hookline.validate.numbers import seconds

_NEW_HEADERS = 2  # rows for more of them


class HeadersForm:
    """Names with values. A value that is hidden stays as it is until another one is typed."""

    def filled(self, value: Any) -> Filled:
        return {"headers.name": list(value or {}), "headers.value": [MASK] * len(value or {})}

    def read(self, filled: Filled, before: Any) -> Any:
        known = {name.lower() for name in before or {}}
        removed = {name.lower() for name in filled.get("headers.remove", ())}
        read: dict[str, str | None] = {}
        for name, value in self._rows(filled):
            if name.lower() in removed:
                read[name] = None
            elif name in read:
                raise Invalid("Two headers have the same name.", pointer=f"/headers/{pointer_step(name)}")
            elif (name or value) and not (value == MASK and name.lower() in known):
                read[name] = value
        return read

    def controls(self, filled: Filled) -> list[Control]:
        rows = self._rows(filled)
        while sum(not name for name, _ in rows) < _NEW_HEADERS:
            rows.append(("", ""))
        return [
            Control(
                name="headers.value",
                label=name,
                pointer=f"/headers/{pointer_step(name)}",
                kind="header",
                value=value,
            )
            for name, value in rows
        ]

    def _rows(self, filled: Filled) -> list[tuple[str, str]]:
        names, values = filled.get("headers.name", ()), filled.get("headers.value", ())
        return [(name.strip(), value.strip()) for name, value in zip(names, values, strict=False)]


class RateForm:
    """Requests a second and at once; nothing is no limit."""

    def filled(self, value: Any) -> Filled:
        return {f"rate_limit.{part}": [_shown((value or {}).get(part))] for part in ("per_second", "burst")}

    def read(self, filled: Filled, before: Any) -> Any:
        parts = {part: as_number(one(filled, f"rate_limit.{part}")) for part in ("per_second", "burst")}
        return parts if any(value is not None for value in parts.values()) else None

    def controls(self, filled: Filled) -> list[Control]:
        return [
            _part("rate_limit", "per_second", "Requests a second", filled, help="Empty: no limit."),
            _part(
                "rate_limit", "burst", "At once", filled, help="Empty: as many as in a second, at least one."
            ),
        ]


_CIRCUIT = {
    "consecutive_failures": ("Opens after failures in a row", ""),
    "failure_rate": ("Or when this share fails", "From 0.01 to 1."),
    "min_attempts": ("Of at least so many attempts", ""),
    "window_s": ("Within seconds", ""),
    "cooldown_s": ("Rests at first, seconds", "Doubles with each failed try."),
    "max_cooldown_s": ("Rests at most, seconds", ""),
}


class CircuitForm:
    """When sending stops, and for how long; or never."""

    def filled(self, value: Any) -> Filled:
        shown = value if isinstance(value, dict) else msgspec.to_builtins(CircuitPolicy())
        kind = "none" if value is None else "circuit"
        return {"circuit.kind": [kind]} | {f"circuit.{part}": [_shown(shown.get(part))] for part in _CIRCUIT}

    def read(self, filled: Filled, before: Any) -> Any:
        if one(filled, "circuit.kind") == "none":
            return None
        return {part: as_number(one(filled, f"circuit.{part}")) for part in _CIRCUIT}

    def controls(self, filled: Filled) -> list[Control]:
        kinds = [("circuit", "Stop for a while when it fails"), ("none", "Never stop")]
        chosen = one(filled, "circuit.kind") or "circuit"
        return [
            Control(
                name="circuit.kind",
                label="When many attempts fail",
                pointer="/circuit",
                kind="radio",
                options=kinds,
                value=chosen,
            ),
            *(
                _part("circuit", part, label, filled, help=help, only="circuit")
                for part, (label, help) in _CIRCUIT.items()
            ),
        ]


class RetryForm:
    """A preset, a schedule, or waits that grow."""

    def filled(self, value: Any) -> Filled:
        given = value if isinstance(value, dict) else {}
        kind = "default" if value is None else "growing"
        kind = next((each for each in ("preset", "schedule") if each in given), kind)
        jitter = given.get("jitter", "")
        own = jitter if isinstance(jitter, dict) else {}
        waits = given.get("schedule", ())
        return {
            "retry.kind": [kind],
            "retry.preset": [str(given.get("preset", "patient"))],
            "retry.schedule": [", ".join(_shown(each) for each in waits)],
            **{f"retry.{part}": [_shown(given.get(part))] for part in ("base", "factor", "cap", "attempts")},
            "retry.jitter": ["own" if own else str(jitter)],
            **{f"retry.{part}": [_shown(own.get(part))] for part in ("below", "above")},
        }

    def read(self, filled: Filled, before: Any) -> Any:
        def given(part: str) -> Any:
            return as_number(one(filled, f"retry.{part}"))

        kind, jitter = one(filled, "retry.kind"), one(filled, "retry.jitter")
        value: dict[str, Any] = {}
        match kind:
            case "default":
                return None
            case "preset":
                value["preset"] = one(filled, "retry.preset")
            case "schedule":
                text = one(filled, "retry.schedule")
                value["schedule"] = [_as_seconds(each) for each in SEPARATORS.split(text) if each]
            case _:
                value |= {part: given(part) for part in ("base", "factor", "attempts")}
                value["cap"] = given("cap")
        if jitter == "own":
            value["jitter"] = {part: given(part) or 0 for part in ("below", "above")}
        elif jitter:
            value["jitter"] = jitter
        return value

    def controls(self, filled: Filled) -> list[Control]:
        kinds = list(CHOICES["retry.kind"].items())
        jitters = [(name, CHOICES["retry.jitter"].get(name, name)) for name in ("", *JITTERS, "own")]
        presets = [(name, name) for name in PRESETS]
        own = "preset schedule growing"
        return [
            Control(
                name="retry.kind",
                label="Given as",
                pointer="/retry",
                kind="radio",
                options=kinds,
                value=one(filled, "retry.kind") or "default",
            ),
            _part("retry", "preset", "Preset", filled, kind="choice", options=presets, only="preset"),
            _part(
                "retry",
                "schedule",
                "Seconds before each attempt",
                filled,
                only="schedule",
                kind="text",
                help="The first is 0. Also 5m, 2h, 1d.",
            ),
            _part("retry", "base", "First wait, seconds", filled, only="growing"),
            _part("retry", "factor", "Times, with each failure", filled, only="growing", help="Empty: 2."),
            _part("retry", "cap", "At most, seconds", filled, only="growing", help="Empty: no limit."),
            _part("retry", "attempts", "Attempts in all", filled, only="growing"),
            _part("retry", "jitter", "Jitter", filled, kind="choice", options=jitters, only=own),
            _part("retry", "below", "Shorter by a share of up to", filled, only="own", help="From 0 to 1."),
            _part("retry", "above", "Longer by a share of up to", filled, only="own", help="From 0 to 1."),
        ]


def _as_seconds(text: str) -> Any:
    value = as_number(text)
    found = seconds(text) if isinstance(value, str) else None
    if found is None:
        return value
    return int(found) if found.is_integer() else found


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)


def _part(field: str, part: str, label: str, filled: Filled, kind: str = "number", **more: Any) -> Control:
    name = f"{field}.{part}"
    pointer = "/retry/jitter" if part in ("below", "above") else f"/{field}"
    pointer = f"{pointer}/{part}"
    return Control(name=name, label=label, pointer=pointer, kind=kind, value=one(filled, name), **more)
