"""Replays or discards many dead letters in steps, on SQLite.

A step and its progress are one transaction. If a process dies between two steps, the next process continues the job,
and no letter is processed twice.
"""

import sqlite3
from functools import partial
from typing import Any

from hookline.model import AuditEntry, DeliveryId, JobId
from hookline.store import job_row
from hookline.store.contract.jobs import Job, JobKind, JobStep
from hookline.store.sqlite import sql
from hookline.store.sqlite.access.audit import note_audit
from hookline.store.sqlite.deliveries import SqliteDeliveries, tell_owners
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.connections import on_lister, on_writer
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS, json_text, packed
from hookline.store.sqlite.lists.deliveries import dead_ahead, dead_to_pick

_MOVES = {JobKind.REPLAY: sql.REDRIVE_THESE, JobKind.DISCARD: sql.DISCARD_THESE}
_AHEAD = 5_000  # dead letters read in one step: a filter that matches few of them must not make it long


def is_id(value: object) -> bool:
    """Whether a stored value can be an id."""
    return isinstance(value, bytes) and len(value) == 16


class SqliteJobs(SqliteDeliveries):
    """The contract's verbs about jobs."""

    async def create_job(self, job: Job, *, now: float, audit: AuditEntry | None = None) -> Job:
        """Start a job; if the idempotency key was used before for its kind, the answer is the first job.

        Its letters are counted before, in steps: no other write waits for that.
        """
        if (first := await self._read(partial(_find, job=job))) is not None:
            return first
        matched = len(set(job.ids)) or await self._count_dead(job.filter, before=job.created_at)
        return await self._write(partial(_create, job=job, matched=matched, audit=audit))

    @on_writer
    def advance_job(
        self, connection: sqlite3.Connection, job: JobId, *, limit: int, now: float
    ) -> JobStep | None:
        """Process up to `limit` dead letters of a running job, by id; None when the job is not running."""
        row = connection.execute(sql.LOCK_JOB, {"id": job}).fetchone()
        if row is None:
            return None
        found, cursor = read_job(row), row[-1]
        if found.reason is not None:
            _fail(connection, job, reason=found.reason, now=now)
            return JobStep(_read_again(connection, job))
        if found.ids:
            left = [delivery for delivery in found.ids if cursor is None or delivery > cursor]
            picked, is_last = left[:limit], len(left) <= limit
            cursor = picked[-1] if picked else cursor
        else:
            picked, cursor, is_last = _pick(connection, found, cursor, limit=limit)
        mine = picked
        if found.ids and found.account is not None:
            asked = {"ids": packed(picked), "account": found.account}
            mine = [row[0] for row in connection.execute(sql.OWN_OF_THESE, asked)]
        moved = connection.execute(_MOVES[found.kind], {"ids": packed(mine), "now": now}).fetchall()
        lanes = {row[0] for row in moved}
        progress = {
            "id": job,
            "cursor": cursor,
            "done": len(moved),
            "failed": len(picked) - len(moved) if found.ids else 0,
            "is_last": is_last,
            "now": now,
        }
        connection.execute(sql.ADVANCE_JOB, progress)
        tell_owners(connection, lanes, now=now)
        advanced = _read_again(connection, job)
        return JobStep(advanced, tuple(sorted(lanes)) if found.kind is JobKind.REPLAY else ())

    @on_writer
    def fail_job(self, connection: sqlite3.Connection, job: JobId, *, reason: str, now: float) -> bool:
        """running -> failed, for this reason."""
        return _fail(connection, job, reason=reason, now=now)

    @on_lister
    def running_jobs(self, connection: sqlite3.Connection) -> list[JobId]:
        """Jobs that are not finished, oldest first."""
        # A row by hand may have an id of any type; nobody can ask for such a job, so nobody works on it.
        return [id for (id, *_) in connection.execute(sql.RUNNING_JOBS) if is_id(id)]

    @on_lister
    def job(self, connection: sqlite3.Connection, job: JobId) -> Job | None:
        """One job."""
        row = connection.execute(sql.READ_JOB, {"id": job}).fetchone()
        return None if row is None else read_job(row)

    @on_lister
    def list_jobs(
        self,
        connection: sqlite3.Connection,
        kind: JobKind,
        *,
        account: str | None = None,
        after: JobId | None,
        limit: int,
    ) -> list[Job]:
        """Newest first, from below the id `after`; with an account, only the jobs it asked for."""
        statement = sql.LIST_JOBS if account is None else sql.LIST_JOBS_OF_ACCOUNT
        values = {"kind": kind.value, "account": account, "before": after or ABOVE_ALL_IDS, "limit": limit}
        return [read_job(row) for row in connection.execute(statement, values)]


def _find(connection: sqlite3.Connection, job: Job) -> Job | None:
    """The job with this one's id, or with its idempotency key."""
    values = job_values(job)
    key = {name: values[name] for name in ("id", "account", "kind", "key")}
    row = connection.execute(sql.FIRST_JOB, key).fetchone()
    return None if row is None else read_job(row)


def _create(connection: sqlite3.Connection, job: Job, *, matched: int, audit: AuditEntry | None) -> Job:
    if (first := _find(connection, job)) is not None:
        return first
    connection.execute(sql.CREATE_JOB, job_values(job) | {"matched": matched})
    note_audit(connection, audit)
    return _read_again(connection, job.id)


def _read_again(connection: sqlite3.Connection, id: JobId) -> Job:
    return read_job(connection.execute(sql.READ_JOB, {"id": id}).fetchone())


def _fail(connection: sqlite3.Connection, id: JobId, *, reason: str, now: float) -> bool:
    return connection.execute(sql.FAIL_JOB, {"id": id, "reason": reason, "now": now}).rowcount == 1


def _pick(
    connection: sqlite3.Connection, job: Job, cursor: DeliveryId | None, *, limit: int
) -> tuple[list[DeliveryId], DeliveryId | None, bool]:
    """The letters of this step, how far it looked, and whether nothing is left after that."""
    ahead = max(limit, _AHEAD)
    looked_at, last = connection.execute(*dead_ahead(job.filter, after=cursor, limit=ahead)).fetchone()
    if last is None:
        return [], cursor, True
    statement = dead_to_pick(job.filter, before=job.created_at, after=cursor, last=last, limit=limit)
    picked = [row[0] for row in connection.execute(*statement)]
    if len(picked) == limit:
        return picked, picked[-1], False
    return picked, last, looked_at < ahead


def job_values(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind.value,
        "filter": json_text(job.filter),
        "ids": packed(sorted(set(job.ids))),
        "account": job.account or "",
        "key": job.idempotency_key,
        "digest": job.digest,
        "created_at": job.created_at,
    }


def read_job(row: Row) -> Job:
    (
        id,
        kind,
        filter,
        ids,
        account,
        key,
        digest,
        state,
        matched,
        done,
        failed,
        created_at,
        finished_at,
        reason,
        _,
    ) = row
    values = {
        "id": id,
        "kind": kind,
        "filter": filter,
        "ids": _taken_apart(ids),
        "account": account,
        "idempotency_key": key,
        "digest": digest,
        "state": state,
        "matched": matched,
        "done": done,
        "failed": failed,
        "created_at": created_at,
        "finished_at": finished_at,
        "reason": reason,
    }
    return job_row.read(values)


def _taken_apart(ids: object) -> object:
    if not isinstance(ids, bytes) or len(ids) % 16:
        return ids
    return tuple(ids[start : start + 16] for start in range(0, len(ids), 16))
