"""Keeps what browsers may do for a while in SQLite."""

import sqlite3
from typing import Any

import msgspec

from hookline.model import AuditEntry, Session, SessionKind
from hookline.store import spoiled_rows
from hookline.store.contract.access.sessions import EXPIRED_AT_ONCE, OVER
from hookline.store.sqlite.access.audit import note_audit
from hookline.store.sqlite.driver.connections import SqliteConnections, on_loader, on_writer

_COLUMNS = "digest, kind, key_digest, account, scopes, created_at, seen_at, expires_at, visit_s"

DELETE_EXPIRED_SESSIONS = """
DELETE FROM sessions WHERE digest IN (
  SELECT digest FROM sessions WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)
"""
CREATE_SESSION = f"""
INSERT INTO sessions ({_COLUMNS})
VALUES (:digest, :kind, :key_digest, :account, :scopes, :created_at, :seen_at, :expires_at, :visit_s)
ON CONFLICT (digest) DO NOTHING
"""
READ_SESSION = f"SELECT {_COLUMNS} FROM sessions WHERE digest = :digest"
SEE_SESSION = "UPDATE sessions SET seen_at = :now WHERE digest = :digest AND seen_at < :now"
USE_LINK = f"DELETE FROM sessions WHERE digest = :digest AND kind = 'link' AND expires_at > :now RETURNING {_COLUMNS}"
END_SESSION = "DELETE FROM sessions WHERE digest = :digest"
END_SESSIONS_OF_KEY = "DELETE FROM sessions WHERE key_digest = :key_digest"


class SqliteBrowserSessions(SqliteConnections):
    """The contract's verbs about sessions."""

    @on_writer
    def create_session(
        self,
        connection: sqlite3.Connection,
        session: Session,
        *,
        now: float,
        audit: AuditEntry | None = None,
    ) -> None:
        """Add a session, and delete up to EXPIRED_AT_ONCE expired ones."""
        connection.execute(DELETE_EXPIRED_SESSIONS, {"now": now, "limit": EXPIRED_AT_ONCE})
        connection.execute(CREATE_SESSION, _values(session))
        note_audit(connection, audit)

    @on_loader
    def session(self, connection: sqlite3.Connection, digest: bytes) -> Session | None:
        """The session with this digest, expired or not.

        Not on the connection of the lists, which may take long: every page depends on this.
        """
        return _one(connection, digest)

    @on_writer
    def see_session(self, connection: sqlite3.Connection, digest: bytes, *, now: float) -> None:
        """Note that the session was used now; an earlier time changes nothing."""
        connection.execute(SEE_SESSION, {"digest": digest, "now": now})

    @on_writer
    def open_link(
        self, connection: sqlite3.Connection, link_digest: bytes, session: Session, *, now: float
    ) -> Session | None:
        """Use up a link for this visit; None if there is no such link, or it has expired, or was used."""
        row = connection.execute(USE_LINK, {"digest": link_digest, "now": now}).fetchone()
        if row is None:
            return _one(connection, session.digest)  # of a caller that repeats the call
        link = _read(row)
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
        connection.execute(CREATE_SESSION, _values(visit))
        return _one(connection, visit.digest)

    @on_writer
    def end_session(self, connection: sqlite3.Connection, digest: bytes) -> None:
        """Delete a session, if there is one."""
        connection.execute(END_SESSION, {"digest": digest})

    @on_writer
    def end_sessions_of(self, connection: sqlite3.Connection, key_digest: bytes) -> int:
        """Delete all sessions and links that came from a key; how many there were."""
        return connection.execute(END_SESSIONS_OF_KEY, {"key_digest": key_digest}).rowcount


def _one(connection: sqlite3.Connection, digest: bytes) -> Session | None:
    row = connection.execute(READ_SESSION, {"digest": digest}).fetchone()
    return None if row is None else _read(row)


def _values(session: Session) -> dict[str, Any]:
    return {**msgspec.structs.asdict(session), "scopes": msgspec.json.encode(session.scopes).decode()}


def _read(row: Any) -> Session | None:
    values = dict(zip(Session.__struct_fields__, row, strict=True))
    values["scopes"] = spoiled_rows.decoded(values["scopes"])
    return spoiled_rows.read(Session, values, OVER)
