"""What can an operator change?

Every change is a verb of the store; here it is checked, carried out, and made known to this process's own
worker at once. The others hear of it with their next pulse.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from hookline.admin.dead_letters import Chosen
from hookline.admin.destinations import Bounds
from hookline.clock import Clock
from hookline.config import Settings
from hookline.crypto.sealing import (
    Sealer,
    Secrets,
)
from hookline.errors import Invalid, NotFound, Overloaded, SealBroken, WrongState
from hookline.ids import Ids, event_of, show
from hookline.model import Delivery, DeliveryId, Endpoint, EndpointId, EventId, State
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.lanes.handover import Handover
from hookline.store.contract import Job, JobKind, JobState, Store
from hookline.validate.endpoint_fields import (
    EndpointInput,
    EndpointPatch,
    new_endpoint,
    patched,
    read_fields,
)
from hookline.validate.stored_endpoint import EndpointJudge

REPLAYED_BY_DEFAULT = tuple(state for state in State if state is not State.PENDING)

_PATCH_TRIES = 10  # against others who change the same endpoint at the same moment


class Desk:
    """Carries out what operators ask for."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        handover: Handover,
        clock: Clock,
        ids: Ids,
        settings: Settings,
        *,
        bounds: Bounds,
        sealer: Sealer | None = None,
        judge: EndpointJudge | None = None,
        on_job: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._handover = handover
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._bounds = bounds
        self._sealer = sealer or Sealer()
        self._judge = judge or EndpointJudge(self._sealer)
        self._on_job = on_job  # somebody has a job to carry out

    # --- endpoints ---

    async def create_endpoint(self, fields: dict[str, Any]) -> Endpoint:
        """Add an endpoint; the one given back has its secret as it is to be shown."""
        endpoint = new_endpoint(
            read_fields(EndpointInput, fields),
            id=self._ids.endpoint(),
            now=self._clock.now(),
            private_allowed=self._bounds.private_allowed,
            allowed=self._bounds.allowed,
        )
        self._bounds.refuse_own(endpoint.url)
        most = self._settings.endpoints_per_account
        if self._catalogue.count(endpoint.account) >= most:
            raise Invalid(
                f"An account may have at most {most:,} endpoints; delete one first.", pointer="/account"
            )
        await self._store.create_endpoint(self._sealer.sealed(endpoint), now=self._clock.now())
        await self._catalogue.include_own()
        return endpoint

    async def update_endpoint(self, id: EndpointId, patch: EndpointPatch) -> Endpoint:
        """Change an endpoint by a merge patch; what others change meanwhile is kept."""
        for _ in range(_PATCH_TRIES):
            found = await self._store.endpoints_by_id([id])
            if not found:
                raise NotFound("endpoint", show("endpoint", id))
            endpoint = patched(
                found[0],
                patch,
                now=self._clock.now(),
                private_allowed=self._bounds.private_allowed,
                allowed=self._bounds.allowed,
                secrets=self._opened(found[0]),
                faults=self._judge.faults(found[0]),
            )
            if endpoint.url != found[0].url:
                self._bounds.refuse_own(endpoint.url)
            if self._opened(found[0]) is not None:  # else its secret stays as it is stored
                endpoint = self._sealer.sealed(endpoint)
            if await self._store.update_endpoint(endpoint, was=found[0].updated_at, now=self._clock.now()):
                await self._tell(id)  # one that was enabled or resumed has waiting deliveries
                return endpoint
        raise Overloaded(f"The endpoint {show('endpoint', id)} is being changed by others all the time.")

    def _opened(self, endpoint: Endpoint) -> Secrets | None:
        try:
            return self._sealer.opened(endpoint)
        except SealBroken:
            return None

    async def delete_endpoint(self, id: EndpointId) -> None:
        """Delete an endpoint; its pending deliveries are cancelled."""
        if not await self._store.delete_endpoint(id, now=self._clock.now()):
            raise NotFound("endpoint", show("endpoint", id))
        await self._catalogue.include_own()

    async def reset_circuit(self, id: EndpointId) -> None:
        """Close an endpoint's circuit: it is sent to again, beginning with one request."""
        if not await self._store.reset_circuit(id, now=self._clock.now()):
            raise NotFound("endpoint", show("endpoint", id))
        await self._tell(id)

    # --- deliveries ---

    async def retry(self, id: DeliveryId) -> None:
        """Make a pending delivery due now; its count goes on."""
        await self._tell(await self._store.retry(id, now=self._clock.now()))

    async def cancel(self, id: DeliveryId) -> None:
        """Give up a pending delivery."""
        await self._store.cancel(id, now=self._clock.now())
        await self._catalogue.include_own()

    async def replay_dead(self, id: DeliveryId) -> None:
        """Bring a dead letter once more, from the beginning of its schedule."""
        delivery = await self._delivery(id)
        if not await self._store.endpoints_by_id([delivery.endpoint_id]):
            raise WrongState("replayed", f"{delivery.state.value} and has lost its endpoint")
        # By event, because that verb names the states: a delivery that is no dead letter any more is left alone.
        redriven = await self._store.redrive_event(
            event_of(id), endpoint=delivery.endpoint_id, states=[State.DEAD], now=self._clock.now()
        )
        if not redriven:
            raise WrongState("replayed as a dead letter", (await self._delivery(id)).state.value)
        await self._tell(delivery.endpoint_id)

    async def discard(self, id: DeliveryId) -> None:
        """Give up a dead letter."""
        await self._store.discard(id, now=self._clock.now())
        await self._catalogue.include_own()

    async def replay_event(
        self,
        id: EventId,
        *,
        endpoint: EndpointId | None = None,
        states: Sequence[State] = REPLAYED_BY_DEFAULT,
    ) -> list[DeliveryId]:
        """Bring an event's deliveries in these states once more; which they are."""
        if await self._store.event(id) is None:
            raise NotFound("event", show("event", id))
        redriven = await self._store.redrive_event(
            id, endpoint=endpoint, states=states, now=self._clock.now()
        )
        await self._tell(*dict.fromkeys(lane for _, lane in redriven))
        return [delivery for delivery, _ in redriven]

    # --- jobs ---

    async def start_job(
        self,
        kind: JobKind,
        chosen: Chosen,
        *,
        account: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Replay or discard all dead letters that are chosen; the job goes on when this returns.

        With an account it is that account's job, and of the ids does only those that are its own.
        """
        job = msgspec.structs.replace(
            self._job(kind, chosen),
            account=account,
            idempotency_key=idempotency_key,
            digest=chosen.digest(),
        )
        created = await self._store.create_job(job, now=job.created_at)
        if created.digest != job.digest:
            raise Invalid(
                f"The idempotency key {idempotency_key!r} was used before for a {kind} of others.",
                code="idempotency_conflict",
            )
        self._on_job()
        return created

    async def try_job(self, kind: JobKind, chosen: Chosen, *, account: str | None = None) -> Job:
        """What a job would do now; nothing is done."""
        if chosen.ids:
            found = [await self._store.delivery(id) for id in chosen.ids]
            matched = sum(
                each is not None and each.state is State.DEAD and account in (None, each.account)
                for each in found
            )
        else:
            matched = await self._store.count_dead(chosen.filter.by(self._clock.asked))
        now = self._clock.now()
        return msgspec.structs.replace(
            self._job(kind, chosen), state=JobState.DONE, matched=matched, created_at=now, finished_at=now
        )

    def _job(self, kind: JobKind, chosen: Chosen) -> Job:
        return Job(
            id=self._ids.job(),
            kind=kind,
            filter=chosen.filter.by(self._clock.asked),
            ids=chosen.ids,
            created_at=self._clock.now(),
        )

    async def _delivery(self, id: DeliveryId) -> Delivery:
        found = await self._store.delivery(id)
        if found is None:
            raise NotFound("delivery", show("delivery", id))
        return found

    async def _tell(self, *lanes: EndpointId) -> None:
        """Rows of these lanes were made due, or may be sent again."""
        await self._catalogue.include_own()
        for lane in lanes:
            self._handover.announce(lane)
