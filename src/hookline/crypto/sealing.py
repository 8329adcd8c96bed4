"""Seals the secrets in the database.

With a key of the server (`HOOKLINE_SECRET_KEY`) secrets are stored sealed: AES-256-GCM, bound to their place, so that
one cannot be put in the place of another. Without a key they are stored plain. A secret that was stored plain keeps
working and is sealed when it is next written.

Secrets are those that sign an endpoint's requests, the values of its own headers, the client certificate
that it shows, and the URLs at which accounts are notified: whoever knows one of those can write there.
"""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from hookline.errors import ConfigError, SealBroken, SealGarbled
from hookline.model import Account, Endpoint, EndpointId, Notify

# No secret or URL contains a space, and no header's value may begin like this. The number names the method.
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


class Seal(StrEnum):
    """How a secret is stored."""

    CURRENT = "current"  # sealed with the first key
    OLDER = "older"  # with another key that is set
    PLAIN = "plain"
    CLOSED = "closed"  # no key opens it, or it is damaged


# (a secret as it is, what it is bound to) -> the secret as it is to be
Change = Callable[[str, bytes], str]


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

    def open_headers(self, endpoint: Endpoint) -> dict[str, str]:
        """An endpoint's own headers, opened for sending."""
        return {
            name: self.open(value, of=_of_header(endpoint, name)) for name, value in endpoint.headers.items()
        }

    def open_certificate(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint with its client certificate opened for sending."""
        return _with_certificate(endpoint, self._open)

    def sealed(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint as it is stored; a header or a certificate that cannot be opened stays as it is."""
        return _changed(endpoint, self._seal, besides=self._seal_if_open) if self._ciphers else endpoint

    def sealed_but_secrets(self, endpoint: Endpoint) -> Endpoint:
        """Likewise for an endpoint whose secrets cannot be opened: these stay as they are."""
        return _changed(endpoint, _as_it_is, besides=self._seal_if_open) if self._ciphers else endpoint

    def plain(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint as it would be stored without a key."""
        return _changed(endpoint, self._open)

    def open_notify(self, account: Account) -> Notify:
        """Where an account is notified, opened for sending."""
        return _changed_notify(account, self._open)

    def sealed_notify(self, account: Account) -> Notify:
        """Where an account is notified, as it is stored."""
        return _changed_notify(account, self._seal) if self._ciphers else account.notify

    def seals_of(self, stored: Endpoint | Account) -> frozenset[Seal]:
        """How the secrets of an endpoint or an account are stored; nothing if there are none."""
        found = set()

        def look(text: str, of: bytes) -> str:
            found.add(self.seal_of(text, of=of))
            return text

        if isinstance(stored, Endpoint):
            _changed(stored, look)
        else:
            _changed_notify(stored, look)
        return frozenset(found)

    def seal_of(self, text: str, *, of: bytes) -> Seal:
        """How a secret is stored."""
        if not text.startswith(PREFIX):
            return Seal.PLAIN
        if self._ciphers and self._is_current(text, of=of):
            return Seal.CURRENT
        return (
            Seal.CLOSED if all(_opened(each, text, of=of) is None for each in self._ciphers) else Seal.OLDER
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

    def seal_of_mark(self, mark: str) -> Seal:
        """How the mark is stored; an empty one belongs to no key."""
        return self.seal_of(mark, of=_MARK)

    def _seal(self, text: str, of: bytes) -> str:
        return self.seal(text, of=of)

    def _seal_if_open(self, text: str, of: bytes) -> str:
        try:
            return self.seal(text, of=of)
        except SealBroken:
            return text

    def _open(self, text: str, of: bytes) -> str:
        return self.open(text, of=of)

    def _is_current(self, text: str, *, of: bytes) -> bool:
        return text.startswith(PREFIX) and _opened(self._ciphers[0], text, of=of) is not None


def of_certificate(endpoint: EndpointId) -> bytes:
    """What an endpoint's client certificate is bound to."""
    return endpoint + b" client_certificate"


def _changed(endpoint: Endpoint, change: Change, *, besides: Change | None = None) -> Endpoint:
    """The endpoint with each of its secrets changed: the one list of what is sealed in an endpoint.

    `besides` is for what does not sign: its headers and its certificate.
    """
    old = endpoint.old_secret
    return msgspec.structs.replace(
        _with_certificate(endpoint, besides or change),
        secret=change(endpoint.secret, endpoint.id),
        old_secret=None if old is None else change(old, endpoint.id),
        headers={
            name: (besides or change)(value, _of_header(endpoint, name))
            for name, value in endpoint.headers.items()
        },
    )


def _with_certificate(endpoint: Endpoint, change: Change) -> Endpoint:
    certificate = endpoint.client_certificate
    if certificate is None:
        return endpoint
    pem = change(certificate.pem, of_certificate(endpoint.id))
    return msgspec.structs.replace(endpoint, client_certificate=msgspec.structs.replace(certificate, pem=pem))


def _as_it_is(text: str, of: bytes) -> str:
    return text


def _changed_notify(account: Account, change: Change) -> Notify:
    """Likewise for an account: a mail address is no secret."""
    urls = {"slack": account.notify.slack, "webhook": account.notify.webhook}
    return msgspec.structs.replace(
        account.notify,
        **{
            name: change(url, f"account, {name}: {account.id}".encode())
            for name, url in urls.items()
            if url is not None
        },
    )


def _of_header(endpoint: Endpoint, name: str) -> bytes:
    """What a header's value is bound to; an id alone is shorter."""
    return endpoint.id + b" header: " + name.lower().encode()


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
