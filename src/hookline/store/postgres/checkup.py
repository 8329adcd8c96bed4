"""What does a doctor see of a PostgreSQL, without changing it?"""

from typing import Any

import asyncpg

from hookline.errors import HooklineError
from hookline.store.checkup import Examined
from hookline.store.postgres import schema, session
from hookline.store.postgres.faults import translated

FACTS = """
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int / 10000 AS major,
  pg_is_in_recovery() AS standby, current_setting('fsync') AS fsync,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('full_page_writes') AS full_page_writes,
  extract(epoch FROM clock_timestamp())::float8 AS now
"""
MISSING_RIGHTS = """
SELECT p.name || ' on ' || c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS p (name)
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND c.relname <> 'schema_migrations'
  AND NOT has_table_privilege(c.oid, p.name)
ORDER BY c.relname, p.name
"""


async def examine(url: str) -> Examined:
    """The facts; raises hookline's errors when it cannot be reached or will not let us in."""
    with translated():
        connection = await asyncpg.connect(
            url,
            timeout=session.CONNECT_TIMEOUT,
            command_timeout=session.CONNECT_TIMEOUT,
            server_settings={"application_name": "hookline doctor", "search_path": session.SCHEMA},
        )
        try:
            found = await connection.fetchrow(FACTS)
            return Examined(
                server=f"PostgreSQL {found['version'].split()[0]}",
                now=found["now"],
                settings={name: found[name] for name in ("fsync", "synchronous_commit", "full_page_writes")},
                unsafe=_refusal(found),
                schema=await _schema(connection),
                missing_rights=tuple(
                    row[0] for row in await connection.fetch(MISSING_RIGHTS, session.SCHEMA)
                ),
            )
        finally:
            await connection.close(timeout=session.CONNECT_TIMEOUT)


def _refusal(found: Any) -> str | None:
    try:
        session.judge(found, unsafe=False)
    except HooklineError as error:
        return str(error)
    return None


async def _schema(connection: Any) -> str | None:
    try:
        await schema.refuse_unless_usable(connection)
    except HooklineError as error:
        return str(error)
    return None
