"""Reads and deletes rows of an outbox table in any PostgreSQL database."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import asyncpg

from hookline.errors import StoreRefused
from hookline.store.contract.outbox import (
    FAIR_ACCOUNTS,
    FAIR_ROWS,
    LOOK_BYTES,
    LOOK_ROWS,
    MOST_COUNTED,
    LookRequest,
    OutboxBacklog,
    OutboxHead,
    RowPlace,
    WaitingRow,
)
from hookline.store.postgres.driver.pool import SessionPool
from hookline.store.postgres.driver.sessions import PostgresSessions

_READ = """seq, id, date_part('epoch', at) AS at, date_part('epoch', deliver_at) AS deliver_at, account, type,
  idempotency_key, hops, payload"""
# Of the statement's own snapshot: a later one has seen more.
_SNAPSHOT = """pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS low,
  pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS high"""

# It locks nothing. The payloads are out of line or small: adding up their lengths reads none.
LOOK = f"""
SELECT {_READ}, low, high FROM (SELECT {_SNAPSHOT}) s LEFT JOIN (
  SELECT x.*, sum(octet_length(payload)) OVER (ORDER BY seq) - octet_length(payload) AS before FROM (
    SELECT * FROM hookline.outbox
    WHERE seq > $1 AND seq NOT IN (SELECT unnest(string_to_array($2, ',')::bigint[])) ORDER BY seq LIMIT {LOOK_ROWS}) x) y
ON before < {LOOK_BYTES} ORDER BY seq
"""
# The accounts are found one by one in the index, however many rows each has.
LOOK_FAIR = f"""
WITH RECURSIVE a (account, turn) AS (
  (SELECT account, 1 FROM hookline.outbox WHERE account > $3 ORDER BY account LIMIT 1)
  UNION ALL
  SELECT (SELECT o.account FROM hookline.outbox o WHERE o.account > a.account ORDER BY o.account LIMIT 1), a.turn + 1
  FROM a WHERE a.account IS NOT NULL AND a.turn < {FAIR_ACCOUNTS})
SELECT {_READ}, turns FROM (
  SELECT x.*, sum(octet_length(payload)) OVER (ORDER BY turn, seq) - octet_length(payload) AS before FROM (
    SELECT o.*, a.turn, (SELECT count(account) FROM a) AS turns FROM a CROSS JOIN LATERAL (
      SELECT * FROM hookline.outbox o
      WHERE o.account = a.account AND o.seq > $1 AND o.seq NOT IN (SELECT unnest(string_to_array($2, ',')::bigint[]))
      ORDER BY o.seq LIMIT {FAIR_ROWS}) o) x) y
WHERE before < {LOOK_BYTES} ORDER BY turn, seq
"""
DROP = """
DELETE FROM hookline.outbox o USING unnest(string_to_array($1, ',')::bigint[], string_to_array($2, ',')::uuid[]) k (seq, id) WHERE o.seq = k.seq AND o.id = k.id
"""
BACKLOG = f"""
SELECT (SELECT count(*) FROM (SELECT FROM hookline.outbox LIMIT {MOST_COUNTED}) o) AS waiting,
  (SELECT date_part('epoch', at) FROM hookline.outbox ORDER BY seq LIMIT 1) AS oldest_at
"""


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Say what is missing in the words of the outbox."""
    try:
        yield
    except StoreRefused as error:
        match error.__cause__:
            case asyncpg.UndefinedTableError() | asyncpg.InvalidSchemaNameError():
                step = "make it with the statements of hookline.outbox.ddl('postgresql')"
                raise StoreRefused(f"There is no table hookline.outbox here: {step}.") from error
            case asyncpg.InsufficientPrivilegeError():
                step = "GRANT USAGE ON SCHEMA hookline, and SELECT, DELETE ON hookline.outbox"
                raise StoreRefused(
                    f"The outbox may not be read or emptied ({_said(error)}): {step}."
                ) from error
        raise


def _said(error: StoreRefused) -> str:
    return " ".join(str(error.__cause__).split())


async def look(pool: SessionPool, request: LookRequest) -> OutboxHead:
    """LOOK in the sessions of the pool."""
    moved = _listed(request.moved)
    with explained():
        if request.fair_after is not None:
            return _fair(await pool.fetch(LOOK_FAIR, request.floor, moved, request.fair_after))
        found = await pool.fetch(LOOK, request.floor, moved)
    low, high = found[0]["low"], found[0]["high"]
    if found[0]["seq"] is None:
        return OutboxHead([], False, low, high)
    rows = _waiting(found)
    is_full = len(rows) >= LOOK_ROWS or sum([len(row.payload) for row in rows]) >= LOOK_BYTES
    return OutboxHead(rows, is_full, low, high)


def _fair(found: Sequence[Any]) -> OutboxHead:
    rows = _waiting(found)
    if not rows:
        return OutboxHead([], True)  # the accounts behind the last one may have some
    is_round = found[0]["turns"] < FAIR_ACCOUNTS and sum([len(row.payload) for row in rows]) < LOOK_BYTES
    return OutboxHead(rows, True, last_account="" if is_round else rows[-1].account)


def _listed(numbers: Sequence[int]) -> str:
    # The driver takes 4 µs for each element of an array, and the lists with codecs of ours are in our schema only.
    return ",".join(map(str, numbers))


def _waiting(found: Sequence[Any]) -> list[WaitingRow]:
    # A record is read by position: by name each value is searched for.
    return [
        WaitingRow(row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8]) for row in found
    ]


async def drop(pool: SessionPool, rows: Sequence[RowPlace]) -> None:
    """DROP in the sessions of the pool."""
    with explained():
        await pool.fetch(DROP, _listed([row.seq for row in rows]), ",".join([row.id.hex() for row in rows]))


async def backlog(pool: SessionPool) -> OutboxBacklog:
    """The rows that wait, counted in the sessions of the pool."""
    [found] = await pool.fetch(BACKLOG)
    return OutboxBacklog(found["waiting"], found["oldest_at"])


class PostgresOutbox(PostgresSessions):
    """The contract's verbs about the rows of hookline's own outbox."""

    async def look_at_outbox(self, request: LookRequest) -> OutboxHead:
        """See the contract."""
        return await look(self._looks_at_outbox, request)

    async def drop_from_outbox(self, rows: Sequence[RowPlace]) -> None:
        """See the contract."""
        await drop(self._drops_from_outbox, rows)

    async def outbox_backlog(self) -> OutboxBacklog:
        """See the contract."""
        return await backlog(self._general)
