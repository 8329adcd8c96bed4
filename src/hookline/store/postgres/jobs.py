"""Replays or discards many dead letters in steps, on PostgreSQL.

A step and its progress are one transaction. If a process dies between two steps, any other process continues the job,
and no letter is processed twice.
"""

from functools import partial
from typing import Any

from hookline.model import AuditEntry, DeliveryId, JobId
from hookline.store import job_row
from hookline.store.contract.jobs import Job, JobKind, JobStep
from hookline.store.postgres import sql
from hookline.store.postgres.access.audit import note_audit
from hookline.store.postgres.deliveries import PostgresDeliveries, tell_owners
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import in_transaction
from hookline.store.postgres.driver.values import json_text
from hookline.store.postgres.lists.deliveries import dead_ahead, dead_to_pick

_MOVES = {JobKind.REPLAY: sql.REDRIVE_THESE, JobKind.DISCARD: sql.DISCARD_THESE}
_AHEAD = 5_000  # dead letters read in one step: a filter that matches few of them must not make it long
_ANY_TIME = float("inf")


class PostgresJobs(PostgresDeliveries):
    """The contract's verbs about jobs."""

    async def create_job(self, job: Job, *, now: float, audit: AuditEntry | None = None) -> Job:
        """See the contract."""
        if found := await self._general.fetch(sql.FIRST_JOB, *_key_of(job)):
            return read_job(found[0])
        # Counted before, in steps: a transaction that waits for the count would last too long.
        matched = len(set(job.ids)) or await self._count_dead(job.filter, before=job.created_at)
        return await self._general.transaction(partial(_create, job=job, matched=matched, audit=audit))

    @in_transaction
    async def advance_job(
        self, connection: Connection, job: JobId, *, limit: int, now: float
    ) -> JobStep | None:
        """See the contract."""
        row = await connection.fetchrow(sql.LOCK_JOB, job)
        if row is None:
            return None
        found, cursor = read_job(row), row["cursor"]
        if found.reason is not None:
            await connection.fetch(sql.FAIL_JOB, job, found.reason, now)
            return JobStep(read_job(await connection.fetchrow(sql.READ_JOB, job)))
        if found.ids:
            left = [delivery for delivery in found.ids if cursor is None or delivery > cursor]
            picked, is_last = left[:limit], len(left) <= limit
            cursor = picked[-1] if picked else cursor
        else:
            picked, cursor, is_last = await _pick(connection, found, cursor, limit=limit)
        before = _ANY_TIME if found.ids else found.created_at
        mine = picked
        if found.ids and found.account is not None:
            mine = [row["id"] for row in await connection.fetch(sql.OWN_OF_THESE, picked, found.account)]
        moved = await connection.fetch(_MOVES[found.kind], mine, now, before)
        lanes = {row["endpoint_id"] for row in moved}
        failed = len(picked) - len(moved) if found.ids else 0
        await connection.fetch(sql.ADVANCE_JOB, job, cursor, len(moved), failed, is_last, now)
        await tell_owners(connection, lanes, now=now)
        advanced = read_job(await connection.fetchrow(sql.READ_JOB, job))
        return JobStep(advanced, tuple(sorted(lanes)) if found.kind is JobKind.REPLAY else ())

    async def fail_job(self, job: JobId, *, reason: str, now: float) -> bool:
        """See the contract."""
        return bool(await self._general.fetch(sql.FAIL_JOB, job, reason, now))

    async def running_jobs(self) -> list[JobId]:
        """See the contract."""
        return [row["id"] for row in await self._general.fetch(sql.RUNNING_JOBS)]

    async def job(self, job: JobId) -> Job | None:
        """See the contract."""
        found = await self._general.fetch(sql.READ_JOB, job)
        return read_job(found[0]) if found else None

    async def list_jobs(
        self, kind: JobKind, *, account: str | None = None, after: JobId | None, limit: int
    ) -> list[Job]:
        """See the contract."""
        return [
            read_job(row) for row in await self._general.fetch(sql.LIST_JOBS, kind, after, limit, account)
        ]


def _key_of(job: Job) -> tuple[Any, ...]:
    """What a repeated request shares with the first one."""
    return job.id, job.kind, job.idempotency_key, job.account or ""


async def _create(connection: Connection, job: Job, *, matched: int, audit: AuditEntry | None) -> Job:
    await connection.fetch(sql.CREATE_JOB, *job_columns(job), matched, job.created_at)
    # Read again: another process may have been faster with the same key.
    first = read_job(await connection.fetchrow(sql.FIRST_JOB, *_key_of(job)))
    if first.id == job.id:
        await note_audit(connection, audit)
    return first


async def _pick(
    connection: Connection, job: Job, cursor: DeliveryId | None, *, limit: int
) -> tuple[list[DeliveryId], DeliveryId | None, bool]:
    """The letters of this step, how far it looked, and whether nothing is left after that."""
    ahead = max(limit, _AHEAD)
    statement, values = dead_ahead(job.filter, after=cursor, limit=ahead)
    looked = await connection.fetchrow(statement, *values)
    if looked["last"] is None:
        return [], cursor, True
    statement, values = dead_to_pick(
        job.filter, before=job.created_at, after=cursor, last=looked["last"], limit=limit
    )
    picked = [row["id"] for row in await connection.fetch(statement, *values)]
    if len(picked) == limit:
        return picked, picked[-1], False
    return picked, looked["last"], looked["looked_at"] < ahead


def job_columns(job: Job) -> list[Any]:
    """The first values of CREATE_JOB."""
    return [
        job.id,
        job.kind,
        json_text(job.filter),
        sorted(set(job.ids)),
        job.account or "",
        job.idempotency_key,
        job.digest,
    ]


def read_job(row: Any) -> Job:
    return job_row.read({name: row[name] for name in Job.__struct_fields__})
