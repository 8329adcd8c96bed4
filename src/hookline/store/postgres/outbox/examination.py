"""Reads what `hookline doctor` needs of an outbox in PostgreSQL, without changing it."""

import asyncpg

from hookline.store.contract.doctor import MOST_COUNTED, OUTBOX_COLUMNS, OutboxExamination
from hookline.store.postgres.driver.faults import translated, while_connecting
from hookline.store.postgres.driver.session import OLDEST

CONNECT_S, QUESTION_S = 2.0, 1.0
NEEDED = ("SELECT", "DELETE")

FACTS = """
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int / 10000 AS major,
  to_regnamespace('hookline') IS NOT NULL AND has_schema_privilege('hookline', 'USAGE') AS may_use,
  EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'hookline' AND c.relname = 'outbox' AND c.relkind IN ('r', 'p')) AS has_table
"""
COLUMNS = """
SELECT a.attname::text AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'hookline' AND c.relname = 'outbox' AND a.attnum > 0 AND NOT a.attisdropped
"""
RIGHTS = "SELECT r FROM unnest($1::text[]) AS r WHERE NOT has_table_privilege('hookline.outbox', r)"
BACKLOG = f"""
SELECT (SELECT count(*) FROM (SELECT FROM hookline.outbox LIMIT {MOST_COUNTED}) o) AS waiting,
  (SELECT date_part('epoch', clock_timestamp() - at) FROM hookline.outbox ORDER BY seq LIMIT 1) AS oldest
"""


async def examine_outbox(url: str) -> OutboxExamination:
    """The facts; raises hookline's errors when the server cannot be reached or refuses us."""
    with translated():
        with while_connecting(url):
            connection = await asyncpg.connect(
                url,
                timeout=CONNECT_S,
                command_timeout=QUESTION_S + 0.5,
                server_settings={
                    "application_name": "hookline doctor",
                    "lock_timeout": "200",
                    "statement_timeout": f"{QUESTION_S * 1e3:.0f}",
                },
            )
        try:
            return await _examine(connection)
        finally:
            connection.terminate()  # a close would wait for an answer


async def _examine(connection: "asyncpg.Connection[asyncpg.Record]") -> OutboxExamination:
    facts = await connection.fetchrow(FACTS)
    assert facts is not None  # noqa: S101 - a statement of one row
    server, is_old = f"PostgreSQL {facts['version']}", facts["major"] < OLDEST
    if not facts["has_table"]:
        return OutboxExamination(server=server, is_old=is_old, has_table=False)
    names = {row["name"] for row in await connection.fetch(COLUMNS)}
    columns = tuple(each for each in OUTBOX_COLUMNS if each not in names)
    if not facts["may_use"]:
        rights: tuple[str, ...] = ("USAGE on SCHEMA hookline",)
    else:
        rights = tuple(
            f"{row['r']} on hookline.outbox" for row in await connection.fetch(RIGHTS, list(NEEDED))
        )
    if columns or rights:
        return OutboxExamination(server=server, is_old=is_old, missing_columns=columns, missing_rights=rights)
    backlog = await connection.fetchrow(BACKLOG)
    assert backlog is not None  # noqa: S101 - likewise
    return OutboxExamination(
        server=server, is_old=is_old, waiting=backlog["waiting"], oldest_age_s=backlog["oldest"]
    )
