"""Holds the columns of an endpoint in PostgreSQL: every statement and conversion that names them."""

from collections.abc import Iterable
from typing import Any

from hookline.model import Endpoint, Ordering
from hookline.store import endpoint_row
from hookline.store.endpoint_columns import COLUMNS, Form, columns_of
from hookline.store.postgres.driver.values import json_text, printable

# Parameter n is the value of column n.
_VALUES = {
    name: f"to_timestamp(${n})" if form is Form.TIME else f"${n}"
    for n, (name, form) in enumerate(COLUMNS.items(), 1)
}
CREATE_ENDPOINT = f"""
INSERT INTO endpoints ({", ".join(_VALUES)}) VALUES ({", ".join(_VALUES.values())})
ON CONFLICT (id) DO NOTHING RETURNING id
"""
UPDATE_ENDPOINT = f"""
UPDATE endpoints SET {", ".join(f"{name} = {value}" for name, value in _VALUES.items() if name != "id")}
WHERE id = {_VALUES["id"]} AND updated_at = to_timestamp(${len(_VALUES) + 1}) RETURNING id
"""
ENDPOINT_COLUMNS = ", ".join(
    f"date_part('epoch', e.{name}) AS {name}" if form is Form.TIME else f"e.{name}"
    for name, form in COLUMNS.items()
)

_JSON = columns_of(Form.JSON)


def endpoint_values(endpoint: Endpoint) -> list[Any]:
    """The values of CREATE_ENDPOINT and UPDATE_ENDPOINT."""
    return [_stored(getattr(endpoint, name), form) for name, form in COLUMNS.items()]


def _stored(value: Any, form: Form) -> Any:
    if value is None:
        return None
    match form:
        case Form.JSON:
            return json_text(value)
        case Form.LIST:
            return list(value)
        case Form.TEXT:
            return printable(value)
        case _:
            return value


def read_endpoints(found: Iterable[Any]) -> list[Endpoint]:
    """The endpoints in these rows; a row without an id is skipped."""
    read = (endpoint_row.read(dict(row), json=_JSON) for row in found)
    return [endpoint for endpoint in read if endpoint is not None]


def lane_values(endpoint: Endpoint) -> list[Any]:
    """What a lane needs to know of its endpoint: whether it is paused, whether it is strict."""
    return [endpoint.paused or not endpoint.enabled, endpoint.ordering is Ordering.STRICT]
