"""Replays and discards dead letters, one by one or in bulk.

A bulk replay or discard is a job: it is created here, and a worker carries it out in steps.
"""

from collections.abc import Callable

import msgspec

from hookline import rfc3339
from hookline.admin.audit import Audit
from hookline.admin.changes import Changes
from hookline.clock import Clock
from hookline.errors import Invalid, NotFound, WrongState
from hookline.ids import Ids, event_of, show
from hookline.model import AuditAction, AuditEntry, Delivery, DeliveryId, State
from hookline.rules.audit_changes import noted
from hookline.store.contract import Job, JobKind, JobState, Store
from hookline.validate.dead_letter_filter import Chosen


class DeadLetterAdmin:
    """What an operator does with dead letters."""

    def __init__(
        self,
        store: Store,
        changes: Changes,
        clock: Clock,
        ids: Ids,
        audit: Audit,
        *,
        on_job: Callable[[], None],
    ) -> None:
        self._store = store
        self._audit = audit
        self._changes = changes
        self._clock = clock
        self._ids = ids
        self._on_job = on_job  # called when there is a job to carry out

    async def replay(self, id: DeliveryId) -> None:
        """Replay a dead letter, from the start of its schedule."""
        delivery = await self._delivery(id)
        if not await self._store.endpoints_by_id([delivery.endpoint_id]):
            raise WrongState("replayed", f"{delivery.state.value} and whose endpoint is deleted")
        entry = self._entry(AuditAction.DELIVERY_REPLAYED, delivery)
        # By event, because that verb names the states: a delivery that is no longer a dead letter is left alone.
        with self._changes.making_due(delivery.endpoint_id):
            redriven = await self._store.redrive_event(
                event_of(id),
                endpoint=delivery.endpoint_id,
                states=[State.DEAD],
                now=self._clock.now(),
                audit=entry,
            )
        if not redriven:
            raise WrongState("replayed as a dead letter", (await self._delivery(id)).state.value)
        await self._changes.tell(delivery.endpoint_id)

    async def discard(self, id: DeliveryId) -> None:
        """Give up a dead letter."""
        entry = self._entry(AuditAction.DELIVERY_DISCARDED, await self._delivery(id))
        await self._store.discard(id, now=self._clock.now(), audit=entry)
        await self._changes.tell()

    async def start_job(
        self,
        kind: JobKind,
        chosen: Chosen,
        *,
        account: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Replay or discard all chosen dead letters; the job continues after this returns.

        With an account it is that account's job, and of the ids it processes only the account's own.
        """
        job = msgspec.structs.replace(
            self._job(kind, chosen),
            account=account,
            idempotency_key=idempotency_key,
            digest=chosen.digest(),
        )
        entry = await self._entry_of_job(job, account=account)
        created = await self._store.create_job(job, now=job.created_at, audit=entry)
        if created.digest != job.digest:
            raise Invalid(
                f"The idempotency key {idempotency_key!r} was used before for a {kind} of others.",
                code="idempotency_conflict",
            )
        self._on_job()
        return created

    async def try_job(self, kind: JobKind, chosen: Chosen, *, account: str | None = None) -> Job:
        """What a job would do now; changes nothing."""
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

    def _entry(self, action: AuditAction, delivery: Delivery) -> AuditEntry:
        return self._audit.entry(action, "delivery", show("delivery", delivery.id), account=delivery.account)

    async def _entry_of_job(self, job: Job, *, account: str | None) -> AuditEntry:
        """It tells of the whole job: its steps follow in transactions of their own."""
        chosen = job.filter
        if account is None:
            account = chosen.account
        if account is None and chosen.endpoint_id is not None:
            found = await self._store.endpoints_by_id([chosen.endpoint_id])
            account = found[0].account if found else None
        is_replay = job.kind is JobKind.REPLAY
        return self._audit.entry(
            AuditAction.DEAD_LETTERS_REPLAYED if is_replay else AuditAction.DEAD_LETTERS_DISCARDED,
            job.kind.value,
            show(job.kind.value, job.id),
            account=account,
            changes=noted(
                account=chosen.account,
                endpoint_id=None if chosen.endpoint_id is None else show("endpoint", chosen.endpoint_id),
                event_type=chosen.event_type,
                reason=None if chosen.reason is None else str(chosen.reason),
                since=None
                if chosen.died_since is None
                else rfc3339.show(self._clock.shown(chosen.died_since)),
                until=None
                if chosen.died_until is None
                else rfc3339.show(self._clock.shown(chosen.died_until)),
                ids=[show("delivery", id) for id in job.ids] or None,
            ),
        )

    async def _delivery(self, id: DeliveryId) -> Delivery:
        found = await self._store.delivery(id)
        if found is None:
            raise NotFound("delivery", show("delivery", id))
        return found
