"""Defines what a store must do.

One verb is one transaction. Every verb takes `now`, the store's time as its caller tracks it. Verbs raise
`StoreUnavailable` when the database does not answer (the write may or may not be committed then, and every verb here
may be repeated with the same arguments), `StorageFull` when its disk is full, `StoreRefused` when it must not be used
at all, and `RowRefused` when it accepts writes but not this one. Neither store is the reference: the contract tests
are.

docs/lanes.md explains the words TAKE, LOAD, SETTLE, RELEASE, WAKE, BURY, FREE, SWEEP, BEAT and PULSE, with the
interleavings behind each rule.
"""

from typing import Protocol

from hookline.store.contract.accept import Acceptance, AcceptStore, EventFanout, Prior
from hookline.store.contract.access.audit import AuditFilter, AuditStore
from hookline.store.contract.access.keys import KeyStore
from hookline.store.contract.access.sessions import SessionStore
from hookline.store.contract.deliveries import DeliveryFilter, DeliveryStore
from hookline.store.contract.endpoints import EndpointSnapshot, EndpointStore
from hookline.store.contract.event_types import EventTypeStore
from hookline.store.contract.events import EventStore
from hookline.store.contract.figures import Bloat, Conservation, FiguresStore, Snapshot
from hookline.store.contract.id_ranges import IdRangeStore
from hookline.store.contract.installation import InstallationStore
from hookline.store.contract.jobs import UNREADABLE_JOB, Job, JobKind, JobState, JobStep, JobStore
from hookline.store.contract.lanes import (
    GONE,
    INLINE_PAYLOAD_BYTES,
    SWEEP_CHUNK,
    LaneNote,
    LaneRow,
    LaneStore,
    Loaded,
    Release,
    Settlement,
    Suspect,
    Taken,
    Verdict,
    Want,
)
from hookline.store.contract.measuring.alerts import AlertFilter, AlertStore
from hookline.store.contract.measuring.announcements import Announcement, AnnouncementStore, NotificationRow
from hookline.store.contract.measuring.board import BoardStore
from hookline.store.contract.measuring.deaths import DeathStore
from hookline.store.contract.measuring.flow import FlowStore
from hookline.store.contract.measuring.health import EndpointCounts, HealthSample, HealthStore
from hookline.store.contract.measuring.latency import (
    EVERY_ENDPOINT,
    LatencyCell,
    LatencyDay,
    LatencyLog,
    LatencyMath,
    LatencyPart,
    LatencySlice,
    LatencyStore,
    LoggedBatch,
)
from hookline.store.contract.measuring.people import DueNotification, PeopleStore
from hookline.store.contract.measuring.status import StatusStore
from hookline.store.contract.notify import MOST_LANES, Notification, NotificationStore
from hookline.store.contract.outbox import (
    OWN_SOURCE,
    LookRequest,
    OutboxBacklog,
    OutboxHead,
    OutboxStore,
    OutboxTable,
    RefusedCount,
    RefusedFilter,
    RefusedRow,
    RowPlace,
    SourceRow,
    WaitingRow,
)
from hookline.store.contract.retention import Pruned, RetentionStore
from hookline.store.contract.slow_verbs import SlowVerbs
from hookline.store.contract.workers import (
    FREE_CHUNK,
    NO_ENDPOINT,
    Change,
    Load,
    Pulse,
    WorkerRow,
    WorkerStatusRow,
    WorkerStore,
)

__all__ = [
    "EVERY_ENDPOINT",
    "FREE_CHUNK",
    "GONE",
    "INLINE_PAYLOAD_BYTES",
    "MOST_LANES",
    "NO_ENDPOINT",
    "OWN_SOURCE",
    "SWEEP_CHUNK",
    "UNREADABLE_JOB",
    "Acceptance",
    "AlertFilter",
    "Announcement",
    "AuditFilter",
    "Bloat",
    "Change",
    "Conservation",
    "DeliveryFilter",
    "DueNotification",
    "EndpointCounts",
    "EndpointSnapshot",
    "EventFanout",
    "HealthSample",
    "Job",
    "JobKind",
    "JobState",
    "JobStep",
    "LaneNote",
    "LaneRow",
    "LatencyCell",
    "LatencyDay",
    "LatencyLog",
    "LatencyMath",
    "LatencyPart",
    "LatencySlice",
    "Load",
    "Loaded",
    "LoggedBatch",
    "LookRequest",
    "Notification",
    "NotificationRow",
    "OutboxBacklog",
    "OutboxHead",
    "OutboxTable",
    "Prior",
    "Pruned",
    "Pulse",
    "RefusedCount",
    "RefusedFilter",
    "RefusedRow",
    "Release",
    "RowPlace",
    "Settlement",
    "SlowVerbs",
    "Snapshot",
    "SourceRow",
    "Store",
    "Suspect",
    "Taken",
    "Verdict",
    "WaitingRow",
    "Want",
    "WorkerRow",
    "WorkerStatusRow",
]


class Store(
    AcceptStore,
    LaneStore,
    WorkerStore,
    EndpointStore,
    DeliveryStore,
    JobStore,
    EventStore,
    EventTypeStore,
    KeyStore,
    SessionStore,
    AuditStore,
    IdRangeStore,
    InstallationStore,
    FiguresStore,
    DeathStore,
    AlertStore,
    HealthStore,
    StatusStore,
    BoardStore,
    FlowStore,
    RetentionStore,
    NotificationStore,
    LatencyStore,
    AnnouncementStore,
    PeopleStore,
    OutboxStore,
    Protocol,
):
    """Everything durable."""

    slow_verbs: SlowVerbs  # a process that runs on sets its limit
    exclusive: bool  # one process serves this database: the row of any other worker belongs to a dead one

    async def migrate(self) -> list[str]:
        """Bring the schema up to date, safely beside others doing the same; the names of the applied migrations."""

    async def outstanding(self) -> list[str]:
        """The migrations that `migrate` would apply; changes nothing."""

    async def open(self, *, serve: bool = True) -> None:
        """Connect; refuse an unsafe or foreign database. `serve` claims an SQLite file for this process."""

    async def close(self) -> None:
        """Finish the work handed in and close every connection."""
