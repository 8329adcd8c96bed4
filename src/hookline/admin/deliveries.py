"""Retries, cancels and replays deliveries."""

from collections.abc import Sequence

from hookline.admin.audit import Audit
from hookline.admin.changes import Changes
from hookline.clock import Clock
from hookline.errors import NotFound
from hookline.ids import show
from hookline.model import AuditAction, AuditEntry, DeliveryId, EndpointId, EventId, State
from hookline.rules.audit_changes import noted
from hookline.store.contract import Store

REPLAYED_BY_DEFAULT = tuple(state for state in State if state is not State.PENDING)


class DeliveryAdmin:
    """What an operator changes about deliveries."""

    def __init__(self, store: Store, changes: Changes, clock: Clock, audit: Audit) -> None:
        self._store = store
        self._audit = audit
        self._changes = changes
        self._clock = clock

    async def retry(self, id: DeliveryId) -> None:
        """Make a pending delivery due now; its attempts keep counting."""
        entry = await self._entry(AuditAction.DELIVERY_RETRIED, id)
        with self._changes.making_due():
            lane = await self._store.retry(id, now=self._clock.now(), audit=entry)
        await self._changes.tell(lane)

    async def cancel(self, id: DeliveryId) -> None:
        """Give up a pending delivery."""
        entry = await self._entry(AuditAction.DELIVERY_CANCELLED, id)
        await self._store.cancel(id, now=self._clock.now(), audit=entry)
        await self._changes.tell()

    async def replay_event(
        self,
        id: EventId,
        *,
        endpoint: EndpointId | None = None,
        states: Sequence[State] = REPLAYED_BY_DEFAULT,
    ) -> list[DeliveryId]:
        """Replay an event's deliveries in these states; returns them."""
        event = await self._store.event(id)
        if event is None:
            raise NotFound("event", show("event", id))
        entry = self._audit.entry(
            AuditAction.EVENT_REPLAYED,
            "event",
            show("event", id),
            account=event.account,
            changes=noted(
                endpoint_id=None if endpoint is None else show("endpoint", endpoint),
                states=[str(state) for state in states],
            ),
        )
        with self._changes.making_due():
            redriven = await self._store.redrive_event(
                id, endpoint=endpoint, states=states, now=self._clock.now(), audit=entry
            )
        await self._changes.tell(*dict.fromkeys(lane for _, lane in redriven))
        return [delivery for delivery, _ in redriven]

    async def _entry(self, action: AuditAction, id: DeliveryId) -> AuditEntry:
        delivery = await self._store.delivery(id)
        if delivery is None:
            raise NotFound("delivery", show("delivery", id))
        return self._audit.entry(action, "delivery", show("delivery", id), account=delivery.account)
