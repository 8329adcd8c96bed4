"""Keeps refused rows of outboxes in PostgreSQL."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from hookline.model import AuditEntry, EventId
from hookline.store.contract.outbox import RefusedCount, RefusedFilter, RefusedRow, WaitingRow
from hookline.store.postgres.access.audit import note_audit
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction
from hookline.store.postgres.driver.values import printable
from hookline.store.postgres.lists.conditions import PostgresConditions

CONFLICTS = """
SELECT k.id FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::float8[], $7::int[])
  AS k (id, account, type, key, payload, deliver_at, hops)
JOIN events e ON e.id = k.id
WHERE (e.account, e.type, e.payload, coalesce(e.hops, 0)) <> (k.account, k.type, k.payload, k.hops)
  OR e.idempotency_key IS DISTINCT FROM k.key OR e.deliver_at IS DISTINCT FROM to_timestamp(k.deliver_at)
"""
REFUSE = """
INSERT INTO outbox_refused (source, seq, id, at, deliver_at, account, type, idempotency_key, hops, payload, refused_at, code, detail)
SELECT source, seq, id, to_timestamp(at), to_timestamp(deliver_at), account, type, key, hops, payload, to_timestamp(refused_at), code, detail
FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::float8[], $5::float8[], $6::text[], $7::text[], $8::text[],
  $9::smallint[], $10::bytea[], $11::float8[], $12::text[], $13::text[])
  WITH ORDINALITY AS k (source, seq, id, at, deliver_at, account, type, key, hops, payload, refused_at, code, detail, place)
ORDER BY place
ON CONFLICT (source, seq, id) DO NOTHING RETURNING n
"""
# ACCEPT writes a key before it knows that the event's id is taken.
GIVE_BACK_KEYS = """
DELETE FROM idempotency i USING unnest($1::text[], $2::text[], $3::uuid[]) AS k (account, key, id)
WHERE i.account = k.account AND i.key = k.key AND i.event_id = k.id AND NOT EXISTS (
  SELECT FROM events e WHERE e.id = k.id AND e.account = k.account AND e.idempotency_key = k.key)
"""
_KEPT = """n, source, seq, id, date_part('epoch', at) AS at, date_part('epoch', deliver_at) AS deliver_at, account, type,
  idempotency_key, hops, length(payload) AS payload_bytes, date_part('epoch', refused_at) AS refused_at, code, detail"""
LIST_REFUSED = f"SELECT {_KEPT}, ''::bytea AS payload FROM outbox_refused WHERE {{conditions}} ORDER BY n DESC LIMIT {{limit}}"
READ_REFUSED = f"SELECT {_KEPT}, payload FROM outbox_refused WHERE n = $1"
COUNT_REFUSED = """
SELECT account, code, count(*) AS n, date_part('epoch', min(refused_at)) AS oldest_at
FROM outbox_refused GROUP BY account, code ORDER BY account, code
"""
REFUSE_AGAIN = (
    "UPDATE outbox_refused SET code = $2, detail = $3, refused_at = to_timestamp($4) WHERE n = $1 RETURNING n"
)
DISCARD_REFUSED = "DELETE FROM outbox_refused WHERE n = ANY($1::bigint[]) RETURNING n"


class PostgresRefused(PostgresSessions):
    """The contract's verbs about refused rows."""

    async def outbox_conflicts(self, rows: Sequence[WaitingRow]) -> frozenset[EventId]:
        """See the contract."""
        found = await self._general.fetch(
            CONFLICTS,
            [row.id for row in rows],
            [row.account for row in rows],
            [row.type for row in rows],
            [row.idempotency_key for row in rows],
            [row.payload for row in rows],
            [row.deliver_at for row in rows],
            [row.hops for row in rows],
        )
        return frozenset(row["id"] for row in found)

    async def refuse(self, rows: Sequence[RefusedRow]) -> int:
        """See the contract."""
        return await self._general.transaction(partial(self._refuse, rows=rows))

    async def _refuse(self, connection: Connection, *, rows: Sequence[RefusedRow]) -> int:
        found = await connection.fetch(
            REFUSE,
            [printable(row.source) for row in rows],
            [row.seq for row in rows],
            [row.id for row in rows],
            [row.at for row in rows],
            [row.deliver_at for row in rows],
            [printable(row.account) for row in rows],
            [printable(row.type) for row in rows],
            [None if row.idempotency_key is None else printable(row.idempotency_key) for row in rows],
            [row.hops for row in rows],
            [row.payload for row in rows],
            [row.refused_at for row in rows],
            [row.code for row in rows],
            [printable(row.detail) for row in rows],
        )
        taken = [row for row in rows if row.code == "id_conflict" and row.idempotency_key is not None]
        if taken:
            accounts, keys = [row.account for row in taken], [row.idempotency_key for row in taken]
            await connection.fetch(GIVE_BACK_KEYS, accounts, keys, [row.id for row in taken])
        return len(found)

    async def refused_rows(self, filter: RefusedFilter, *, after: int | None, limit: int) -> list[RefusedRow]:
        """See the contract."""
        asked = PostgresConditions()
        asked.add("account = {}", filter.account, "text")
        asked.add("source = {}", filter.source, "text")
        asked.add("code = {}", filter.code, "text")
        asked.add("type = {}", filter.type, "text")
        asked.add("id = {}", filter.id, "uuid")
        asked.add("n < {}", after, "bigint")
        most = asked.bind(limit, "int")
        statement = LIST_REFUSED.format(conditions=asked.also(), limit=most)
        return [_refused(row) for row in await self._lists.fetch(statement, *asked.values)]

    async def refused_row(self, n: int) -> RefusedRow | None:
        """See the contract."""
        found = await self._general.fetch(READ_REFUSED, n)
        return _refused(found[0]) if found else None

    async def count_refused(self) -> list[RefusedCount]:
        """See the contract."""
        return [RefusedCount(*row) for row in await self._general.fetch(COUNT_REFUSED)]

    async def refuse_again(self, n: int, *, code: str, detail: str, now: float) -> None:
        """See the contract."""
        await self._general.fetch(REFUSE_AGAIN, n, code, printable(detail), now)

    @in_transaction
    async def discard_refused(
        self, connection: Connection, numbers: Sequence[int], *, audit: AuditEntry | None = None
    ) -> int:
        """See the contract."""
        gone = len(await connection.fetch(DISCARD_REFUSED, numbers))
        await note_audit(connection, audit if gone else None)
        return gone


def _refused(row: Any) -> RefusedRow:
    return RefusedRow(**row)
