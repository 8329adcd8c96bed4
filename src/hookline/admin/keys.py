"""Creates and revokes API keys.

A key is `hlk_` and 256 random bits, shown once, when it is made. Only its SHA-256 is stored. A slow hash would add
nothing: it makes guessing expensive where people choose short secrets, but nobody guesses 256 bits. Every caller that
is not known yet would pay for it.
"""

import secrets
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from hookline import rfc3339
from hookline.admin.audit import Audit
from hookline.clock import Clock
from hookline.errors import Invalid, NotFound
from hookline.ids import Ids, show
from hookline.model import AuditAction, AuditEntry, Key, KeyId, Scope
from hookline.rules.audit_changes import noted
from hookline.store.contract.access.keys import KeyStore
from hookline.validate.api_schema import Moment
from hookline.validate.names import check_account, check_known, did_you_mean, is_text

PREFIX = "hlk_"
MAX_NAME = 200

_HINT = 8  # characters that are shown: 24 of the 256 bits


class KeyInput(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a new key, unchecked."""

    name: Any = None
    scopes: Any = None
    account: Any = None


class KeyReport(msgspec.Struct, kw_only=True):
    """An API key. `key`, its value, is present only in the response that creates it."""

    id: str
    name: str
    hint: str
    scopes: tuple[str, ...]
    account: str | None
    created_at: Moment
    revoked_at: Moment | None
    key: str | msgspec.UnsetType = msgspec.UNSET


def digest_of(key: bytes) -> bytes:
    """The digest that identifies a key."""
    return sha256(key).digest()


def new_key(fields: KeyInput, *, id: KeyId, now: float) -> tuple[Key, str]:
    """The key that the fields describe, and its text, which is stored nowhere; `Invalid` names the invalid field."""
    text = PREFIX + secrets.token_urlsafe(32)
    key = Key(
        id=id,
        digest=digest_of(text.encode("ascii")),
        hint=text[:_HINT],
        name=_name(fields.name),
        scopes=_scopes(fields.scopes),
        account=None if fields.account is None else check_account(fields.account),
        created_at=now,
    )
    return key, text


def shown(key: Key, text: str | None = None) -> KeyReport:
    """The key as people see it."""
    return KeyReport(
        id=show("key", key.id),
        name=key.name,
        hint=key.hint,
        scopes=tuple(scope.value for scope in key.scopes),
        account=key.account,
        created_at=rfc3339.show(key.created_at),
        revoked_at=None if key.revoked_at is None else rfc3339.show(key.revoked_at),
        key=msgspec.UNSET if text is None else text,
    )


class KeyAdmin:
    """Makes and revokes keys."""

    def __init__(
        self,
        store: KeyStore,
        clock: Clock,
        ids: Ids,
        *,
        audit: Audit | None = None,
        on_change: Callable[[Key], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit or Audit(clock, ids)
        self._on_change = on_change

    async def create(self, fields: Mapping[str, Any]) -> KeyReport:
        """Create a key; only the answer holds it."""
        check_known(fields, KeyInput.__struct_fields__)
        key, text = new_key(KeyInput(**fields), id=self._ids.key(), now=self._clock.now())
        await self._store.create_key(key, audit=self._created(key))
        self._on_change(key)
        return shown(key, text)

    async def create_first(self) -> KeyReport | None:
        """Create a key for everything if there was never one; None otherwise."""
        fields = KeyInput(name="first", scopes=[Scope.ADMIN])
        key, text = new_key(fields, id=self._ids.key(), now=self._clock.now())
        if not await self._store.create_first_key(key, audit=self._created(key)):
            return None
        self._on_change(key)
        return shown(key, text)

    async def revoke(self, id: KeyId) -> KeyReport:
        """Revoke a key for good; a revoked one stays as it is."""
        known = await self._store.key(id)
        if known is None:
            raise NotFound("key", show("key", id))
        entry = self._audit.entry(
            AuditAction.KEY_REVOKED,
            "key",
            show("key", id),
            account=known.account,
            changes=noted(name=known.name or None, hint=known.hint),
        )
        await self._store.revoke_key(id, now=self._clock.now(), audit=entry)
        found = await self._store.key(id) or known
        self._on_change(found)
        return shown(found)

    def _created(self, key: Key) -> AuditEntry:
        return self._audit.entry(
            AuditAction.KEY_CREATED,
            "key",
            show("key", key.id),
            account=key.account,
            changes=noted(
                name=key.name or None,
                hint=key.hint,
                scopes=[str(each) for each in key.scopes],
                account=key.account,
            ),
        )

    async def one(self, id: KeyId) -> KeyReport:
        """A key, revoked or not."""
        found = await self._store.key(id)
        if found is None:
            raise NotFound("key", show("key", id))
        return shown(found)


def _name(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_NAME or not is_text(value):
        raise Invalid(f"A key's name is a string of up to {MAX_NAME} characters.", pointer="/name")
    return value


def _scopes(value: Any) -> tuple[Scope, ...]:
    allowed = f"scopes is a list of one or more of {', '.join(Scope)}."
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= len(Scope):
        raise Invalid(allowed, pointer="/scopes")
    for place, each in enumerate(value):
        if not isinstance(each, str) or each not in list(Scope):
            near = did_you_mean(each, Scope) if isinstance(each, str) else ""
            raise Invalid(f"{allowed}{near}", pointer=f"/scopes/{place}")
    return tuple(scope for scope in Scope if scope in value)
