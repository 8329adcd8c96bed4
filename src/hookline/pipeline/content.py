"""What does an event's payload decide?

Whether it may be published at all (the schema of its type), and which endpoints want it (their filters). A
payload is read at most once, and not at all where nobody asks.
"""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from hookline import ids
from hookline.errors import SchemaMismatch
from hookline.model import Endpoint, EndpointId, EventType

if TYPE_CHECKING:
    from hookline.filters import Filter
    from hookline.schemas import Schema

# What is larger is looked at beside the loop, which a mebibyte with a heavy schema would hold up for a second.
_AT_ONCE_BYTES = 32_768

_UNREAD = object()

log = structlog.get_logger()


class Content:
    """The schemas and filters that are in force."""

    def __init__(self) -> None:
        self._schemas: dict[str, Schema] = {}
        self._filters: dict[EndpointId, Filter] = {}
        self.matters = False  # is there any schema or filter at all?

    def describe(self, event_types: Iterable[EventType]) -> None:
        """These are the types that are described now; what has not changed is kept as it is."""
        before = self._schemas
        texts = {each.name: each.schema for each in event_types if each.schema is not None}
        self._schemas = {}
        for name, text in texts.items():
            known = before.get(name)
            schema = known if known is not None and known.text == text else _schema(name, text)
            if schema is not None:
                self._schemas[name] = schema
        self._weigh()

    def subscribe(self, endpoint: Endpoint) -> None:
        """This endpoint is there, or changed."""
        filter = None if endpoint.filter is None else _filter(endpoint.id, endpoint.filter)
        if filter is None:
            self.unsubscribe(endpoint.id)
        else:
            self._filters[endpoint.id] = filter
            self._weigh()

    def unsubscribe(self, endpoint: EndpointId) -> None:
        """This endpoint is gone."""
        if self._filters.pop(endpoint, None) is not None:
            self._weigh()

    async def judge(
        self, event_type: str, payload: bytes, endpoints: tuple[EndpointId, ...]
    ) -> tuple[EndpointId, ...] | SchemaMismatch:
        """Those of the endpoints that want the event, or why it is refused."""
        schema = self._schemas.get(event_type)
        filters = self._filters
        filtered = {id: filters[id] for id in endpoints if id in filters} if filters else {}
        if schema is None and not filtered:
            return endpoints
        if len(payload) <= _AT_ONCE_BYTES:
            return _judged(event_type, payload, endpoints, schema, filtered)
        return await asyncio.to_thread(_judged, event_type, payload, endpoints, schema, filtered)

    def _weigh(self) -> None:
        self.matters = bool(self._schemas or self._filters)


def _judged(
    event_type: str,
    payload: bytes,
    endpoints: tuple[EndpointId, ...],
    schema: "Schema | None",
    filtered: dict[EndpointId, "Filter"],
) -> tuple[EndpointId, ...] | SchemaMismatch:
    value = _read(payload)
    if schema is not None:
        errors = _NOT_CHECKABLE if value is _UNREAD else schema.errors(value, len(payload))
        if errors:
            return SchemaMismatch(event_type, errors)
    if not filtered or value is _UNREAD:
        return endpoints  # a payload that cannot be read passes every filter
    from hookline.filters import Budget

    budget = Budget(len(payload))
    return tuple(
        id for id in endpoints if (filter := filtered.get(id)) is None or filter.passes(value, budget)
    )


_NOT_CHECKABLE = (("/payload", "The payload holds a number that is too large to be checked."),)


def _read(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except msgspec.DecodeError:  # well-formed, but with a number beyond what fits
        return _UNREAD


# Both were checked when they were set. Should another version of a library have let them through, then they are
# left out: that nothing is checked shows, and does less harm than events that are refused or kept back.


def _schema(name: str, text: str) -> "Schema | None":
    from hookline.schemas import Schema  # only those who have one pay for the import

    try:
        return Schema(text)
    except ValueError as error:
        log.error("event_type.not_checked", name=name, error=str(error))
        return None


def _filter(id: EndpointId, expression: str) -> "Filter | None":
    from hookline.filters import Filter  # likewise

    try:
        return Filter(expression)
    except ValueError as error:
        log.error("endpoint.not_filtered", endpoint_id=ids.show("endpoint", id), error=str(error))
        return None
