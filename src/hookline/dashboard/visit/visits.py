"""Finds out who looks at a page, and begins and ends visits.

A visit begins with an API key or with a portal link. The browser has a random token in a cookie; the store has its
digest. A visit ends 30 minutes after the last request, after 12 hours in any case, and with its key. In development
mode visitors on this machine need neither.
"""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256

import msgspec

from hookline.admin.key_cache import OPERATOR, Caller, KeyCache, caller, operator
from hookline.admin.keys import digest_of
from hookline.admin.portal import NO_KEY
from hookline.api.auth import Authenticator
from hookline.clock import Clock
from hookline.config import Settings
from hookline.dashboard.page import Visitor
from hookline.errors import StoreUnavailable
from hookline.model import ActorKind, Session, SessionKind
from hookline.store.contract import Store

IDLE_S = 1_800.0
LONGEST_S = 43_200.0
COOKIE = "hookline_visit"

_SEEN_EVERY_S = 60.0  # between two notes that a visit goes on
_GOOD_FOR_S = 2.0  # a visit that was read is believed for so long
_MOST_REMEMBERED = 1_000


class _Remembered(msgspec.Struct):
    session: Session
    at: float  # on the monotonic clock


class Visits:
    """The visits of this server."""

    def __init__(
        self, store: Store, key_cache: KeyCache, admission: Authenticator, clock: Clock, settings: Settings
    ) -> None:
        self._store = store
        self._key_cache = key_cache
        self._admission = admission
        self._clock = clock
        self._is_development = settings.dev
        self._own = None if settings.api_key is None else digest_of(settings.api_key.encode())
        self._remembered: dict[bytes, _Remembered] = {}

    async def visitor(self, cookies: Mapping[str, str], *, secret: bytes) -> Visitor | None:
        """Who looks; None: somebody without a visit, or whose visit has ended."""
        token = cookies.get(COOKIE, "")
        found = await self._session(token) if token else None
        if found is None and self._is_development:
            key = sha256(b"development" + secret).digest()
            return Visitor(caller=OPERATOR, name="development", kind="development", secret=key)
        if found is None:
            return None
        who = await self._caller(found)
        if who is None:
            self._remembered.pop(found.digest, None)
            await self._store.end_sessions_of(found.key_digest)
            return None
        return Visitor(
            caller=who,
            name=await self._name(who),
            kind="portal" if found.kind is SessionKind.PORTAL else "login",
            secret=sha256(b"visit" + token.encode() + secret).digest(),
            ends_at=self._clock.shown(found.expires_at),
        )

    async def log_in(self, key: str, address: str) -> str:
        """The token of a new visit; raises what the API answers to a wrong key."""
        who = await self._admission.identify([(b"authorization", b"Bearer " + key.encode())], address)
        now = self._clock.now()
        token, digest = _new_token()
        await self._store.create_session(
            Session(
                digest=digest,
                kind=SessionKind.LOGIN,
                key_digest=digest_of(key.encode()),
                account=who.account,
                scopes=(),
                created_at=now,
                seen_at=now,
                expires_at=now + LONGEST_S,
            ),
            now=now,
        )
        return token

    async def enter(self, link: str) -> str | None:
        """The token of the visit that a portal link opens; None: it was used, has expired, or never was one."""
        now = self._clock.now()
        token, digest = _new_token()
        session = Session(
            digest=digest,
            kind=SessionKind.PORTAL,
            key_digest=NO_KEY,
            account=None,
            scopes=(),
            created_at=now,
            seen_at=now,
            expires_at=now + LONGEST_S,
        )
        opened = await self._store.open_link(_digest(link), session, now=now)
        return None if opened is None else token

    async def end(self, cookies: Mapping[str, str]) -> None:
        """End the visit."""
        digest = _digest(cookies.get(COOKIE, ""))
        self._remembered.pop(digest, None)
        await self._store.end_session(digest)

    async def _session(self, token: str) -> Session | None:
        digest, now = _digest(token), self._clock.now()
        known = self._remembered.get(digest)
        if known is None or self._clock.monotonic() - known.at > _GOOD_FOR_S:
            self._remembered.pop(digest, None)
            found = await self._store.session(digest)
            if found is None or found.kind is SessionKind.LINK:
                return None
            known = _Remembered(found, self._clock.monotonic())
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[digest] = known
        session = known.session
        idle = IDLE_S if session.kind is SessionKind.LOGIN else LONGEST_S
        if now >= min(session.expires_at, session.seen_at + idle):
            return None
        if now - session.seen_at > _SEEN_EVERY_S:
            known.session = msgspec.structs.replace(session, seen_at=now)
            await self._store.see_session(digest, now=now)
        return session

    async def _caller(self, session: Session) -> Caller | None:
        """Who the visitor is to the API; None if the key is good no more."""
        if session.key_digest == NO_KEY:
            key = OPERATOR if self._is_development else None
        else:
            key = await self._holder(session.key_digest)
        if key is None or session.kind is SessionKind.LOGIN:
            return key
        # A customer manages endpoints and replays; what is published comes from the team.
        through = msgspec.structs.replace(key.actor, kind=ActorKind.PORTAL)
        visiting = caller(frozenset(session.scopes), account=session.account, actor=through)
        return msgspec.structs.replace(visiting, may_publish=False)

    async def _holder(self, digest: bytes) -> Caller | None:
        if self._key_cache.is_revoked(digest):
            return None
        if not self._key_cache.is_trusted():
            await self._key_cache.refresh()
        found = self._key_cache.find(digest)
        if found is not None:
            return found
        if self._own is not None and hmac.compare_digest(digest, self._own):
            return operator(digest)
        if not self._key_cache.is_trusted():
            raise StoreUnavailable("Nobody can tell whether the key is still good.")
        return None

    async def _name(self, who: Caller) -> str:
        if who.key_id is None:
            return "of the settings" if who.account is None else who.account
        key = await self._store.key(who.key_id)
        return key.name or key.hint if key is not None else "unnamed"


def _new_token() -> tuple[str, bytes]:
    token = secrets.token_urlsafe(32)
    return token, _digest(token)


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
