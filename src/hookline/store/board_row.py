"""Reads the figures of an endpoint from a stored row, whatever the row holds.

The stand-ins for what cannot be read are those of `store.endpoint_row`.
"""

from collections.abc import Mapping
from typing import Any

from hookline.model import CircuitState
from hookline.store.contract.measuring.board import BoardFigures


def read(values: Mapping[str, Any], *, events: object) -> BoardFigures:
    """The figures in these columns, whose `events` were decoded."""
    return BoardFigures(
        **{
            **values,
            "account": _text(values["account"]),
            "url": _text(values["url"]),
            "description": _text(values["description"]),
            "events": _texts(events),
            "enabled": values["enabled"] not in (False, 0),
            "paused": values["paused"] in (True, 1),
            "disabled_reason": None
            if values["disabled_reason"] is None
            else _text(values["disabled_reason"]),
            "circuit": CircuitState(values["circuit"]),
            "is_back": bool(values["is_back"]),
        }
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    return ()
