"""Finds out who is calling.

A caller is known by its key. What the key is good for is checked where a call needs it. In development mode callers on
this machine need no key. The Host header must then be a local one: otherwise any web page could reach the
server through a name that its owner points at 127.0.0.1.
"""

import hmac
import math
import re
from collections.abc import Callable, Iterable

from hookline.admin.key_cache import OPERATOR, Caller, KeyCache, operator
from hookline.admin.keys import digest_of
from hookline.api.auth_throttle import Guesses
from hookline.api.problem import Refused
from hookline.config import Settings
from hookline.errors import StoreUnavailable
from hookline.model import Scope

RECENT = 1_000  # callers that are remembered by the header they sent

_LOCAL = re.compile(rb"(?:localhost|127\.[0-9.]+|\[::1\])(?::[0-9]+)?", re.IGNORECASE)

Headers = Iterable[tuple[bytes, bytes]]


class Authenticator:
    """Identifies callers by the headers of their requests."""

    def __init__(self, settings: Settings, key_cache: KeyCache, *, now: Callable[[], float]) -> None:
        self._dev = settings.dev
        self._own = None if settings.api_key is None else operator(digest_of(settings.api_key.encode()))
        self._key_cache = key_cache
        self._guesses = Guesses(now)
        # Keyed by the header's bytes, so that a key is hashed once and not with every request. A lookup compares bytes
        # only where their (keyed) hashes agree, so its time reveals nothing about the keys in here.
        self._recent: dict[bytes | None, Caller] = {}
        self._forget()
        key_cache.on_change = self._forget
        key_cache.use()

    def check(self, headers: Headers) -> Caller | None:
        """The caller, if it is remembered; None means that `identify` has to find out."""
        if self._dev:
            _check_host(headers)
        given: bytes | None = None
        for name, value in headers:
            if name == b"authorization":
                if given is not None:
                    raise unauthenticated()
                given = value
        return self._recent.get(given)

    async def identify(self, headers: Headers, address: str) -> Caller:
        """The caller at this address, by its key; raises when no key is good, or the keys cannot be checked."""
        [given] = [value for name, value in headers if name == b"authorization"] or [b""]
        if given[:7].lower() != b"bearer ":
            raise unauthenticated()
        key = given[7:].strip()
        digest = digest_of(key)
        caller = self._find(digest)
        if caller is None:
            # While the keys cannot be checked, none of them counts as a guess.
            if self._key_cache.is_trusted() and (wait := self._guesses.count(address, key)):
                raise _too_many(wait)
            # Another process may just have created the key.
            await self._key_cache.refresh()
            caller = self._find(digest)
        if caller is None:
            if not self._key_cache.is_trusted():
                raise StoreUnavailable("Nobody can tell whether the key is good.")
            raise unauthenticated()
        if len(self._recent) >= RECENT:
            self._forget()
        self._recent[given] = caller
        return caller

    def _find(self, digest: bytes) -> Caller | None:
        if self._key_cache.is_revoked(digest):
            raise unauthenticated()
        if self._key_cache.is_trusted():
            # First: a stored key has the scopes it was created with, even if the settings name it too.
            found = self._key_cache.find(digest)
            if found is not None:
                return found
        own = self._own
        return own if own is not None and hmac.compare_digest(digest, own.digest) else None

    def _forget(self) -> None:
        self._recent.clear()
        if self._dev:
            self._recent[None] = OPERATOR


def require(caller: Caller, scope: Scope) -> None:
    """Raise unless the caller may do what needs this scope."""
    if not caller.may(scope):
        raise Refused("forbidden", f"This key lacks the scope {scope}.")


def _check_host(headers: Headers) -> None:
    for name, value in headers:
        if name == b"host" and not _LOCAL.fullmatch(value):
            raise Refused("forbidden", "In development mode only requests to localhost are answered.")


def _too_many(wait: float) -> Refused:
    return Refused(
        "rate_limited",
        "Too many keys that are not good came from this address, or began like this one. Try again later.",
        headers=((b"retry-after", b"%d" % math.ceil(wait)),),
    )


def unauthenticated() -> Refused:
    """The same answer for every caller without a good key."""
    return Refused("unauthenticated", "Send the API key as 'Authorization: Bearer <key>'.")
