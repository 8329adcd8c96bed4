"""Keeps what browsers may do for a while in PostgreSQL."""

from typing import Any

import msgspec

from hookline.model import AuditEntry, Session, SessionKind
from hookline.store import spoiled_rows
from hookline.store.contract.access.sessions import EXPIRED_AT_ONCE, OVER
from hookline.store.postgres.access.audit import note_audit
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction

_COLUMNS = """digest, kind, key_digest, account, scopes, date_part('epoch', created_at) AS created_at,
  date_part('epoch', seen_at) AS seen_at, date_part('epoch', expires_at) AS expires_at, visit_s"""

# Differs from sqlite: several may create sessions at once, so each takes expired ones that nobody else deletes.
DELETE_EXPIRED_SESSIONS = """
DELETE FROM sessions WHERE digest IN (
  SELECT digest FROM sessions WHERE expires_at <= to_timestamp($1)
  ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
"""
CREATE_SESSION = """
INSERT INTO sessions (digest, kind, key_digest, account, scopes, created_at, seen_at, expires_at, visit_s)
VALUES ($1, $2, $3, $4, $5, to_timestamp($6), to_timestamp($7), to_timestamp($8), $9)
ON CONFLICT (digest) DO NOTHING
"""
READ_SESSION = f"SELECT {_COLUMNS} FROM sessions WHERE digest = $1"
SEE_SESSION = (
    "UPDATE sessions SET seen_at = to_timestamp($2) WHERE digest = $1 AND seen_at < to_timestamp($2)"
)
# Of several at once, the others wait for the row, and find it deleted.
USE_LINK = f"""
DELETE FROM sessions WHERE digest = $1 AND kind = 'link' AND expires_at > to_timestamp($2) RETURNING {_COLUMNS}
"""
END_SESSION = "DELETE FROM sessions WHERE digest = $1"
END_SESSIONS_OF_KEY = "DELETE FROM sessions WHERE key_digest = $1 RETURNING 1"


class PostgresBrowserSessions(PostgresSessions):
    """The contract's verbs about sessions."""

    @in_transaction
    async def create_session(
        self, connection: Connection, session: Session, *, now: float, audit: AuditEntry | None = None
    ) -> None:
        """See the contract."""
        await connection.fetch(DELETE_EXPIRED_SESSIONS, now, EXPIRED_AT_ONCE)
        await connection.fetch(CREATE_SESSION, *_values(session))
        await note_audit(connection, audit)

    async def session(self, digest: bytes) -> Session | None:
        """See the contract."""
        found = await self._general.fetch(READ_SESSION, digest)
        return _read(found[0]) if found else None

    async def see_session(self, digest: bytes, *, now: float) -> None:
        """See the contract."""
        await self._general.fetch(SEE_SESSION, digest, now)

    @in_transaction
    async def open_link(
        self, connection: Connection, link_digest: bytes, session: Session, *, now: float
    ) -> Session | None:
        """See the contract."""
        used = await connection.fetchrow(USE_LINK, link_digest, now)
        if used is None:
            return await _one(connection, session.digest)  # of a caller that repeats the call
        link = _read(used)
        if link is None:
            return None
        visit = msgspec.structs.replace(
            session,
            kind=SessionKind.PORTAL,
            key_digest=link.key_digest,
            account=link.account,
            scopes=link.scopes,
            expires_at=min(session.expires_at, now + link.visit_s),
        )
        await connection.fetch(CREATE_SESSION, *_values(visit))
        return await _one(connection, visit.digest)

    async def end_session(self, digest: bytes) -> None:
        """See the contract."""
        await self._general.fetch(END_SESSION, digest)

    async def end_sessions_of(self, key_digest: bytes) -> int:
        """See the contract."""
        return len(await self._general.fetch(END_SESSIONS_OF_KEY, key_digest))


async def _one(connection: Connection, digest: bytes) -> Session | None:
    row = await connection.fetchrow(READ_SESSION, digest)
    return None if row is None else _read(row)


def _values(session: Session) -> list[Any]:
    return [
        session.digest,
        session.kind,
        session.key_digest,
        session.account,
        list(session.scopes),
        session.created_at,
        session.seen_at,
        session.expires_at,
        session.visit_s,
    ]


def _read(row: Any) -> Session | None:
    return spoiled_rows.read(Session, dict(row), OVER)
