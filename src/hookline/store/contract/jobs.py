"""Defines how a store keeps jobs, which replay or discard many dead letters.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from enum import StrEnum
from typing import Protocol

import msgspec

from hookline.model import AuditEntry, DeliveryId, EndpointId, JobId
from hookline.store.contract.deliveries import DeliveryFilter

UNREADABLE_JOB = "What it is about cannot be read in the database."


class JobKind(StrEnum):
    """What a job does to every dead letter that matches."""

    REPLAY = "replay"
    DISCARD = "discard"


class JobState(StrEnum):
    """The progress of a job."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A bulk replay or discard of dead letters."""

    id: JobId
    kind: JobKind
    filter: DeliveryFilter  # over dead letters that died before `created_at`
    ids: tuple[DeliveryId, ...] = ()  # instead of the filter, if not empty
    account: str | None = None  # who asked: only this account sees it, and only its letters are changed
    idempotency_key: str | None = None
    digest: bytes = b""
    state: JobState = JobState.RUNNING
    matched: int = 0
    done: int = 0
    failed: int = 0  # of the ids: those that were not dead when their turn came, or belong to another account
    created_at: float
    finished_at: float | None = None
    reason: str | None = None  # why it failed, or must fail: its row cannot be carried out


class JobStep(msgspec.Struct, frozen=True):
    """What one transaction of a job did."""

    job: Job
    lanes: tuple[EndpointId, ...] = ()  # lanes with rows made due: to be woken


class JobStore(Protocol):
    """The verbs about jobs."""

    async def create_job(self, job: Job, *, now: float, audit: AuditEntry | None = None) -> Job:
        """Start a job, with its `matched` counted before.

        If the account used the idempotency key before for this kind, the answer is the first job.
        """

    async def advance_job(self, job: JobId, *, limit: int, now: float) -> JobStep | None:
        """Process up to `limit` dead letters of a running job, by id, in one transaction with its progress.

        None when the job is not running, or another process works on it. A job whose row cannot be read is failed.
        """

    async def fail_job(self, job: JobId, *, reason: str, now: float) -> bool:
        """running -> failed, for this reason; what was done stays done. False when the job is not running."""

    async def running_jobs(self) -> list[JobId]:
        """Jobs that are not finished, oldest first."""

    async def job(self, job: JobId) -> Job | None:
        """One job."""

    async def list_jobs(
        self, kind: JobKind, *, account: str | None = None, after: JobId | None, limit: int
    ) -> list[Job]:
        """Newest first, from below the id `after`; with an account, only the jobs it asked for."""
