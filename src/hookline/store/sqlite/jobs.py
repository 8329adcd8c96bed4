"""Replays or discards many dead letters in steps, on SQLite.

A step and its progress are one transaction. If a process dies between two steps, the next process continues the job,
and no letter is processed twice.
"""

import sqlite3

from hookline.model import DeliveryId, JobId
from hookline.store.contract import Job, JobKind, JobStep
from hookline.store.sqlite import lists, operators, sql
from hookline.store.sqlite.rows import job_values, packed, read_job

_MOVES = {JobKind.REPLAY: sql.REDRIVE_THESE, JobKind.DISCARD: sql.DISCARD_THESE}
_AHEAD = 5_000  # dead letters read in one step: a filter that matches few of them must not make it long


def find(connection: sqlite3.Connection, job: Job) -> Job | None:
    """The job with this one's id, or with its idempotency key."""
    values = job_values(job)
    key = {name: values[name] for name in ("id", "account", "kind", "key")}
    row = connection.execute(sql.FIRST_JOB, key).fetchone()
    return None if row is None else read_job(row)


def create(connection: sqlite3.Connection, job: Job, *, matched: int) -> Job:
    if (first := find(connection, job)) is not None:
        return first
    connection.execute(sql.CREATE_JOB, job_values(job) | {"matched": matched})
    created = connection.execute(sql.READ_JOB, {"id": job.id}).fetchone()
    return read_job(created)


def advance(connection: sqlite3.Connection, id: JobId, *, limit: int, now: float) -> JobStep | None:
    row = connection.execute(sql.LOCK_JOB, {"id": id}).fetchone()
    if row is None:
        return None
    job, cursor = read_job(row), row[-1]
    if job.reason is not None:
        fail(connection, id, reason=job.reason, now=now)
        return JobStep(read_job(connection.execute(sql.READ_JOB, {"id": id}).fetchone()))
    if job.ids:
        left = [delivery for delivery in job.ids if cursor is None or delivery > cursor]
        picked, is_last = left[:limit], len(left) <= limit
        cursor = picked[-1] if picked else cursor
    else:
        picked, cursor, is_last = _pick(connection, job, cursor, limit=limit)
    mine = picked
    if job.ids and job.account is not None:
        asked = {"ids": packed(picked), "account": job.account}
        mine = [row[0] for row in connection.execute(sql.OWN_OF_THESE, asked)]
    moved = connection.execute(_MOVES[job.kind], {"ids": packed(mine), "now": now}).fetchall()
    lanes = {row[0] for row in moved}
    progress = {
        "id": id,
        "cursor": cursor,
        "done": len(moved),
        "failed": len(picked) - len(moved) if job.ids else 0,
        "is_last": is_last,
        "now": now,
    }
    connection.execute(sql.ADVANCE_JOB, progress)
    operators.tell_owners(connection, lanes, now=now)
    advanced = read_job(connection.execute(sql.READ_JOB, {"id": id}).fetchone())
    return JobStep(advanced, tuple(sorted(lanes)) if job.kind is JobKind.REPLAY else ())


def fail(connection: sqlite3.Connection, id: JobId, *, reason: str, now: float) -> bool:
    return connection.execute(sql.FAIL_JOB, {"id": id, "reason": reason, "now": now}).rowcount == 1


def _pick(
    connection: sqlite3.Connection, job: Job, cursor: DeliveryId | None, *, limit: int
) -> tuple[list[DeliveryId], DeliveryId | None, bool]:
    """The letters of this step, how far it looked, and whether nothing is left after that."""
    ahead = max(limit, _AHEAD)
    looked_at, last = connection.execute(*lists.dead_ahead(job.filter, after=cursor, limit=ahead)).fetchone()
    if last is None:
        return [], cursor, True
    statement = lists.dead_to_pick(job.filter, before=job.created_at, after=cursor, last=last, limit=limit)
    picked = [row[0] for row in connection.execute(*statement)]
    if len(picked) == limit:
        return picked, picked[-1], False
    return picked, last, looked_at < ahead
