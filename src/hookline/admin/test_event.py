"""Sends a test event to an endpoint.

The event goes to this endpoint alone, whatever its patterns and filter say. From then on it is an event like any other:
accepted, signed, sent through the same checks, tried again, recorded.
"""

import msgspec

from hookline import ids, rfc3339
from hookline.admin.changes import Changes
from hookline.clock import Clock
from hookline.errors import NotFound, NotSending, Overloaded
from hookline.ids import Ids
from hookline.model import Endpoint, EndpointId, Event
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.lanes.handover import Handover
from hookline.store.contract import EventFanout, Store

EVENT_TYPE = "hookline.test"
_TRIES = 10  # against endpoints that change all the time


class TestReport(msgspec.Struct, kw_only=True):
    """The delivery of a test event."""

    id: str  # of the delivery
    event_id: str
    endpoint_id: str
    account: str
    event_type: str


class EndpointTest:
    """Sends test events."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        handover: Handover,
        changes: Changes,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._handover = handover
        self._changes = changes
        self._clock = clock
        self._ids = ids

    async def send(self, id: EndpointId) -> TestReport:
        """Publish a test event for this endpoint alone; when this returns it is durable."""
        event: Event | None = None
        for _ in range(_TRIES):
            seen = self._catalogue.n
            prepared = self._catalogue.prepared(id)
            if prepared is None:
                await self._catalogue.catch_up()  # another process may have created it a moment ago
                prepared = self._catalogue.prepared(id)
                seen = self._catalogue.n
            if prepared is None:
                raise NotFound("endpoint", ids.show("endpoint", id))
            endpoint = prepared.endpoint
            if not endpoint.enabled or endpoint.paused:
                raise NotSending("paused" if endpoint.enabled else "disabled")
            event = event or self._event(endpoint)
            publication = EventFanout(event, (id,))
            with self._changes.making_due(id):
                acceptance = await self._store.accept([publication], catalogue=seen, now=event.created_at)
            if not acceptance.stale:
                self._handover.announce(id)
                return TestReport(
                    id=ids.show("delivery", ids.delivery_of(event.id, 0)),
                    event_id=ids.show("event", event.id),
                    endpoint_id=ids.show("endpoint", id),
                    account=endpoint.account,
                    event_type=EVENT_TYPE,
                )
            await self._catalogue.catch_up()
        raise Overloaded("Endpoints were changed meanwhile; try again.")

    def _event(self, endpoint: Endpoint) -> Event:
        now = self._clock.now()
        payload = {
            "type": EVENT_TYPE,
            "at": rfc3339.show(now),
            "account": endpoint.account,
            "data": {"endpoint_id": ids.show("endpoint", endpoint.id)},
        }
        return Event(
            id=self._ids.event(),
            account=endpoint.account,
            type=EVENT_TYPE,
            payload=msgspec.json.encode(payload),
            created_at=now,
        )
