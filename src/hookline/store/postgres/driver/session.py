"""Opens sessions with a server that is safe to use."""

import os
import socket
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import structlog

from hookline.errors import StoreRefused, StoreUnavailable
from hookline.store.postgres.driver.arrays import use_lists
from hookline.store.postgres.driver.faults import while_connecting

log = structlog.get_logger("hookline.store")

SCHEMA = "hookline"
OLDEST, NEWEST = 15, 18  # major versions that the contract suite runs on
CONNECT_TIMEOUT = 4.0
MOST_SESSIONS = 17  # of one process: those of all roles, and the listener's

# `local` is refused although it flushes here: it does not wait for a synchronous standby, which exists so that a
# failover loses nothing. Without a standby `on` costs the same.
DURABLE = ("on", "remote_write", "remote_apply")

# Below the client's own limit, so that the server gives up first and says why.
_SETTINGS = {
    "search_path": SCHEMA,
    "timezone": "UTC",
    "default_transaction_isolation": "read committed",  # whatever the database or the user is set to
    "statement_timeout": "6s",
    "lock_timeout": "4s",
    "idle_in_transaction_session_timeout": "6s",
    "jit": "off",  # our statements are short; compiling one takes longer than running it
    "work_mem": "32MB",  # a batch of large payloads must not go through temporary files
    # A client that vanished loses its locks.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "3",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10s",
}

# Planned once, for all values; no statistics, however old, may turn a lookup into a scan of a whole table.
HOT = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"}
GENERAL = {"plan_cache_mode": "force_custom_plan"}  # optional filters: planned for the given values

# Walk an index in its order, row by row, until the page is full. A planner that expects few rows (from old statistics),
# or evenly spread ones, would gather and sort them all.
_READING_ALL_FIRST = ("sort", "bitmapscan", "seqscan", "mergejoin", "hashjoin")
LISTS = GENERAL | {f"enable_{way}": "off" for way in _READING_ALL_FIRST}
# What is not flushed may be lost: only where it is then done again. A later commit of another session flushes it too.
LAZY = HOT | {"synchronous_commit": "off"}
COUNTS = GENERAL | {"statement_timeout": "60s"}
# Periodic tasks: counting takes long, but who holds a task and stops answering loses it soon.
TASKS = COUNTS | {"idle_in_transaction_session_timeout": "5s"}
SLOW = {
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}  # migrations

# Pins the settings it checks: a reload of the server's configuration cannot make a running session's commits unsafe.
CHECK_SESSION = """
SELECT current_setting('server_version_num')::int / 10000 AS major, pg_is_in_recovery() AS standby,
  current_setting('fsync') AS fsync,
  set_config('synchronous_commit', current_setting('synchronous_commit'), false) AS synchronous_commit
"""


async def connect(url: str, *, role: str, settings: dict[str, str], unsafe: bool, lists: bool = False) -> Any:
    """A session for statements that take lists; refuses a server that could lose what it acknowledged."""
    try:
        with while_connecting(url):
            connection = await asyncpg.connect(
                url,
                timeout=CONNECT_TIMEOUT,
                max_cached_statement_lifetime=0,
                max_cacheable_statement_size=0,
                server_settings={"application_name": f"hookline {role}", **_SETTINGS, **settings},
            )
    except OSError as error:
        # The system's own message: asyncio's is about a failed call and repeats the address.
        said = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
        why = (said or str(error) or type(error).__name__).lower()
        if isinstance(error, TimeoutError) and not str(error):  # the driver's own limit has no text
            why = f"no answer within {CONNECT_TIMEOUT:g} seconds"
        raise StoreUnavailable(f"PostgreSQL at {_place(url)} cannot be reached: {why}") from error
    try:
        _keep_alive(connection)
        await use_plain_ids(connection)
        judge(await connection.fetchrow(CHECK_SESSION), unsafe=unsafe)
        if lists:
            await use_lists(connection, schema=SCHEMA)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def use_plain_ids(connection: Any) -> None:
    """Ids are 16 bytes on both sides; `bytes` as the codec is the identity and costs no Python frame."""
    await connection.set_type_codec(
        "uuid", schema="pg_catalog", format="binary", encoder=bytes, decoder=bytes
    )


def judge(found: Any, *, unsafe: bool) -> None:
    """Refuse a server that, by its own settings, is too old or could lose what it acknowledged."""
    if found["major"] < OLDEST:
        raise StoreRefused(f"PostgreSQL {found['major']} is too old: upgrade it to {OLDEST} or later.")
    if found["major"] > NEWEST:
        # Refusing would turn a database upgrade into an outage; PostgreSQL keeps old SQL working.
        log.warning("store.untested_server", major=found["major"], newest_tested=NEWEST)
    if found["standby"]:
        raise StoreUnavailable("This PostgreSQL is a standby: waiting for it to be promoted.")
    if unsafe:
        return
    if found["fsync"] != "on":
        raise StoreRefused("PostgreSQL runs with fsync=off and can lose everything in a crash: set fsync=on.")
    if found["synchronous_commit"] not in DURABLE:
        raise StoreRefused(
            f"PostgreSQL runs with synchronous_commit={found['synchronous_commit']} and can lose acknowledged events: "
            "set synchronous_commit=on for hookline's user or database."
        )


def _keep_alive(connection: Any) -> None:
    """Let the kernel notice a server that vanished while the session is idle (a NAT that forgot us, a dead host)."""
    transport = getattr(connection, "_transport", None)  # the driver gives no other access to its socket
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 5),
        ("TCP_KEEPINTVL", 2),
        ("TCP_KEEPCNT", 2),
        ("TCP_USER_TIMEOUT", 8_000),
    ):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _place(url: str) -> str:
    """The server's address in the URL, without the password."""
    try:
        parts = urlsplit(url)
        return f"{parts.hostname or 'localhost'}:{parts.port or 5432}"
    except ValueError:
        return "the address in the database URL"
