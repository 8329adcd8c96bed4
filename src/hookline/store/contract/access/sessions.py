"""Defines how a store keeps what browsers may do for a while.

A part of the contract: see `store.contract` for what holds for every verb. Logins, portal links and portal visits are
kept alike. Whether the API key that a session came from is still valid is the caller's question, not the store's.
"""

from typing import Protocol

from hookline.model import AuditEntry, Session

# Of a stored session what cannot be read ends it.
OVER = {"account": "", "scopes": (), "expires_at": 0.0}
EXPIRED_AT_ONCE = 100  # expired sessions that a new one deletes, so that nothing else has to


class SessionStore(Protocol):
    """The verbs about sessions."""

    async def create_session(self, session: Session, *, now: float, audit: AuditEntry | None = None) -> None:
        """Add a session, and delete up to EXPIRED_AT_ONCE expired ones."""

    async def session(self, digest: bytes) -> Session | None:
        """The session with this digest, expired or not."""

    async def see_session(self, digest: bytes, *, now: float) -> None:
        """Note that the session was used now; an earlier time changes nothing."""

    async def open_link(self, link_digest: bytes, session: Session, *, now: float) -> Session | None:
        """Use up a link for this visit; None if there is no such link, or it has expired, or was used.

        The visit has the link's key, account and scopes. It ends when `session` does, but after `visit_s` at the
        latest. Of several callers with one link only one gets a visit; if it repeats the call, it gets the same one.
        """

    async def end_session(self, digest: bytes) -> None:
        """Delete a session, if there is one."""

    async def end_sessions_of(self, key_digest: bytes) -> int:
        """Delete all sessions and links that came from a key; how many there were."""
