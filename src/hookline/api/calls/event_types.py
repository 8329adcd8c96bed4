"""Answers the calls that describe event types."""

from typing import Annotated, Any

import msgspec

from hookline.admin.event_types import EventTypeInput, EventTypeReport, event_type_report
from hookline.api.call import Call, CallRequest, CallScope, Nothing, Page, Paged
from hookline.api.request.parameters import null_or
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.validate import endpoint_fields


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """The description and the schema of an event type; replaces the earlier ones."""

    description: Annotated[Any, null_or({"type": "string", "maxLength": endpoint_fields.MAX_DESCRIPTION})] = (
        None
    )
    schema: Annotated[
        Any,
        msgspec.Meta(
            extra_json_schema={"type": ["object", "null"]},
            description="a JSON Schema (draft 2020-12); payloads that do not match are refused",
        ),
    ] = None


class EventTypeCalls:
    """The calls under `/v1/event-types`."""

    def __init__(self, hookline: Hookline, pages: Pages) -> None:
        self._event_types = hookline.event_types
        self._store = hookline.store
        self._pages = pages

    def table(self) -> list[Call]:
        """The calls."""
        one = "/v1/event-types/{name}"
        return [
            Call(
                method="GET",
                path="/v1/event-types",
                summary="List described event types, by name",
                scope=CallScope.READ,
                handler=self.list_event_types,
                query=Paged,
                answer=Page[EventTypeReport],
                for_accounts=True,
            ),
            Call(
                method="GET",
                path=one,
                summary="Get a described event type",
                scope=CallScope.READ,
                handler=self.show,
                answer=EventTypeReport,
                for_accounts=True,
            ),
            Call(
                method="PUT",
                path=one,
                summary="Describe an event type; its schema applies to later publishes",
                scope=CallScope.ADMIN,
                handler=self.put,
                body=Description,
                example={
                    "description": "An order was paid.",
                    "schema": {"type": "object", "required": ["order"]},
                },
                answer=EventTypeReport,
            ),
            Call(
                method="DELETE",
                path=one,
                summary="Delete an event type's description and schema; its events can still be published",
                scope=CallScope.ADMIN,
                handler=self.delete,
                status=204,
            ),
        ]

    async def list_event_types(self, asked: CallRequest[Paged, None]) -> Page[EventTypeReport]:
        after, limit = self._pages.after(asked), asked.query.limit
        found = await self._store.event_types(after="" if after is None else after.decode(), limit=limit + 1)
        shown = [event_type_report(each) for each in found[:limit]]
        return self._pages.page(asked, found, id=lambda row: row.name.encode(), shown=shown)

    async def show(self, asked: CallRequest[Nothing, None]) -> EventTypeReport:
        return event_type_report(await self._event_types.read(asked.part("name")))

    async def put(self, asked: CallRequest[Nothing, Description]) -> EventTypeReport:
        said = EventTypeInput(description=asked.body.description, schema=asked.body.schema)
        return event_type_report(await self._event_types.put(asked.part("name"), said))

    async def delete(self, asked: CallRequest[Nothing, None]) -> None:
        await self._event_types.delete(asked.part("name"))
