"""Creates portal links.

A portal link lets whoever has it open one visit to one account's portal. Its token is 256 random bits and works once,
for a few minutes. Only its SHA-256 is stored, as of a key (see `admin.keys`).
"""

import secrets
from typing import Any

import msgspec
import structlog

from hookline import rfc3339
from hookline.admin.audit import Audit
from hookline.admin.keys import digest_of
from hookline.clock import Clock
from hookline.config import Settings
from hookline.errors import Invalid
from hookline.model import AuditAction, Scope, Session, SessionKind
from hookline.rules.audit_changes import noted
from hookline.store.contract.access.sessions import SessionStore
from hookline.validate.api_schema import Moment
from hookline.validate.names import check_account
from hookline.validate.numbers import whole

EXPIRES_IN_S, LEAST_EXPIRES_IN_S, MOST_EXPIRES_IN_S = 300, 10, 3_600
VISIT_S, LEAST_VISIT_S, MOST_VISIT_S = 3_600, 60, 86_400
NO_KEY = b""  # the digest of the key of a caller in development mode, who needs none

log = structlog.get_logger()


class PortalLinkReport(msgspec.Struct, kw_only=True):
    """A link that opens one visit to an account's portal. Whoever has it may use it; it is not shown again."""

    url: str
    path: str  # the part of the URL below where people reach this server
    account: str
    expires_at: Moment
    visit_s: int


class PortalLinks:
    """Creates portal links."""

    def __init__(self, store: SessionStore, clock: Clock, settings: Settings, audit: Audit) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock
        self._public_url = settings.public_url

    async def mint(
        self,
        account: str,
        *,
        key_digest: bytes,
        reached_at: str,
        expires_in_s: Any = EXPIRES_IN_S,
        visit_s: Any = VISIT_S,
        may_act: Any = True,
    ) -> PortalLinkReport:
        """Create a link to an account's portal; only the answer holds it.

        `key_digest` is of the caller's key, or NO_KEY. `reached_at` is the server as the caller reached it, for
        installations that do not say where people reach them. A visit may read, and change if it `may_act`; it never
        publishes.
        """
        check_account(account)
        expires_in = whole(expires_in_s, LEAST_EXPIRES_IN_S, MOST_EXPIRES_IN_S, pointer="/expires_in_s")
        visit = whole(visit_s, LEAST_VISIT_S, MOST_VISIT_S, pointer="/visit_s")
        if not isinstance(may_act, bool):
            raise Invalid("may_act is true or false.", pointer="/may_act")
        token = secrets.token_urlsafe(32)
        now = self._clock.now()
        link = Session(
            digest=digest_of(token.encode("ascii")),
            kind=SessionKind.LINK,
            key_digest=key_digest,
            account=account,
            scopes=(Scope.READ, Scope.ADMIN) if may_act else (Scope.READ,),
            created_at=now,
            seen_at=now,
            expires_at=now + expires_in,
            visit_s=float(visit),
        )
        entry = self._audit.entry(
            AuditAction.PORTAL_LINK_CREATED,
            "account",
            account,
            account=account,
            changes=noted(expires_in_s=expires_in, visit_s=visit, may_act=may_act),
        )
        await self._store.create_session(link, now=now, audit=entry)
        log.info("portal_link.created", account=account, may_act=may_act, visit_s=visit)
        path = f"/portal/enter?token={token}"
        return PortalLinkReport(
            url=(self._public_url or reached_at) + path,
            path=path,
            account=account,
            expires_at=rfc3339.show(self._clock.shown(link.expires_at)),
            visit_s=visit,
        )
