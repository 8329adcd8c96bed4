"""Reads the figures of an endpoint from a stored row, whatever the row holds.

The stand-ins for what cannot be read are those of `store.endpoint_row`.
"""

from typing import Any

from hookline.model import CircuitState
from hookline.store.contract.measuring.board import BoardFigures


def read(values: dict[str, Any], *, events: object) -> BoardFigures:
    """The figures in these columns, whose `events` were decoded."""
    for name in ("account", "url", "description"):
        values[name] = _text(values[name])
    values["events"] = _texts(events)
    values["enabled"] = values["enabled"] not in (False, 0)
    values["paused"] = values["paused"] in (True, 1)
    if values["disabled_reason"] is not None:
        values["disabled_reason"] = _text(values["disabled_reason"])
    values["circuit"] = _circuit(values["circuit"])
    values["is_back"] = bool(values["is_back"])
    return BoardFigures(**values)


def _circuit(value: Any) -> CircuitState:
    try:
        return CircuitState(value)
    except ValueError:
        return CircuitState.CLOSED


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    return ()
