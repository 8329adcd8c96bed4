"""Seals the secrets in the database.

With a key of the server (`HOOKLINE_SECRET_KEY`) secrets and client certificates are stored sealed: AES-256-GCM, bound to their endpoint, so
that one cannot be put in the place of another. Without a key they are stored plain. A secret that was stored plain
keeps working and is sealed when it is next written.
"""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from hookline.errors import ConfigError, SealBroken, SealGarbled
from hookline.model import Endpoint, EndpointId

# No secret contains a space, so no plain secret can look like this. The number names the method.
PREFIX = "sealed1 "
_NONCE_BYTES = 12
_TAG_BYTES = 16
_PURPOSE = b"hookline: secrets at rest, 1"
_MARK = b"hookline"


class Secrets(msgspec.Struct, frozen=True):
    """The secrets that sign an endpoint's requests, opened."""

    secret: str
    old: str | None = None
    old_until: float | None = None

    def __repr__(self) -> str:
        return "Secrets(***)"


class Sealer:
    """Seals with the first of its keys, opens with any; without keys it seals nothing."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._ciphers = tuple(_cipher(key) for key in keys)

    @property
    def seals(self) -> bool:
        """Whether there is a key."""
        return bool(self._ciphers)

    def seal(self, text: str, *, of: bytes) -> str:
        """A secret as it is stored; one already sealed with the first key stays as it is."""
        if not self._ciphers or self._is_current(text, of=of):
            return text
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + self._ciphers[0].encrypt(nonce, self.open(text, of=of).encode(), of)
        return PREFIX + b64encode(sealed).decode()

    def open(self, text: str, *, of: bytes) -> str:
        """A stored secret, opened: as it is shown and as it signs."""
        if not text.startswith(PREFIX):
            return text
        for cipher in self._ciphers:
            if (opened := _opened(cipher, text, of=of)) is not None:
                return opened
        if _bytes_of(text) is None:
            raise SealGarbled("A secret in the database is marked as encrypted, but is damaged.")
        raise SealBroken(
            "A secret in the database is sealed, "
            + (
                "and not with this HOOKLINE_SECRET_KEY."
                if self._ciphers
                else "and HOOKLINE_SECRET_KEY is not set."
            )
        )

    def opened(self, endpoint: Endpoint) -> Secrets:
        """An endpoint's secrets, opened for signing."""
        old = endpoint.old_secret
        return Secrets(
            self.open(endpoint.secret, of=endpoint.id),
            None if old is None else self.open(old, of=endpoint.id),
            endpoint.old_secret_until,
        )

    def open_certificate(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint with its client certificate opened for sending."""
        return _with_certificate(endpoint, self.open)

    def seal_certificate(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint with its client certificate as it is stored; one that cannot be opened stays as it is."""
        try:
            return _with_certificate(endpoint, self.seal)
        except SealBroken:
            return endpoint

    def sealed(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint as it is stored."""
        if not self._ciphers:
            return endpoint
        old = endpoint.old_secret
        return msgspec.structs.replace(
            self.seal_certificate(endpoint),
            secret=self.seal(endpoint.secret, of=endpoint.id),
            old_secret=None if old is None else self.seal(old, of=endpoint.id),
        )

    def plain(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint as it would be stored without a key."""
        opened = self.opened(endpoint)
        return msgspec.structs.replace(
            self.open_certificate(endpoint), secret=opened.secret, old_secret=opened.old
        )

    def mark(self) -> str:
        """A sealed value stored beside the secrets: a key that opens it is the right key."""
        return self.seal(_MARK.decode(), of=_MARK)

    def renewed_mark(self, mark: str) -> str:
        """The existing mark, sealed with the first key; `ConfigError` when no key opens it."""
        try:
            return self.seal(mark, of=_MARK)
        except SealBroken:
            raise ConfigError(
                "HOOKLINE_SECRET_KEY is not the key that this database's secrets are sealed with. "
                "To change keys, set the new one and the old one, separated by a comma."
            ) from None

    def opens_mark(self, mark: str) -> bool:
        """Whether one of the keys sealed the mark. Without a mark any key is right."""
        try:
            self.open(mark, of=_MARK)
        except SealBroken:
            return False
        return True

    def _is_current(self, text: str, *, of: bytes) -> bool:
        return text.startswith(PREFIX) and _opened(self._ciphers[0], text, of=of) is not None


def of_certificate(endpoint: EndpointId) -> bytes:
    """What an endpoint's client certificate is bound to."""
    return endpoint + b" client_certificate"


def _with_certificate(endpoint: Endpoint, change: Callable[..., str]) -> Endpoint:
    certificate = endpoint.client_certificate
    if certificate is None:
        return endpoint
    pem = change(certificate.pem, of=of_certificate(endpoint.id))
    return msgspec.structs.replace(endpoint, client_certificate=msgspec.structs.replace(certificate, pem=pem))


def _cipher(key: str) -> Any:
    # Imported here, not above: only servers with a key pay for it.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    # The setting is long and random, not a password: it must be spread over the cipher's key, not stretched.
    return AESGCM(hmac.digest(_PURPOSE, key.encode(), hashlib.sha256))


def _opened(cipher: Any, text: str, *, of: bytes) -> str | None:
    from cryptography.exceptions import InvalidTag

    sealed = _bytes_of(text)
    if sealed is None:
        return None
    try:
        opened: bytes = cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], of)
        return opened.decode()
    except (InvalidTag, ValueError):
        return None


def _bytes_of(text: str) -> bytes | None:
    """Nonce, text and tag of a sealed secret; None: it is not one."""
    try:
        sealed = b64decode(text[len(PREFIX) :], validate=True)
    except ValueError:
        return None
    return sealed if len(sealed) >= _NONCE_BYTES + _TAG_BYTES else None
