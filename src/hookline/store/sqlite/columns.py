"""Holds the columns of an endpoint in SQLite: every statement and conversion that names them."""

from typing import Any

from hookline.model import Endpoint, Ordering
from hookline.store import endpoint_row
from hookline.store.endpoint_columns import COLUMNS, Form, columns_of
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.values import json_text

CREATE_ENDPOINT = f"""
INSERT OR IGNORE INTO endpoints ({", ".join(COLUMNS)}) VALUES ({", ".join(f":{name}" for name in COLUMNS)})
"""
UPDATE_ENDPOINT = f"""
UPDATE endpoints SET {", ".join(f"{name} = :{name}" for name in COLUMNS if name != "id")}
WHERE id = :id AND updated_at = :was
"""
ENDPOINT_COLUMNS = f"SELECT {', '.join(COLUMNS)} FROM endpoints"

_JSON = columns_of(Form.JSON, Form.LIST)
_FLAG_COLUMNS = columns_of(Form.FLAG)
_FLAGS = {0: False, 1: True}


def endpoint_values(endpoint: Endpoint) -> dict[str, Any]:
    return {name: _stored(getattr(endpoint, name), form) for name, form in COLUMNS.items()}


def _stored(value: Any, form: Form) -> Any:
    if value is None:
        return None
    match form:
        case Form.JSON | Form.LIST:
            return json_text(value)
        case Form.WORD:
            return value.value
        case _:
            return value


def read_endpoint(row: Row) -> Endpoint | None:
    """The endpoint in this row; None when it has no id."""
    values = dict(zip(COLUMNS, row, strict=True))
    for name in _FLAG_COLUMNS:
        flag = values[name]
        values[name] = _FLAGS.get(flag, flag) if type(flag) is int else flag
    return endpoint_row.read(values, json=_JSON)


def lane_values(endpoint: Endpoint) -> dict[str, Any]:
    """What a lane needs to know of its endpoint."""
    return {
        "id": endpoint.id,
        "paused": endpoint.paused or not endpoint.enabled,
        "strict": endpoint.ordering is Ordering.STRICT,
    }
