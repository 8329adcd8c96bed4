"""Builds a running hookline from its parts.

This is the only place that constructs things: the clock, the random numbers, the network, the store and the pipeline
are made here and handed down.
"""

import secrets
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from random import Random
from types import TracebackType
from typing import Any, Self

import msgspec
import structlog

from hookline import rfc3339
from hookline.admin.accounts import Accounts
from hookline.admin.audit import Audit
from hookline.admin.changes import Changes
from hookline.admin.dead_letters import DeadLetterAdmin
from hookline.admin.deliveries import DeliveryAdmin
from hookline.admin.destinations import Destinations
from hookline.admin.endpoints import EndpointAdmin
from hookline.admin.event_types import EventTypes
from hookline.admin.key_cache import KeyCache
from hookline.admin.keys import KeyAdmin
from hookline.admin.portal import PortalLinks
from hookline.admin.refused_rows import RefusedRows
from hookline.admin.secrets import Rotation
from hookline.admin.test_event import EndpointTest
from hookline.clock import Clock, SystemClock
from hookline.config import Settings
from hookline.crypto.sealing import Sealer
from hookline.errors import ConfigError, Invalid, NotRunning, SchemaOutgrown, demand
from hookline.ids import Ids, read, show
from hookline.logs import keep_plain
from hookline.model import DEFAULT_ACCOUNT, OWN_ACCOUNT, DeliveryId, EndpointId
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.catalogue.host_limits import Hosts
from hookline.pipeline.histogram import SECONDS, Histogram
from hookline.pipeline.intake.accept import Intake
from hookline.pipeline.intake.announcing import Announcer
from hookline.pipeline.intake.drafts import Done, Draft, Published, Result
from hookline.pipeline.intake.readiness import Readiness
from hookline.pipeline.maintenance.bulk_jobs import Jobs
from hookline.pipeline.maintenance.pruning import Pruning
from hookline.pipeline.maintenance.snapshot_watch import SnapshotWatch
from hookline.pipeline.measuring.alert_look import AlertLook
from hookline.pipeline.measuring.health_look import HealthLook
from hookline.pipeline.measuring.periodic_tasks import PeriodicTasks
from hookline.pipeline.membership.heartbeat import Heartbeat
from hookline.pipeline.notifying.channels import Channels
from hookline.pipeline.notifying.mail import Mailer, MailSettings
from hookline.pipeline.notifying.notifications import Notifications
from hookline.pipeline.notifying.telling import Telling
from hookline.pipeline.outbox.accepting import RowAcceptor
from hookline.pipeline.outbox.mover import Mover
from hookline.pipeline.outbox.rows import RowLimits
from hookline.pipeline.outbox.source import ForeignOutbox, foreign, own
from hookline.pipeline.sending import open_files
from hookline.pipeline.sending.client import HttpSender
from hookline.pipeline.sending.net import Net, SystemNet, is_here
from hookline.pipeline.sending.tls_contexts import TlsContexts, read_authorities, trusting
from hookline.pipeline.worker import Worker
from hookline.reports.account_list import AccountList
from hookline.reports.analysis import DeathAnalysis
from hookline.reports.counts import Figures
from hookline.reports.endpoint_board import EndpointBoard
from hookline.reports.flow import FlowReports
from hookline.reports.health import HealthReports
from hookline.reports.outboxes.sources import OutboxReports
from hookline.reports.own_events import OwnEvents
from hookline.reports.owners import LaneOwners
from hookline.reports.queries import EndpointReport, Reports
from hookline.reports.status import StatusReports
from hookline.rules import egress_proxy, trace_context
from hookline.rules.alerts import AlertThresholds
from hookline.rules.hops import checked
from hookline.rules.open_files import (
    most_connections,
    slots_within,
)
from hookline.rules.retention import keep_from_days
from hookline.rules.retry import PRESETS
from hookline.store import database_url
from hookline.store.contract import Store
from hookline.validate import payload as payloads
from hookline.validate.names import check_account, check_idempotency_key, check_type
from hookline.validate.payload_encoding import Payload, encoded
from hookline.validate.stored_endpoint import EndpointJudge

SLOW_S = 1.0  # for a statement; longer ones are logged

log = structlog.get_logger()


