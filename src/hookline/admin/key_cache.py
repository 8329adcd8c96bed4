"""Caches all API keys of the database in memory.

So no request costs a read of the database. The copy is updated once a second, and at once when a caller has
a key that is not in it. A copy that could not be compared with the store for TRUSTED_S is no longer trusted: a key in
it may have been revoked elsewhere.

Timing tells nothing about keys: they are found by their digests, and an attacker without the key cannot choose what its
digest is close to.
"""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from hookline.clock import Clock
from hookline.errors import StoreUnavailable
from hookline.model import Actor, ActorKind, Key, KeyId, Scope
from hookline.rules.scopes import allows
from hookline.store.contract.access.keys import KeyStore

LOOK_EVERY_S = 1.0
LOOK_WITHIN_S = 2.0
TRUSTED_S = 2.5  # with a look under way on top of it, a revoked key is refused everywhere within 4.5 s
PAUSE_S = 0.1  # between looks, however many unknown keys arrive
MOST_WAITING = 1_000  # callers that wait for the next look; more are refused at once

log = structlog.get_logger()


class Caller(msgspec.Struct, frozen=True):
    """The holder of a key."""

    scopes: frozenset[Scope]
    account: str | None  # None: all of them
    key_id: KeyId | None  # None: not a stored key
    may_publish: bool  # stored, because it is read for every event
    digest: bytes  # of the key; empty: in development mode it needs none
    actor: Actor  # who that is in the audit trail

    def may(self, scope: Scope) -> bool:
        """Whether this caller may do what needs this scope."""
        return allows(self.scopes, scope)


_NO_KEY = Actor(kind=ActorKind.DEVELOPMENT)


def caller(
    scopes: frozenset[Scope],
    *,
    account: str | None = None,
    key_id: KeyId | None = None,
    digest: bytes = b"",
    actor: Actor = _NO_KEY,
) -> Caller:
    """A caller with these scopes."""
    return Caller(scopes, account, key_id, allows(scopes, Scope.PUBLISH), digest, actor)


def operator(digest: bytes) -> Caller:
    """The holder of the key in the settings, which is not stored."""
    return caller(_EVERYTHING, digest=digest, actor=_OF_THE_SETTINGS)


_EVERYTHING = frozenset({Scope.ADMIN})
_OF_THE_SETTINGS = Actor(kind=ActorKind.SETTINGS_KEY, name="HOOKLINE_API_KEY")
# Without a key: in development, everybody on this machine.
OPERATOR = caller(_EVERYTHING)
NOBODY = caller(frozenset())


class KeyCache:
    """All valid keys, by digest."""

    def __init__(self, store: KeyStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._callers: dict[bytes, Caller] = {}
        self._revoked: set[bytes] = set()  # digests: nothing ever makes such a key valid again
        self._n = 0  # the last change this copy includes
        self._good = float("-inf")  # when the last look that succeeded began
        self._is_used = asyncio.Event()
        self._asked = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._is_stopped = False
        # What was found here before is no longer trusted.
        self.on_change: Callable[[], None] = lambda: None

    def use(self) -> None:
        """Start reading keys: somebody asks for them from now on."""
        self._is_used.set()

    def find(self, digest: bytes) -> Caller | None:
        """The holder of the key with this digest."""
        return self._callers.get(digest)

    def is_empty(self) -> bool:
        """Whether there is no valid key."""
        return not self._callers

    def is_revoked(self, digest: bytes) -> bool:
        """Whether there was such a key. It will not be valid again."""
        return digest in self._revoked

    def is_trusted(self) -> bool:
        """Whether this copy was compared with the store recently."""
        return self._clock.monotonic() - self._good < TRUSTED_S

    def learn(self, key: Key) -> None:
        """Add a key as it was at some moment, in any order: a revoked key stays revoked."""
        if key.revoked_at is not None:
            self._revoked.add(key.digest)
            self._callers.pop(key.digest, None)
        elif key.digest not in self._revoked:
            self._callers[key.digest] = caller(
                frozenset(key.scopes),
                account=key.account,
                key_id=key.id,
                digest=key.digest,
                actor=Actor(
                    kind=ActorKind.KEY, key_id=key.id, name=key.name, hint=key.hint, account=key.account
                ),
            )
        self.on_change()

    async def refresh(self) -> None:
        """Wait for a look that starts after this; `StoreUnavailable` when it fails."""
        if self._is_stopped:
            raise _stopping()
        if len(self._waiting) >= MOST_WAITING:
            return
        looked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(looked)
        self._asked.set()
        await looked

    async def run(self) -> None:
        """Look until cancelled."""
        self._is_stopped = False
        await self._is_used.wait()
        try:
            while True:
                self._distrust_if_old()
                self._asked.clear()
                await self._look_for_all()
                self._distrust_if_old()
                await self._clock.sleep(PAUSE_S)
                await self._clock.wait(self._asked, LOOK_EVERY_S - PAUSE_S)
        finally:
            self._is_stopped = True
            _answer(self._waiting, _stopping())

    async def _look_for_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        error: StoreUnavailable | None = StoreUnavailable("The keys could not be read.")
        try:
            await self.look()
            error = None
        except StoreUnavailable as failure:
            log.debug("keys.failed", error=str(failure))
            error = failure
        finally:
            _answer(waiting, error)

    async def look(self) -> None:
        """Read what changed."""
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(LOOK_WITHIN_S):
                while changed := await self._store.changed_keys(after=self._n):
                    for change in changed:
                        self.learn(change.key)
                    self._n = max(self._n, changed[-1].n)
        except TimeoutError:
            raise StoreUnavailable("The keys could not be read in time.") from None
        self._good = began

    def _distrust_if_old(self) -> None:
        if not self.is_trusted():
            self.on_change()


def _answer(waiting: list[asyncio.Future[None]], error: StoreUnavailable | None) -> None:
    for looked in waiting:
        if looked.done():  # its caller went away
            continue
        if error is None:
            looked.set_result(None)
        else:
            looked.set_exception(error)


def _stopping() -> StoreUnavailable:
    return StoreUnavailable("The keys are not looked at any more: the server is stopping.")
