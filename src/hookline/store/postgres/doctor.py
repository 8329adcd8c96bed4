"""Reads what `hookline doctor` needs of a PostgreSQL, without changing it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg

from hookline.errors import HooklineError, SchemaMissing
from hookline.model import Account
from hookline.store import spoiled_rows
from hookline.store.account_row import notify_of
from hookline.store.contract import JobKind
from hookline.store.contract.doctor import (
    HOUR,
    MOST_COUNTED,
    NOTIFIED,
    PLAIN,
    REFUSED,
    SEAL,
    SEALED,
    SOURCES,
    Examination,
    Holder,
    OpenCircuit,
    Waiting,
)
from hookline.store.contract.figures import Snapshot
from hookline.store.postgres import columns, sql
from hookline.store.postgres.access.keys import LIST_KEYS, read_key
from hookline.store.postgres.driver import session
from hookline.store.postgres.driver.faults import translated, while_connecting
from hookline.store.postgres.event_types import EVENT_TYPES, read_event_type
from hookline.store.postgres.figures import OLDEST_DUE, SNAPSHOTS
from hookline.store.postgres.installation import READ_ACCOUNTS, read_account
from hookline.store.postgres.jobs import read_job
from hookline.store.postgres.measuring.alerts import LIST_ALERTS, read_alert
from hookline.store.postgres.migrations import schema
from hookline.store.postgres.workers import read_worker

T = TypeVar("T")

# A person waits, and a locked table must not keep them: the lock and its holder are what they came for.
CONNECT_S = 2.0
LOCK_S = 0.2
QUESTION_S = 1.0
ALL_S = 1.5  # after which nothing more is asked
# What is read of the tables, which is not asked unless they are known to be those of this version.
IN_TABLES = ("secrets", "endpoints", "workers", "circuits", "deliveries that are due", "dead letters")
FACTS = """
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int / 10000 AS major,
  pg_is_in_recovery() AS standby, current_setting('fsync') AS fsync,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('full_page_writes') AS full_page_writes,
  extract(epoch FROM clock_timestamp())::float8 AS now
"""
# What is left for an ordinary user; `reserved_connections` exists in PostgreSQL 16 and later.
CONNECTIONS = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
  - coalesce(current_setting('reserved_connections', true), '0')::int
"""
MAY_CREATE = """
SELECT has_database_privilege(current_database(), 'CREATE') AS may_create,
  quote_ident(current_database()) AS database, quote_ident(current_user) AS user
"""
# Of the outbox less is needed: see outbox/examination.py.
MISSING_RIGHTS = """
SELECT p.name || ' on ' || c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS p (name)
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND c.relname NOT IN ('schema_migrations', 'outbox')
  AND NOT has_table_privilege(c.oid, p.name)
ORDER BY c.relname, p.name
"""
COUNT_DUE = """
SELECT count(*) FROM (
  SELECT FROM lanes l CROSS JOIN LATERAL (
    SELECT due_at FROM deliveries WHERE endpoint_id = l.endpoint_id AND state = 'pending' AND queue = 'ready'
    UNION ALL
    SELECT due_at FROM deliveries WHERE endpoint_id = l.endpoint_id AND state = 'pending' AND queue = 'timed'
  ) d
  WHERE NOT l.paused AND l.hold_until <= to_timestamp($1) AND d.due_at <= to_timestamp($1) LIMIT $2) due
"""


COUNT_DEAD = """
SELECT count(*) FROM (
  SELECT FROM deliveries WHERE state = 'dead' AND done_at >= to_timestamp($1) LIMIT $2) dead
"""
CIRCUITS = """
SELECT endpoint_id, reason, date_part('epoch', probe_at) AS probe_at FROM lanes WHERE circuit <> 'closed'
ORDER BY endpoint_id LIMIT $1
"""
# Locks that keep a publish or a settle waiting. This reads no table of hookline's, so it never waits itself.
LOCKS = """
SELECT c.relname::text AS what, l.pid, a.application_name::text AS name,
  extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND c.relnamespace = to_regnamespace('hookline') AND c.relkind IN ('r', 'p')
  AND l.pid IS DISTINCT FROM pg_backend_pid()
  AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
ORDER BY a.xact_start NULLS FIRST, c.relname
"""


async def examine(url: str) -> Examination:
    """The facts; raises hookline's errors when the server cannot be reached or refuses us."""
    with translated():
        with while_connecting(url):
            connection = await asyncpg.connect(
                url,
                timeout=CONNECT_S,
                command_timeout=QUESTION_S + 0.5,
                server_settings={
                    "application_name": "hookline doctor",
                    "search_path": session.SCHEMA,
                    "enable_seqscan": "off",  # pending rows are found by their indexes, however old the statistics
                    "lock_timeout": f"{LOCK_S * 1e3:.0f}",
                    "statement_timeout": f"{QUESTION_S * 1e3:.0f}",
                },
            )
        try:
            await session.use_plain_ids(connection)
            return await _examine(connection, _SessionQuestions(connection))
        finally:
            connection.terminate()  # a close would wait for an answer


