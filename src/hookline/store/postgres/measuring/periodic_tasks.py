"""Gives a periodic task to one process at a time on PostgreSQL.

A verb that carries out a task is one transaction: it claims the task's row, does the work, and moves the row on. Others
pass over a locked row. If the connection of the holder is cut, the row is free at once. If the holder stops answering,
the server ends its session after `session.TASKS`' idle time.
"""

from hookline.store.postgres.driver.pool import Connection

CLAIM_TASK = """
SELECT name FROM periodic_tasks WHERE name = $1 AND next_at <= to_timestamp($2) FOR UPDATE SKIP LOCKED
"""
# A row that exists is read without waiting for its holder.
ADD_TASK = """
INSERT INTO periodic_tasks (name) SELECT $1 WHERE NOT EXISTS (SELECT FROM periodic_tasks WHERE name = $1)
ON CONFLICT (name) DO NOTHING RETURNING name
"""
MOVE_TASK = "UPDATE periodic_tasks SET next_at = to_timestamp($2) WHERE name = $1"


async def claim(connection: Connection, name: str, *, now: float) -> bool:
    """Whether the task is due and this transaction has it now."""
    if await connection.fetch(CLAIM_TASK, name, now):
        return True
    return bool(await connection.fetch(ADD_TASK, name))


async def move_on(connection: Connection, name: str, *, next_at: float) -> None:
    """Say when the task is due again; it is free at the end of the transaction."""
    await connection.fetch(MOVE_TASK, name, next_at)
