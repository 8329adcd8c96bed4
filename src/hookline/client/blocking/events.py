# Generated from client/aio by scripts/mirror_client.py: change that, and run it.
"""Calls about events."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from hookline.client import call as calls
from hookline.client.answers import Attempt, Delivery, Event, Published, Replayed
from hookline.client.blocking.listing import Listing, Sends
from hookline.client.call import step
from hookline.client.publishing import NewEvent, publish, publish_many
from hookline.client.words import DeliveryState
from hookline.errors import HooklineError
from hookline.validate.payload_encoding import Payload


class EventMethods(Sends):
    """Publish, list and replay events."""

    def publish(
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
        return self.send(publish(event, traceparent=traceparent, tracestate=tracestate))

    def publish_many(self, events: Iterable[NewEvent]) -> list[Published | HooklineError]:
        """Publish up to 1,000 events. A refused event has an error in its place and does not stop the others.

        A payload that is not JSON is refused before any event is published.
        """
        return self.send(publish_many(given)) if (given := list(events)) else []

    def event(self, id: str) -> Event:
        """Get an event with its payload."""
        return self.send(calls.get(f"/v1/events/{step(id)}", Event))

    def events(
        self,
        *,
        type: str | None = None,
        account: str | None = None,
        idempotency_key: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Listing[Event]:
        """List events."""
        return Listing(
            self,
            "/v1/events",
            Event,
            type=type,
            account=account,
            idempotency_key=idempotency_key,
            since=since,
            until=until,
        )

    def event_deliveries(self, id: str, *, state: DeliveryState | str | None = None) -> Listing[Delivery]:
        """List the deliveries of one event."""
        return Listing(self, f"/v1/events/{step(id)}/deliveries", Delivery, state=state)

    def event_attempts(self, id: str) -> Listing[Attempt]:
        """List every request made for one event."""
        return Listing(self, f"/v1/events/{step(id)}/attempts", Attempt)

    def replay_event(
        self, id: str, *, endpoint_id: str | None = None, states: Sequence[DeliveryState | str] | None = None
    ) -> Replayed:
        """Replay an event's deliveries: those in these states, otherwise all that are not pending."""
        fields = calls.said(endpoint_id=endpoint_id, states=states)
        return self.send(calls.post(f"/v1/events/{step(id)}/replay", Replayed, fields))