class _SessionQuestions:
    """Asks within limits; a question without an answer in time is named and left."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._time = asyncio.get_running_loop().time
        self._until = self._time() + ALL_S
        self.unanswered: list[str] = []

    async def rows(self, about: str, statement: str, *values: object) -> list[Any]:
        """The rows; none if the time was not enough."""
        found: list[Any] | None = await self.answer(about, lambda: self._connection.fetch(statement, *values))
        return found or []

    async def answer(self, about: str, ask: Callable[[], Awaitable[T]]) -> T | None:
        """The answer; None if the time was not enough."""
        if self._time() < self._until:
            try:
                return await ask()
            except (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError, TimeoutError):
                pass
        self.unanswered.append(about)
        return None


async def _examine(connection: Any, questions: _SessionQuestions) -> Examination:
    found = await connection.fetchrow(FACTS)
    connections = await connection.fetchval(CONNECTIONS)
    # First what needs no table: it says who locks them.
    holders = await questions.rows("locks", LOCKS)
    snapshots = await questions.rows("snapshots", SNAPSHOTS)
    schemas = await questions.answer("schema", lambda: _schema(connection))
    missing = tuple(row[0] for row in await questions.rows("rights", MISSING_RIGHTS, session.SCHEMA))
    wrong = None if schemas is None else schemas[0]
    is_readable = schemas is not None and wrong is None and not missing
    if schemas is None:
        questions.unanswered += IN_TABLES
    contents = await _contents(questions, now=found["now"]) if is_readable else {}
    return Examination(
        server=f"PostgreSQL {found['version'].split()[0]}",
        now=found["now"],
        settings={name: found[name] for name in ("fsync", "synchronous_commit", "full_page_writes")},
        unsafe=_refusal(found),
        schema=wrong,
        missing_rights=missing,
        connections=connections,
        needed_connections=session.MOST_SESSIONS,
        holders=tuple(Holder(**{**row, "name": row["name"] or ""}) for row in holders),
        snapshots=tuple(Snapshot(**{**row, "name": row["name"] or ""}) for row in snapshots),
        **contents,
        unanswered=tuple(questions.unanswered),
    )


async def _contents(questions: _SessionQuestions, *, now: float) -> dict[str, Any]:
    seals = await questions.rows("secrets", SEAL)
    sealed = await questions.rows("secrets", SEALED)
    plain = await questions.rows("secrets", PLAIN)
    notified = await questions.rows("secrets", NOTIFIED)
    endpoints = await questions.rows("endpoints", sql.LIST_ENDPOINTS, None, None, None, MOST_COUNTED)
    with spoiled_rows.noted() as spoiled:
        found = await questions.rows("workers", sql.PULSE_WORKERS)
        workers = [read_worker(row) for row in found if row["id"] is not None]
        described = await questions.rows("event types", EVENT_TYPES, "", MOST_COUNTED)
        types = [read_event_type(row) for row in described]
        for about, statement, values, read in (
            ("keys", LIST_KEYS, (None, MOST_COUNTED), read_key),
            ("accounts", READ_ACCOUNTS, ("", MOST_COUNTED), read_account),
            ("replays", sql.LIST_JOBS, (JobKind.REPLAY, None, MOST_COUNTED, None), read_job),
            ("discards", sql.LIST_JOBS, (JobKind.DISCARD, None, MOST_COUNTED, None), read_job),
            ("alerts", LIST_ALERTS, (None, None, None, None, None, MOST_COUNTED), read_alert),
        ):
            for row in await questions.rows(about, statement, *values):
                read(row)
    circuits = await questions.rows("circuits", CIRCUITS, MOST_COUNTED)
    since = await questions.rows("deliveries that are due", OLDEST_DUE, now)
    waiting = None
    if since and since[0][0] is not None:
        due = await questions.rows("deliveries that are due", COUNT_DUE, now, MOST_COUNTED)
        waiting = Waiting(deliveries=due[0][0] if due else 1, since=since[0][0])
    dead = await questions.rows("dead letters", COUNT_DEAD, now - HOUR, MOST_COUNTED)
    refused = await questions.rows("outboxes", REFUSED)
    sources = await questions.rows("outboxes", SOURCES)
    return {
        "seal": seals[0][0] if seals else "",
        "sealed": tuple((row["id"], row["secret"]) for row in sealed),
        "plain": plain[0][0] if plain else 0,
        "notified": tuple(Account(id=row["id"], notify=notify_of(row["notify"])) for row in notified),
        "endpoints": tuple(columns.read_endpoints(endpoints)),
        "workers": tuple(workers),
        "event_types": tuple(spoiled_rows.read_all(types)),
        "spoiled": tuple(spoiled),
        "waiting": waiting,
        "circuits": tuple(
            OpenCircuit(endpoint_id=row["endpoint_id"], reason=row["reason"] or "", probe_at=row["probe_at"])
            for row in circuits
        ),
        "dead_last_hour": dead[0][0] if dead else 0,
        "refused": refused[0][0] if refused else 0,
        "sources": tuple(row["name"] for row in sources),
    }


def _refusal(found: Any) -> str | None:
    try:
        session.judge(found, unsafe=False)
    except HooklineError as error:
        return str(error)
    return None


async def _unmade(connection: Any) -> str | None:
    found = await connection.fetchrow(MAY_CREATE)
    if found["may_create"]:
        return None
    return (
        f"The database has no tables of hookline's yet, and the user {found['user']} lacks CREATE on it: "
        f"GRANT CREATE ON DATABASE {found['database']} TO {found['user']}; then run `hookline migrate`."
    )


async def _schema(connection: Any) -> tuple[str | None]:
    """What is wrong with it, if anything; in a tuple, because no answer is something else."""
    try:
        await schema.refuse_unless_usable(connection)
    except SchemaMissing as error:
        return (await _unmade(connection) or str(error),)
    except HooklineError as error:
        return (str(error),)
    return (None,)
