"""Describes event types."""

from typing import Any

import msgspec

from hookline import rfc3339
from hookline.admin.audit import Audit
from hookline.clock import Clock
from hookline.errors import Invalid, NotFound
from hookline.model import AuditAction, EventType
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.rules.audit_changes import differences
from hookline.store.contract import Store
from hookline.validate.api_schema import Moment
from hookline.validate.endpoint_fields import read_description
from hookline.validate.names import check_type

MOST_TYPES = 2_000


class EventTypeInput(msgspec.Struct, frozen=True, kw_only=True):
    """The description of an event type, unchecked; None is the same as absent."""

    description: Any = None
    schema: Any = None


class EventTypeReport(msgspec.Struct, kw_only=True):
    """A described event type."""

    name: str
    description: str
    schema: msgspec.Raw  # null: payloads of every shape
    created_at: Moment
    updated_at: Moment


class EventTypes:
    """The catalogue of event types."""

    def __init__(self, store: Store, catalogue: Catalogue, clock: Clock, audit: Audit) -> None:
        self._store = store
        self._audit = audit
        self._catalogue = catalogue
        self._clock = clock

    async def put(self, name: str, asked: EventTypeInput) -> EventType:
        """Create or replace a type's description; when this returns, its schema is in force here."""
        check_type(name, pointer="/name")
        description = read_description("" if asked.description is None else asked.description)
        schema = None if asked.schema is None else _schema(asked.schema)
        before = await self._store.event_type(name)
        if before is None and len(await self._store.event_types(limit=MOST_TYPES)) == MOST_TYPES:
            raise Invalid(f"At most {MOST_TYPES:,} event types can be described; delete one first.")
        now = self._clock.now()
        described = EventType(
            name=name, description=description, schema=schema, created_at=now, updated_at=now
        )
        changes = differences(_described(before), _described(described))
        entry = None
        if changes or before is None:
            entry = self._audit.entry(
                AuditAction.EVENT_TYPE_PUT, "event_type", name, account=None, changes=changes
            )
        described = await self._store.put_event_type(described, now=now, audit=entry)
        await self._catalogue.include_own()
        return described

    async def delete(self, name: str) -> None:
        """Delete a type's description; the type can still be published."""
        changes = differences(_described(await self._store.event_type(name)), {})
        entry = self._audit.entry(
            AuditAction.EVENT_TYPE_DELETED, "event_type", name, account=None, changes=changes
        )
        if not await self._store.delete_event_type(name, now=self._clock.now(), audit=entry):
            raise NotFound("event type", name)
        await self._catalogue.include_own()

    async def read(self, name: str) -> EventType:
        """One described type."""
        found = await self._store.event_type(name)
        if found is None:
            raise NotFound("event type", name)
        return found


def event_type_report(event_type: EventType) -> EventTypeReport:
    """A described event type."""
    return EventTypeReport(
        name=event_type.name,
        description=event_type.description,
        schema=_shown_schema(event_type.schema),
        created_at=rfc3339.show(event_type.created_at),
        updated_at=rfc3339.show(event_type.updated_at),
    )


def _described(event_type: EventType | None) -> dict[str, Any]:
    """What people say of it."""
    if event_type is None:
        return {}
    schema = None if event_type.schema is None else msgspec.json.decode(event_type.schema)
    return {"description": event_type.description or None, "schema": schema}


def _schema(value: Any) -> str:
    from hookline.validate.schemas import json_schema  # only types with a schema pay for the import

    return json_schema.checked(value)


def _shown_schema(stored: str | None) -> msgspec.Raw:
    """The stored schema; null if it is no JSON, which would make a whole list unreadable."""
    text = (stored or "null").encode()
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.Raw(b"null")
    return msgspec.Raw(text)
