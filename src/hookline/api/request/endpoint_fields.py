"""Describes the fields of an endpoint in requests, as `hookline.validate.endpoint_fields` lists them."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from hookline.validate.api_schema import or_null
from hookline.validate.endpoint_fields import FIELDS, IN_PATCH, EndpointField


def _described(field: EndpointField) -> Any:
    """Any value: the table's check has messages of its own. The schema is for readers of the API's description."""
    schema = field.schema if field.is_required else or_null(field.schema)
    return Annotated[Any, Meta(extra_json_schema=schema, description=field.text)]


ChangedEndpoint = msgspec.defstruct(
    "ChangedEndpoint",
    [(field.name, _described(field), UNSET) for field in IN_PATCH.values()],
    namespace={
        "__doc__": "A merge patch. A missing field stays as it is, null resets a field to its default; "
        "`circuit: null` means no circuit."
    },
    frozen=True,
    kw_only=True,
)

NewEndpoint = msgspec.defstruct(
    "NewEndpoint",
    [
        (field.name, _described(field)) if field.is_required else (field.name, _described(field), UNSET)
        for field in FIELDS
    ],
    namespace={
        "__doc__": "A new endpoint. A field that is missing or null has its default; `circuit: null` means no circuit."
    },
    frozen=True,
    kw_only=True,
)