class Hookline:
    """A running hookline: publishes, delivers, answers questions."""

    def __init__(
        self,
        database: str | None = None,
        *,
        settings: Settings | None = None,
        kind: str = "library",
        deliver: bool = True,
        clock: Clock | None = None,
        rng: Random | None = None,
        net: Net | None = None,
        store: Store | None = None,
    ) -> None:
        keep_plain()
        settings = settings or Settings()
        if database is not None:
            settings = msgspec.structs.replace(settings, database=database)
        self.settings = settings
        self.clock = clock or SystemClock()
        rng = rng or Random()
        self.ids = Ids(self.clock, rng)
        self.store = store or store_for(settings.database, self.clock)
        self.store.slow_verbs.limit = SLOW_S
        self.sealer = Sealer(settings.secret_key)
        judge = EndpointJudge(self.sealer)
        self.destinations = Destinations(settings, is_here=is_here)
        hosts = Hosts(settings.max_in_flight_per_host, is_allowed=self.destinations.is_allowed)
        self._catalogue = Catalogue(
            self.store,
            default=PRESETS[settings.retry],
            sealer=self.sealer,
            contact=settings.contact,
            hosts=hosts,
            judge=judge.faults,
        )
        self._heartbeat = Heartbeat(
            self.store,
            self._catalogue,
            self.clock,
            self.ids,
            kind=kind if deliver else "api",
            interval=settings.heartbeat_s,
            lease=settings.takeover_s,
        )
        self._sender = HttpSender(
            net or SystemNet(),
            self.clock,
            gate=self._heartbeat.is_fresh,
            vet=self.destinations.may_dial,
            contexts=tls_contexts(settings),
            proxy=None if settings.egress_proxy is None else egress_proxy.read(settings.egress_proxy),
            reached=hosts.reached,
            most_open=most_connections(open_files.allowed()),
        )
        self.worker = Worker(
            self.store,
            self._catalogue,
            self._heartbeat,
            self._sender,
            self.clock,
            self.ids,
            rng,
            canonical=self.destinations.canonical,
            slots=slots_within(settings.max_in_flight, open_files.allowed()),
            poll=settings.poll_s,
            delivers=deliver,
            hints=settings.notify,
        )
        self.intake = Intake(
            self.store,
            self._catalogue,
            self.worker.handover,
            self.worker.admission,
            self.clock,
            self.ids,
            most_deliveries=settings.deliveries_per_event,
            on_refused=self.worker.say_refused,
        )
        self._readiness = Readiness(
            self.store,
            self.clock,
            publishing=lambda: self.intake.publishing,
            is_alive=lambda: self.is_ready,
        )
        self._sources = [foreign_outbox(url) for url in settings.outbox if url != settings.database]
        self.outbox = RowAcceptor(
            self.store,
            self.intake,
            self.clock,
            limits=RowLimits(settings.payload_limit_bytes, settings.max_hops),
        )
        self.mover = Mover(
            [
                own(self.store, is_file=self.store.exclusive),
                *(foreign(name, table) for name, table in self._sources),
            ],
            self.outbox,
            self.store,
            self._heartbeat,
            self.clock,
            delivers=deliver,
            tell_others=self.worker.tell_others,
        )
        self._jobs = Jobs(self.store, self.clock, self.worker.handover.announce)
        keep = keep_from_days(
            delivered=settings.keep_delivered_days,
            dead=settings.keep_dead_days,
            audit=settings.keep_audit_days,
        )
        self._pruning = Pruning(self.store, self.clock, keep)
        self._snapshots = SnapshotWatch(self.store, self.clock)
        self._tasks = PeriodicTasks(self.clock, on_refused=self.worker.say_refused)
        look = HealthLook(self.store, self.clock, heartbeat=settings.heartbeat_s)
        self._tasks.add(look.name, look.every, look.work)
        alerts = AlertLook(
            self.store,
            self.clock,
            self.ids,
            thresholds=AlertThresholds(
                dead_letters=settings.alert_dead_letters,
                oldest_due_s=settings.alert_oldest_due_s,
                queue=settings.alert_queue,
                slow_s=settings.alert_slow_s,
                outbox_refused=settings.alert_outbox_refused,
                outbox_late_s=settings.alert_outbox_late_s,
            ),
            default_retry=PRESETS[settings.retry],
            heartbeat=settings.heartbeat_s,
            announces=lambda: self._catalogue.announces,
            every=settings.alert_every_s,
        )
        self._tasks.add(alerts.name, alerts.every, alerts.work)
        changes = Changes(self._catalogue, self.worker.handover)
        audit = Audit(self.clock, self.ids)
        self.endpoints = EndpointAdmin(
            self.store,
            self._catalogue,
            changes,
            self.clock,
            self.ids,
            settings,
            audit,
            destinations=self.destinations,
            sealer=self.sealer,
            judge=judge,
        )
        self.deliveries = DeliveryAdmin(self.store, changes, self.clock, audit)
        self.dead_letters = DeadLetterAdmin(
            self.store, changes, self.clock, self.ids, audit, on_job=self._jobs.nudge
        )
        self.rotation = Rotation(self.store, self._catalogue, self.sealer, self.clock, audit)
        self.trial = EndpointTest(
            self.store, self._catalogue, self.worker.handover, changes, self.clock, self.ids
        )
        self.refused_rows = RefusedRows(
            self.store,
            self.intake,
            self.clock,
            audit,
            limits=RowLimits(settings.payload_limit_bytes, settings.max_hops),
        )
        self.outboxes = OutboxReports(self.store, self.clock)
        self.event_types = EventTypes(self.store, self._catalogue, self.clock, audit)
        self.notifications = Notifications(
            self.store,
            self._catalogue,
            Channels(
                self._sender,
                self.clock,
                mailer=_mailer(settings, self.clock),
                canonical=self.destinations.canonical,
            ),
            self.clock,
            rng,
            try_own_event=self._try_own_event,
            open_notify=self.sealer.open_notify,
        )
        self.accounts = Accounts(
            self.store,
            self._catalogue,
            self.clock,
            audit,
            sealer=self.sealer,
            canonical=self.destinations.canonical,
            try_channels=self.notifications.try_channels,
        )
        self.account_list = AccountList(self._catalogue)
        self.secret = secrets.token_bytes(32)  # replaced at the start by the one that all processes share
        self.key_cache = KeyCache(self.store, self.clock)
        self.keys = KeyAdmin(self.store, self.clock, self.ids, audit=audit, on_change=self.key_cache.learn)
        self.portal = PortalLinks(self.store, self.clock, settings, audit)
        self.figures = Figures(self.store, self.clock)
        self.publish_refused: Counter[str] = Counter()  # by code, as the API answered them
        self.connections_refused: Counter[str] = Counter()  # of clients, by the limit they were over
        self.loop_lag = Histogram(SECONDS)  # how late the loop wakes a sleeper, sampled by the API's server
        self.owners = LaneOwners(self.store, self.worker.status, self.clock, heartbeat=settings.heartbeat_s)
        self.health = HealthReports(self.store, self.owners, self.clock, heartbeat=settings.heartbeat_s)
        self.reports = Reports(
            self.store,
            self.owners,
            shown=self.clock.shown,
            default_retry=settings.retry,
            judge=judge,
        )
        self.board = EndpointBoard(self.store, self.owners, judge, self.clock)
        self.flow = FlowReports(self.store, self.health, self.clock)
        self.analysis = DeathAnalysis(self.store, self.reports, self.clock)
        self._announcer = Announcer(
            self.store,
            self._catalogue,
            self.clock,
            self.ids,
            show=OwnEvents(self.store, self.reports, self.clock).payloads,
            wake=self.worker.handover.announce,
            people=Telling(self._catalogue, gather_s=settings.notify_deaths_s),
            on_told=self.notifications.nudge,
        )
        self._tasks.add(self._announcer.name, self._announcer.every, self._announcer.work)
        self.status = StatusReports(
            self.store,
            self.reports,
            self.health,
            self.clock,
            heartbeat=settings.heartbeat_s,
            not_ready=self.not_ready,
        )
        # A server locks an SQLite file even when it delivers nothing from it: one process serves a file.
        self._claims = deliver or kind != "library"
        self._is_running = False
        self.outgrown: SchemaOutgrown | None = None  # why this process can no longer work
        self.on_outgrown: Callable[[], None] = self._say_outgrown
        self._heartbeat.on_outgrown = self._note_outgrown

    # --- life ---

    async def start(self) -> None:
        """Open the database, recover pending deliveries and start delivering. If it runs already, nothing is done."""
        if self._is_running:
            return
        await self.store.open(serve=self._claims)
        try:
            await self._check_key()
            self.secret = await self.store.installation_secret(self.secret)
            await self._catalogue.open()
            await self.worker.start(
                self._jobs.run,
                self._pruning.run,
                self._snapshots.run,
                self.mover.run,
                self._tasks.run,
                self.notifications.run_mails,
                self.notifications.run_posts,
                always=[self.key_cache.run, self.notifications.run_settings],
            )
        except BaseException:
            await self.store.close()
            raise
        self.mover.begin()
        self._is_running = True

    async def stop(self) -> bool:
        """Finish the requests under way and release everything; True if that was done within `drain_s`."""
        if not self._is_running:
            return True
        self._is_running = False
        until = self.clock.monotonic() + self.settings.drain_s
        try:
            self.worker.begin_to_leave()  # first: what the mover waits for may take long
            await self.mover.close(within=self.settings.drain_s)
            await self.intake.close()
            left = max(0.0, until - self.clock.monotonic())
            return await self.worker.stop(within=left, close=self._close)
        finally:
            await self.figures.close()
            await self.status.close()
            await self.board.close()
            await self.flow.close()
            await self._sender.close()
            await self._readiness.close()
            for _, table in self._sources:
                await table.close()
            await self.store.close()

    async def _close(self) -> None:
        await self._jobs.close()
        await self.notifications.close()

    async def __aenter__(self) -> Self:
        await self.store.migrate()
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def is_ready(self) -> bool:
        """Whether the database answers and refused no write, as of the last heartbeats."""
        return self._is_running and self._heartbeat.is_fresh() and self._heartbeat.may_write()

    async def not_ready(self) -> str | None:
        """Why a publish would wait or be refused now; None: it would not."""
        return await self._readiness.fault()

    @property
    def shortages(self) -> int:
        """How many connections this process could not open for lack of a descriptor, port or memory."""
        return self._sender.shortages

    def refuse_unless_started(self) -> None:
        if not self._is_running:
            raise NotRunning("This hookline is not running: use it inside `async with`, or start() it first.")

    def _note_outgrown(self, error: SchemaOutgrown) -> None:
        if self.outgrown is None:
            self.outgrown = error
            self.on_outgrown()

    def _say_outgrown(self) -> None:
        log.error("schema.outgrown", error=str(self.outgrown))

    async def _check_key(self) -> None:
        """Refuse a key that did not seal the secrets of this database."""
        if self.sealer.seals:
            mark = await self.store.mark_sealed(self.sealer.mark())
            renewed = self.sealer.renewed_mark(mark)
            if renewed != mark:
                await self.store.mark_sealed(renewed, was=mark)

    # --- publishing ---

    async def accept(self, drafts: list[Draft]) -> list[Result]:
        """Publish many checked drafts; a refused draft has an error in its place."""
        return await self.intake.accept(drafts)

    def submit(self, drafts: list[Draft], done: Done) -> None:
        """Publish many checked drafts and call `done` when they are durable; raises Overloaded."""
        self.intake.submit(drafts, done)

    async def publish_draft(self, draft: Draft) -> Published:
        """Publish one checked draft."""
        return await self.intake.publish(draft)

    async def publish(self, type: str, payload: Payload, **fields: Any) -> "PublishedEvent":
        """Publish an event from code of ours; programs use `hookline.Hookline`."""
        self.refuse_unless_started()
        published = await self.publish_at_once(self.draft(type, encoded(payload), **fields))
        return PublishedEvent(
            id=show("event", published.id),
            type=published.type,
            account=published.account,
            created_at=published.created_at,
            deliveries=published.deliveries,
            duplicate=published.duplicate,
        )

    async def publish_at_once(self, draft: Draft) -> Published:
        """Publish one checked draft, and let a worker know of it before this returns."""
        published = await self.intake.publish(draft)
        await self.worker.handover.wakes.flush()
        return published

    def draft(
        self,
        type: str,
        body: bytes,
        *,
        account: str | None = None,
        idempotency_key: str | None = None,
        deliver_at: datetime | None = None,
        hops: int = 0,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> Draft:
        """A draft of what a program publishes, checked; `body` is the payload as JSON."""
        payloads.check(body, self.settings.payload_limit_bytes)
        return Draft(
            check_type(type),
            body,
            DEFAULT_ACCOUNT if account is None else check_account(account),
            None if idempotency_key is None else check_idempotency_key(idempotency_key),
            None if deliver_at is None else _store_time(deliver_at, now=self.clock.now()),
            checked(hops, most=self.settings.max_hops),
            None if traceparent is None else trace_context.read([traceparent], [tracestate or ""]),
        )

    async def _try_own_event(self, payload: bytes) -> int:
        """Publish an own event that only shows that they arrive; how many endpoints it goes to."""
        published = await self.intake.publish(Draft("alert.test", payload, OWN_ACCOUNT))
        return published.deliveries

    # --- endpoints ---

    async def create_endpoint(self, **fields: Any) -> EndpointReport:
        """Create an endpoint: `url`, `events`, and any other field of the API. The answer holds its secret."""
        self.refuse_unless_started()
        return await self.reports.endpoint(await self.endpoints.create(fields), reveal=True)

    async def update_endpoint(self, id: str, **fields: Any) -> EndpointReport:
        """Change the named fields of an endpoint."""
        self.refuse_unless_started()
        return await self.reports.endpoint(
            await self.endpoints.update(EndpointId(read("endpoint", id)), fields)
        )

    async def delete_endpoint(self, id: str) -> None:
        """Delete an endpoint; its pending deliveries are cancelled."""
        self.refuse_unless_started()
        await self.endpoints.delete(EndpointId(read("endpoint", id)))

    def is_under_way(self, delivery: DeliveryId) -> bool:
        """Whether this process is sending the delivery now."""
        return self.worker.status.is_under_way(delivery)


class PublishedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The event of a publish from code of ours."""

    id: str
    type: str
    account: str
    created_at: float
    deliveries: int  # how many endpoints it goes to
    duplicate: bool  # the idempotency key was used before: this is the event of its first use


def store_for(url: str, clock: Clock | None = None) -> Store:
    """The store behind a database URL."""
    if (wrong := database_url.fault(url)) is not None:
        raise ConfigError(f"A database URL is {database_url.ALLOWED}; {wrong}.")
    if url.startswith("sqlite:"):
        from hookline.store.sqlite.store import SqliteStore

        return SqliteStore(url.removeprefix("sqlite:///"), clock=clock)
    demand("asyncpg", what="a PostgreSQL database")
    from hookline.store.postgres.store import PostgresStore

    return PostgresStore(url)


def foreign_outbox(url: str) -> tuple[str, ForeignOutbox]:
    """The outbox of an application's database, with its name."""
    if url.startswith("sqlite:"):
        from hookline.store.sqlite.outbox.foreign import SqliteForeignOutbox

        return database_url.name(url), SqliteForeignOutbox(url.removeprefix("sqlite:///"))
    from hookline.store.postgres.outbox.foreign import PostgresForeignOutbox

    return database_url.name(url), PostgresForeignOutbox(url)


def audit_of(clock: Clock | None = None) -> Audit:
    """What makes entries of the audit trail, for code that runs no hookline."""
    clock = clock or SystemClock()
    return Audit(clock, Ids(clock, Random()))


def key_admin(store: Store, clock: Clock | None = None) -> KeyAdmin:
    """The admin of API keys, for code that runs no hookline."""
    clock = clock or SystemClock()
    return KeyAdmin(store, clock, Ids(clock, Random()))


def tls_contexts(settings: Settings) -> TlsContexts | None:
    """The TLS contexts of requests, where they are not the usual ones; `ConfigError` if `ca_file` cannot be used."""
    return None if settings.ca_file is None else TlsContexts(trusting(read_authorities(settings.ca_file)))


def _mailer(settings: Settings, clock: Clock) -> Mailer | None:
    if settings.smtp_host is None:
        return None
    return Mailer(
        MailSettings(
            host=settings.smtp_host,
            port=settings.smtp_port,
            tls=settings.smtp_tls,
            username=settings.smtp_username,
            password=settings.smtp_password,
            sender=settings.mail_from or f"hookline@{settings.smtp_host}",
        ),
        clock,
    )


def _store_time(moment: datetime, *, now: float) -> float | None:
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise Invalid("deliver_at is a datetime with a zone.", pointer="/deliver_at")
    at = moment.timestamp()
    if not rfc3339.can_be_shown(at):  # its zone can carry a moment out of the range
        raise Invalid("deliver_at lies in the years 1 to 9999.", pointer="/deliver_at")
    if at > now + 365 * 86_400:
        raise Invalid("deliver_at lies at most 365 days ahead.", pointer="/deliver_at")
    return at
