"""Replays or discards many dead letters in steps, on PostgreSQL.

A step and its progress are one transaction. If a process dies between two steps, any other process continues the job,
and no letter is processed twice.
"""

from typing import Any

from hookline.model import DeliveryId, JobId
from hookline.store.contract import Job, JobKind, JobStep
from hookline.store.postgres import lists, operators, rows, sql
from hookline.store.postgres.driver.links import Connection

_MOVES = {JobKind.REPLAY: sql.REDRIVE_THESE, JobKind.DISCARD: sql.DISCARD_THESE}
_AHEAD = 5_000  # dead letters read in one step: a filter that matches few of them must not make it long
_ANY_TIME = float("inf")


def key_of(job: Job) -> tuple[Any, ...]:
    """What a repeated request shares with the first one."""
    return job.id, job.kind, job.idempotency_key, job.account or ""


async def create(connection: Connection, job: Job, *, matched: int) -> Job:
    await connection.fetch(sql.CREATE_JOB, *rows.job_columns(job), matched, job.created_at)
    # Read again: another process may have been faster with the same key.
    return rows.job(await connection.fetchrow(sql.FIRST_JOB, *key_of(job)))


async def advance(connection: Connection, id: JobId, *, limit: int, now: float) -> JobStep | None:
    row = await connection.fetchrow(sql.LOCK_JOB, id)
    if row is None:
        return None
    job, cursor = rows.job(row), row["cursor"]
    if job.reason is not None:
        await connection.fetch(sql.FAIL_JOB, id, job.reason, now)
        return JobStep(rows.job(await connection.fetchrow(sql.READ_JOB, id)))
    if job.ids:
        left = [delivery for delivery in job.ids if cursor is None or delivery > cursor]
        picked, is_last = left[:limit], len(left) <= limit
        cursor = picked[-1] if picked else cursor
    else:
        picked, cursor, is_last = await _pick(connection, job, cursor, limit=limit)
    before = _ANY_TIME if job.ids else job.created_at
    mine = picked
    if job.ids and job.account is not None:
        mine = [row["id"] for row in await connection.fetch(sql.OWN_OF_THESE, picked, job.account)]
    moved = await connection.fetch(_MOVES[job.kind], mine, now, before)
    lanes = {row["endpoint_id"] for row in moved}
    failed = len(picked) - len(moved) if job.ids else 0
    await connection.fetch(sql.ADVANCE_JOB, id, cursor, len(moved), failed, is_last, now)
    await operators.tell_owners(connection, lanes, now=now)
    advanced = rows.job(await connection.fetchrow(sql.READ_JOB, id))
    return JobStep(advanced, tuple(sorted(lanes)) if job.kind is JobKind.REPLAY else ())


async def _pick(
    connection: Connection, job: Job, cursor: DeliveryId | None, *, limit: int
) -> tuple[list[DeliveryId], DeliveryId | None, bool]:
    """The letters of this step, how far it looked, and whether nothing is left after that."""
    ahead = max(limit, _AHEAD)
    statement, values = lists.dead_ahead(job.filter, after=cursor, limit=ahead)
    looked = await connection.fetchrow(statement, *values)
    if looked["last"] is None:
        return [], cursor, True
    statement, values = lists.dead_to_pick(
        job.filter, before=job.created_at, after=cursor, last=looked["last"], limit=limit
    )
    picked = [row["id"] for row in await connection.fetch(statement, *values)]
    if len(picked) == limit:
        return picked, picked[-1], False
    return picked, looked["last"], looked["looked_at"] < ahead
