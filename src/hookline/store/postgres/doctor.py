"""Reads what `hookline doctor` needs of a PostgreSQL, without changing it."""

from typing import Any

import asyncpg

from hookline.errors import HooklineError, SchemaMissing
from hookline.store.contract.doctor import MOST_COUNTED, PLAIN, SEAL, SEALED, Examination, Waiting
from hookline.store.postgres import columns, sql
from hookline.store.postgres.driver import session
from hookline.store.postgres.driver.faults import translated, while_connecting
from hookline.store.postgres.figures import OLDEST_DUE
from hookline.store.postgres.migrations import schema
from hookline.store.postgres.workers import read_worker

COUNT_TIMEOUT = 30.0  # many lanes take time; that does not mean that the server does not answer
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
MISSING_RIGHTS = """
SELECT p.name || ' on ' || c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS p (name)
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND c.relname <> 'schema_migrations'
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


async def examine(url: str) -> Examination:
    """The facts; raises hookline's errors when the server cannot be reached or refuses us."""
    with translated():
        with while_connecting(url):
            connection = await asyncpg.connect(
                url,
                timeout=session.CONNECT_TIMEOUT,
                command_timeout=session.CONNECT_TIMEOUT,
                server_settings={
                    "application_name": "hookline doctor",
                    "search_path": session.SCHEMA,
                    "enable_seqscan": "off",  # pending rows are found by their indexes, however old the statistics
                },
            )
        try:
            await session.use_plain_ids(connection)
            found = await connection.fetchrow(FACTS)
            wrong = await _schema(connection)
            missing = tuple(row[0] for row in await connection.fetch(MISSING_RIGHTS, session.SCHEMA))
            is_readable = wrong is None and not missing
            return Examination(
                server=f"PostgreSQL {found['version'].split()[0]}",
                now=found["now"],
                settings={name: found[name] for name in ("fsync", "synchronous_commit", "full_page_writes")},
                unsafe=_refusal(found),
                schema=wrong,
                missing_rights=missing,
                connections=await connection.fetchval(CONNECTIONS),
                needed_connections=session.MOST_SESSIONS,
                **(await _contents(connection, now=found["now"]) if is_readable else {}),
            )
        finally:
            await connection.close(timeout=session.CONNECT_TIMEOUT)


async def _contents(connection: Any, *, now: float) -> dict[str, Any]:
    since = await connection.fetchval(OLDEST_DUE, now, timeout=COUNT_TIMEOUT)
    waiting = None
    if since is not None:
        deliveries = await connection.fetchval(COUNT_DUE, now, MOST_COUNTED, timeout=COUNT_TIMEOUT)
        waiting = Waiting(deliveries=deliveries, since=since)
    return {
        "seal": await connection.fetchval(SEAL) or "",
        "sealed": tuple((row["id"], row["secret"]) for row in await connection.fetch(SEALED)),
        "plain": await connection.fetchval(PLAIN),
        "endpoints": tuple(
            columns.read_endpoints(await connection.fetch(sql.LIST_ENDPOINTS, None, None, None, MOST_COUNTED))
        ),
        "workers": tuple(
            read_worker(row) for row in await connection.fetch(sql.PULSE_WORKERS) if row["id"] is not None
        ),
        "waiting": waiting,
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


async def _schema(connection: Any) -> str | None:
    try:
        await schema.refuse_unless_usable(connection)
    except SchemaMissing as error:
        return await _unmade(connection) or str(error)
    except HooklineError as error:
        return str(error)
    return None
