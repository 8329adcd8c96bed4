"""Carries out the store's verbs on PostgreSQL."""

from collections.abc import Sequence
from functools import partial
from itertools import chain, repeat

from hookline import ids
from hookline.errors import NotFound, StoreUnavailable
from hookline.model import (
    FOREVER,
    Attempt,
    Delivery,
    DeliveryId,
    Endpoint,
    EndpointId,
    Event,
    EventId,
    JobId,
    State,
    WorkerId,
)
from hookline.store.contract import (
    FREE_CHUNK,
    INLINE_PAYLOAD_BYTES,
    SWEEP_CHUNK,
    Acceptance,
    Change,
    DeliveryFilter,
    EndpointSnapshot,
    EventFanout,
    Job,
    JobKind,
    JobStep,
    LaneNote,
    LaneRow,
    Load,
    Loaded,
    Pulse,
    Release,
    Settlement,
    Suspect,
    Taken,
    Verdict,
    Want,
    WorkerRow,
)
from hookline.store.failpoints import failing
from hookline.store.migrations import level
from hookline.store.postgres import (
    gone_endpoints,
    jobs,
    lists,
    operators,
    rows,
    sql,
)
from hookline.store.postgres.descriptions import PostgresDescribed
from hookline.store.postgres.driver import session
from hookline.store.postgres.driver.faults import refuse_read_only, translated
from hookline.store.postgres.driver.links import Connection, Links, Work
from hookline.store.postgres.driver.presence import SessionPresence
from hookline.store.postgres.driver.rights import NOT_ASKED, VALUES, refusal
from hookline.store.postgres.events import PostgresEvents
from hookline.store.postgres.figures import PostgresFigures
from hookline.store.postgres.installation import PostgresInstallation
from hookline.store.postgres.keys import PostgresKeys
from hookline.store.postgres.notifications import PostgresHints
from hookline.store.postgres.retention import PostgresRetention
from hookline.store.postgres.schema import (
    bring_up_to_date,
    known,
    refuse_if_outgrown,
    refuse_unless_usable,
    would_apply,
)

CALL_TIMEOUT = 8.0  # above the server's own limits, below the 10 s after which nothing may hang
PATIENCE = 1.5  # seconds that an API call waits for a session; 2 s with the time to refuse it
LOAD_SESSIONS = 2  # large payloads are read beside the loader
DESK_SESSIONS = 3  # for the API's reads and operators' writes
LIST_SESSIONS = 2
COUNT_TIMEOUT = 65.0  # likewise above the server's limit (session.COUNTS): counting many millions takes long
RIGHTS_EVERY = 4  # pulses, so about every second: a process that lost a right reports it within two

_BEFORE_ALL = EndpointId(bytes(16))


