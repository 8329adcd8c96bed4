"""Calls about events."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from hookline.client import call as calls
from hookline.client.aio.listing import AsyncListing, AsyncSends
from hookline.client.answers import Attempt, Delivery, Event, Published, Replayed
from hookline.client.call import step
from hookline.client.publishing import NewEvent, publish, publish_many
from hookline.client.words import DeliveryState
from hookline.errors import HooklineError
from hookline.validate.payload_encoding import Payload


class AsyncEventMethods(AsyncSends):
    """Publish, list and replay events."""

    async def publish(
        self,
        type: str,
        payload: Payload,
        *,
        account: str | None = None,
        idempotency_key: str | None = None,
        deliver_at: datetime | None = None,
        hops: int = 0,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> Published:
        """Publish an event; when this returns it is durable. Bytes must be one JSON value and are sent as they are.

        `hops` is that of the webhook that caused this event (`Verified.hops`). It ends loops.
        `traceparent` and `tracestate` (W3C Trace Context) are sent on with the event's requests.
        """
        event = NewEvent(
            type=type,
            payload=payload,
            account=account,
            idempotency_key=idempotency_key,
            deliver_at=deliver_at,
            hops=hops,
        )
        return await self.send(publish(event, traceparent=traceparent, tracestate=tracestate))

    async def publish_many(self, events: Iterable[NewEvent]) -> list[Published | HooklineError]:
        """Publish up to 1,000 events. A refused event has an error in its place and does not stop the others.

        A payload that is not JSON is refused before any event is published.
        """
        return await self.send(publish_many(given)) if (given := list(events)) else []

    async def event(self, id: str) -> Event:
        """Get an event with its payload."""
        return await self.send(calls.get(f"/v1/events/{step(id)}", Event))

    def events(
        self,
        *,
        type: str | None = None,
        account: str | None = None,
        idempotency_key: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncListing[Event]:
        """List events."""
        return AsyncListing(
            self,
            "/v1/events",
            Event,
            type=type,
            account=account,
            idempotency_key=idempotency_key,
            since=since,
            until=until,
        )

    def event_deliveries(
        self, id: str, *, state: DeliveryState | str | None = None
    ) -> AsyncListing[Delivery]:
        """List the deliveries of one event."""
        return AsyncListing(self, f"/v1/events/{step(id)}/deliveries", Delivery, state=state)

    def event_attempts(self, id: str) -> AsyncListing[Attempt]:
        """List every request made for one event."""
        return AsyncListing(self, f"/v1/events/{step(id)}/attempts", Attempt)

    async def replay_event(
        self, id: str, *, endpoint_id: str | None = None, states: Sequence[DeliveryState | str] | None = None
    ) -> Replayed:
        """Replay an event's deliveries: those in these states, otherwise all that are not pending."""
        fields = calls.said(endpoint_id=endpoint_id, states=states)
        return await self.send(calls.post(f"/v1/events/{step(id)}/replay", Replayed, fields))