@failing
class PostgresStore(
    PostgresDescribed,
    PostgresEvents,
    PostgresFigures,
    PostgresHints,
    PostgresInstallation,
    PostgresKeys,
    PostgresRetention,
):
    """The contract's verbs, for any number of processes on one database.

    `unsafe` accepts a server that does not flush its commits: to show what is lost then, never for production.
    """

    exclusive = False  # any number of processes work on one database

    def __init__(
        self,
        url: str,
        *,
        call_timeout: float = CALL_TIMEOUT,
        patience: float = PATIENCE,
        unsafe: bool = False,
    ) -> None:
        self._url = url
        self._unsafe = unsafe
        self._level = level(known())

        def links(
            role: str,
            settings: dict[str, str],
            *,
            size: int = 1,
            timeout: float = call_timeout,
            patience: float | None = None,
            lists: bool = False,
        ) -> Links:
            connect = partial(session.connect, url, role=role, settings=settings, unsafe=unsafe, lists=lists)
            return Links(connect, size=size, call_timeout=timeout, patience=patience)

        self._listener = partial(session.connect, url, role="listen", settings=session.DESK, unsafe=unsafe)
        self._accept = links("accept", session.HOT, lists=True)
        self._settle = links("settle", session.HOT, lists=True)
        self._lanes = links("lanes", session.HOT)
        self._loads = links("load", session.HOT, size=LOAD_SESSIONS, lists=True)
        self._pulse = links("pulse", session.HOT)
        self._looks = 0  # of the pulse
        self._session = SessionPresence()
        self._desk = links("desk", session.DESK, size=DESK_SESSIONS, patience=patience)
        self._lists = links("lists", session.LISTS, size=LIST_SESSIONS, patience=patience)
        self._prune = links("prune", session.HOT)
        self._figures = links("figures", session.COUNTS, timeout=COUNT_TIMEOUT)
        self._links = (
            self._accept,
            self._settle,
            self._lanes,
            self._loads,
            self._pulse,
            self._desk,
            self._lists,
            self._prune,
            self._figures,
        )

    # life

    async def migrate(self) -> list[str]:
        """See the contract."""
        return await self._aside(bring_up_to_date)

    async def outstanding(self) -> list[str]:
        """See the contract."""
        return await self._aside(would_apply)

    async def _aside(self, work: Work[list[str]]) -> list[str]:
        """Run it in a session of its own, for as long as it takes."""
        with translated():
            connection = await session.connect(
                self._url, role="migrate", settings=session.SLOW, unsafe=self._unsafe
            )
            try:
                names = await work(connection)
                await connection.close(timeout=CALL_TIMEOUT)
            finally:
                connection.terminate()
            return names

    async def open(self, *, serve: bool = True) -> None:
        """See the contract; any number of processes may serve one database."""
        for links in self._links:
            links.open()
        try:
            await self._desk.run(refuse_unless_usable)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """See the contract."""
        for links in self._links:
            await links.close()

    # accepting

    async def accept(self, batch: Sequence[EventFanout], *, catalogue: int, now: float) -> Acceptance:
        """See the contract."""
        columns = rows.publication_columns(batch, now=now)
        [found] = await self._accept.fetch(sql.ACCEPT, catalogue, *columns, now)
        if found["stale"]:
            # A repeat of a batch that is all stored gives the first answer again, whatever changed in between.
            return await self._explain(batch, None) or Acceptance(stale=True)
        if not found["absent"]:
            return Acceptance(stale=False, first_seq=found["first_seq"] or 0)
        explained = await self._explain([batch[n - 1] for n in found["absent"]], found["first_seq"])
        if explained is None:
            raise StoreUnavailable("An event was deleted while its repeat was accepted: try again.")
        return explained

    async def _explain(self, absent: Sequence[EventFanout], first_seq: int | None) -> Acceptance | None:
        """Why these were not written: they are stored under their own id or their key; None if one is not."""
        events = [publication.event for publication in absent]
        found = await self._accept.fetch(
            sql.READ_PRIORS,
            [event.id for event in events],
            [event.account for event in events],
            [event.idempotency_key for event in events],
        )
        if len(found) < len(absent):
            return None
        seqs = [row["first_seq"] for row in found if row["event_id"] == row["id"]] + [first_seq]
        return Acceptance(
            stale=False,
            first_seq=min((seq for seq in seqs if seq is not None), default=0),
            priors={row["id"]: rows.prior(row) for row in found if row["event_id"] != row["id"]},
        )

    # lanes

    async def take(self, worker: WorkerId, *, limit: int, now: float) -> list[Taken]:
        """See the contract."""
        found = await self._lanes.fetch(sql.TAKE, worker, now, limit)
        return sorted(map(rows.taken, found), key=lambda lane: lane.woke_at)

    async def take_these(self, worker: WorkerId, lanes: Sequence[EndpointId], *, now: float) -> list[Taken]:
        """See the contract."""
        return [rows.taken(row) for row in await self._lanes.fetch(sql.TAKE_THESE, worker, lanes, now)]

    async def load(self, wants: Sequence[Want], *, known: Sequence[DeliveryId], now: float) -> list[Loaded]:
        """See the contract."""
        found = await self._loads.fetch(
            sql.LOAD,
            [want.endpoint_id for want in wants],
            [want.ready for want in wants],
            [want.timed for want in wants],
            [want.floor for want in wants],
            [want.due_floor for want in wants],
            known,
            now,
            INLINE_PAYLOAD_BYTES,
        )
        return [rows.loaded(row) for row in found]

    async def payload(self, event: EventId) -> bytes:
        """See the contract."""
        found = await self._loads.fetch(sql.READ_PAYLOAD, event)
        if not found:
            raise NotFound("event", ids.show("event", event))
        payload: bytes = found[0]["payload"]
        return payload

    async def settle(
        self,
        worker: WorkerId,
        batch: Sequence[Settlement],
        *,
        notes: Sequence[LaneNote] = (),
        now: float,
    ) -> list[Verdict]:
        """See the contract."""
        # Rows are locked in the order of the batch: sorted, two batches cannot wait for each other.
        order = sorted(range(len(batch)), key=lambda n: batch[n].attempt.delivery_id)
        ordered = [batch[n] for n in order]
        values = (worker, *rows.settlement_columns(ordered), now, *rows.note_columns(notes))
        if all(settlement.gone is None for settlement in ordered):
            missed = await self._settle.fetch(sql.SETTLE, *values)
        else:
            missed = await self._settle.transaction(
                partial(gone_endpoints.settle_and_disable, ordered, values, now=now)
            )
        verdicts = [Verdict.APPLIED] * len(batch)
        repeated: list[int] = []
        for n, recorded in missed:
            verdicts[order[n]] = Verdict.LATE
            if not recorded:
                repeated.append(order[n])
        if repeated:
            attempts = [batch[n].attempt for n in repeated]
            found = await self._settle.fetch(
                sql.SETTLE_WAS,
                [attempt.delivery_id for attempt in attempts],
                [attempt.id for attempt in attempts],
            )
            counted = {row["id"] for row in found if not row["late"]}
            for n in repeated:
                if batch[n].attempt.id in counted:
                    verdicts[n] = Verdict.REPEATED
        return verdicts

    async def note(self, worker: WorkerId, notes: Sequence[LaneNote], *, now: float) -> list[EndpointId]:
        """See the contract."""
        found = await self._lanes.fetch(sql.NOTE, worker, *rows.note_columns(notes))
        return [row["endpoint_id"] for row in found]

    async def mark(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        """See the contract."""
        found = await self._lanes.fetch(sql.MARK, worker, *rows.suspect_columns(suspects))
        return [row["id"] for row in found]

    async def condemn(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        """See the contract."""
        found = await self._lanes.fetch(sql.CONDEMN, worker, *rows.suspect_columns(suspects), now)
        return [row["id"] for row in found]

    async def release(self, worker: WorkerId, releases: Sequence[Release], *, now: float) -> list[EndpointId]:
        """See the contract."""
        found = await self._lanes.fetch(sql.RELEASE, worker, *rows.release_columns(releases))
        return [row["endpoint_id"] for row in found]

    async def wake(self, lanes: Sequence[EndpointId], *, now: float) -> None:
        """See the contract."""
        await self._lanes.fetch(sql.WAKE, lanes, now)

    # workers

    async def register(self, worker: WorkerRow) -> None:
        """See the contract."""
        await self._pulse.run(partial(self._register, worker=worker))

    async def _register(self, connection: Connection, *, worker: WorkerRow) -> None:
        load = worker.load
        found = await connection.fetch(
            sql.REGISTER,
            worker.id,
            worker.kind,
            rows.printable(worker.host),
            worker.pid,
            worker.version,
            worker.started_at,
            worker.seen_at,
            worker.beat,
            load.lanes,
            load.in_flight,
            load.free_slots,
            load.waiting,
            load.draining,
            load.delivered_per_s,
            connection.get_server_pid(),
        )
        if found and found[0]["has_session"]:
            self._session.holds(connection, worker.id)

    async def beat(self, worker: WorkerId, load: Load, *, now: float) -> bool:
        """See the contract."""
        found = await self._pulse.fetch(
            sql.BEAT,
            worker,
            now,
            load.lanes,
            load.in_flight,
            load.free_slots,
            load.waiting,
            load.draining,
            load.delivered_per_s,
        )
        return bool(found)

    async def pulse(self, *, seen: int, worker: WorkerId | None = None) -> Pulse:
        """See the contract."""
        return await self._pulse.run(partial(self._look, seen=seen, worker=worker))

    async def _look(self, connection: Connection, *, seen: int, worker: WorkerId | None) -> Pulse:
        number = self._session.number(connection)
        backend = connection.get_server_pid()
        asks = self._looks % RIGHTS_EVERY == 0
        self._looks += 1
        asked = VALUES if asks else NOT_ASKED
        found = await connection.fetch(sql.PULSE, seen, worker, backend, self._session.lacks(worker), *asked)
        first = found[0]
        if first["is_read_only"]:
            # A process that cannot write must not send, because it could settle nothing, nor watch heartbeats, because
            # nobody can write them.
            await refuse_read_only(connection)
        if worker is not None and first["took"]:
            self._session.holds(connection, worker)
        is_own = first["backend"] == backend
        if not is_own and any(row["id"] == worker and row["has_session"] for row in found):
            await connection.execute(sql.UNREGISTER_SESSION, worker)
        if first["serves"] > self._level:
            await refuse_if_outgrown(connection, serves=first["serves"])
        return Pulse(
            now=first["now"],
            workers=tuple(rows.worker(row) for row in found if row["id"] is not None),
            changes=tuple(Change(*change) for change in first["changes"]),
            wakes_at=FOREVER if first["wakes_at"] is None else first["wakes_at"],
            # A session sees its own locks as free.
            gone=frozenset(row["id"] for row in found if row["is_gone"]) - self._session.held,
            session=number if is_own else None,
            refusal=refusal(first["lacking"]) if asks else None,
        )

    async def list_workers(self, *, after: WorkerId | None, limit: int) -> list[WorkerRow]:
        """See the contract."""
        return [rows.worker(row) for row in await self._desk.fetch(sql.LIST_WORKERS, after, limit)]

    async def owned(self, worker: WorkerId) -> list[Taken]:
        """See the contract."""
        return [rows.taken(row) for row in await self._lanes.fetch(sql.OWNED, worker)]

    async def bury(self, worker: WorkerId, *, beat: int, now: float) -> bool:
        """See the contract."""
        found = await self._desk.fetch(sql.BURY, worker, beat, now)
        return bool(found) and bool(found[0]["buried"])

    async def free(self, worker: WorkerId, *, now: float) -> list[EndpointId]:
        """See the contract."""
        found = await self._lanes.fetch(sql.FREE, worker, now, FREE_CHUNK)
        return [row["endpoint_id"] for row in found]

    async def sweep(self, *, after: EndpointId | None, now: float) -> EndpointId | None:
        """See the contract."""
        [found] = await self._lanes.fetch(sql.SWEEP, after or _BEFORE_ALL, now, SWEEP_CHUNK)
        return found["last"] if found["looked_at"] == SWEEP_CHUNK else None

    async def retire(self, worker: WorkerId) -> None:
        """See the contract."""

        async def work(connection: Connection) -> None:
            await connection.fetch(sql.LOCK_WORKER, worker)
            await connection.fetch(sql.RETIRE, worker)

        await self._desk.transaction(work)

    # operators

    async def create_endpoint(self, endpoint: Endpoint, *, now: float) -> None:
        """See the contract."""
        await self._desk.transaction(partial(operators.create_endpoint, endpoint=endpoint, now=now))

    async def update_endpoint(self, endpoint: Endpoint, *, was: float, now: float) -> bool:
        """See the contract."""
        work = partial(operators.update_endpoint, endpoint=endpoint, was=was, now=now)
        return await self._desk.transaction(work)

    async def delete_endpoint(self, endpoint: EndpointId, *, now: float) -> bool:
        """See the contract."""
        return await self._desk.transaction(partial(operators.delete_endpoint, endpoint=endpoint, now=now))

    async def cancel_deleted(self, *, limit: int, now: float) -> int:
        """See the contract."""
        return await self._desk.transaction(partial(operators.cancel_deleted, limit=limit, now=now))

    async def retry(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """See the contract."""
        return await self._move(sql.RETRY, delivery, "retried", now)

    async def cancel(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """See the contract."""
        return await self._move(sql.CANCEL, delivery, "cancelled", now)

    async def redrive(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """See the contract."""
        return await self._move(sql.REDRIVE, delivery, "redriven", now)

    async def discard(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """See the contract."""
        return await self._move(sql.DISCARD, delivery, "discarded", now)

    async def _move(self, statement: str, delivery: DeliveryId, verb: str, now: float) -> EndpointId:
        work = partial(operators.move, statement=statement, delivery=delivery, verb=verb, now=now)
        return await self._desk.transaction(work)

    async def redrive_event(
        self,
        event: EventId,
        *,
        endpoint: EndpointId | None,
        states: Sequence[State],
        now: float,
    ) -> list[tuple[DeliveryId, EndpointId]]:
        """See the contract."""
        work = partial(operators.redrive_event, event=event, endpoint=endpoint, states=states, now=now)
        return await self._desk.transaction(work)

    async def reset_circuit(self, endpoint: EndpointId, *, now: float) -> bool:
        """See the contract."""
        return await self._desk.transaction(partial(operators.reset_circuit, endpoint=endpoint, now=now))

    async def create_job(self, job: Job, *, now: float) -> Job:
        """See the contract."""
        if found := await self._desk.fetch(sql.FIRST_JOB, *jobs.key_of(job)):
            return rows.job(found[0])
        # Counted before, in steps: a transaction that waits for the count would last too long.
        matched = len(set(job.ids)) or await self._count_dead(job.filter, before=job.created_at)
        return await self._desk.transaction(partial(jobs.create, job=job, matched=matched))

    async def advance_job(self, job: JobId, *, limit: int, now: float) -> JobStep | None:
        """See the contract."""
        return await self._desk.transaction(partial(jobs.advance, id=job, limit=limit, now=now))

    async def fail_job(self, job: JobId, *, reason: str, now: float) -> bool:
        """See the contract."""
        return bool(await self._desk.fetch(sql.FAIL_JOB, job, reason, now))

    async def running_jobs(self) -> list[JobId]:
        """See the contract."""
        return [row["id"] for row in await self._desk.fetch(sql.RUNNING_JOBS)]

    # reading

    async def job(self, job: JobId) -> Job | None:
        """See the contract."""
        found = await self._desk.fetch(sql.READ_JOB, job)
        return rows.job(found[0]) if found else None

    async def list_jobs(
        self, kind: JobKind, *, account: str | None = None, after: JobId | None, limit: int
    ) -> list[Job]:
        """See the contract."""
        return [rows.job(row) for row in await self._desk.fetch(sql.LIST_JOBS, kind, after, limit, account)]

    async def count_dead(self, filter: DeliveryFilter) -> int:
        """See the contract."""
        return await self._count_dead(filter, before=None)

    async def _count_dead(self, filter: DeliveryFilter, *, before: float | None) -> int:
        total, after, limit = 0, None, lists.STEPS[-1]
        while True:
            statement, values = lists.dead_ahead(filter, after=after, limit=limit)
            [(looked_at, last)] = await self._lists.fetch(statement, *values)
            if last is None:
                return total
            statement, values = lists.dead_count(filter, before=before, after=after, last=last)
            [[count]] = await self._lists.fetch(statement, *values)
            total, after = total + int(count), last
            if looked_at < limit:
                return total

    async def lanes(self, ids: Sequence[EndpointId]) -> list[LaneRow]:
        """See the contract."""
        return [rows.lane(row) for row in await self._desk.fetch(sql.READ_LANES, ids)]

    async def catalogue(self) -> EndpointSnapshot:
        """See the contract."""
        found = await self._desk.fetch(sql.CATALOGUE)
        return EndpointSnapshot(
            n=found[0]["n"],
            endpoints=tuple(rows.endpoints(row for row in found if row["id"] is not None)),
        )

    async def endpoints_by_id(self, ids: Sequence[EndpointId]) -> list[Endpoint]:
        """See the contract."""
        return rows.endpoints(await self._desk.fetch(sql.ENDPOINTS_BY_ID, ids))

    async def list_endpoints(
        self, *, account: str | None, enabled: bool | None, after: EndpointId | None, limit: int
    ) -> list[Endpoint]:
        """See the contract."""
        found = await self._desk.fetch(sql.LIST_ENDPOINTS, account, enabled, after, limit)
        return rows.endpoints(found)

    async def event(self, event: EventId) -> Event | None:
        """See the contract."""
        found = await self._desk.fetch(sql.READ_EVENT, event)
        return rows.event(found[0]) if found else None

    async def delivery(self, delivery: DeliveryId) -> Delivery | None:
        """See the contract."""
        found = await self._desk.fetch(sql.READ_DELIVERY, delivery)
        return rows.delivery(found[0]) if found else None

    async def list_deliveries(
        self, filter: DeliveryFilter, *, after: DeliveryId | None, limit: int
    ) -> list[Delivery]:
        """See the contract."""
        gathers = False
        if (pending := lists.pending_ahead(filter)) is not None:
            [[few]] = await self._lists.fetch(pending[0], *pending[1])
            gathers = few < lists.FEW_PENDING
        found: list[Delivery] = []
        for looked in chain(lists.STEPS, repeat(lists.STEPS[-1])):
            floor: DeliveryId | None = None
            if not gathers and lists.takes_steps(filter):
                floor = await self._floor(filter, after=after, looked=looked)
            statement, values = lists.delivery_list(
                filter, after=after, limit=limit - len(found), floor=floor, gathers=gathers
            )
            found += map(rows.delivery, await self._lists.fetch(statement, *values))
            if floor is None or len(found) == limit:
                break
            after = floor
        return found

    async def _floor(
        self, filter: DeliveryFilter, *, after: DeliveryId | None, looked: int
    ) -> DeliveryId | None:
        """The id below which a step that starts there does not read; None: it reaches the end."""
        floor: DeliveryId | None = None
        if (events := lists.events_ahead(filter, after=after, limit=looked)) is not None:
            [(looked_at, lowest)] = await self._lists.fetch(events[0], *events[1])
            floor = lowest if looked_at == looked else None
        statement, values = lists.look_ahead(filter, after=after, limit=looked, floor=floor)
        [(looked_at, lowest)] = await self._lists.fetch(statement, *values)
        return lowest if looked_at == looked else floor

    async def attempts(self, delivery: DeliveryId) -> list[Attempt]:
        """See the contract."""
        return [rows.attempt(row) for row in await self._desk.fetch(sql.READ_ATTEMPTS, delivery)]

    async def counts(self) -> dict[State, int]:
        """See the contract."""
        found = {row["state"]: row["n"] for row in await self._desk.fetch(sql.COUNTS)}
        return {state: found.get(state.value, 0) for state in State}
