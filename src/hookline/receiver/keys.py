"""Chooses the secrets that can verify a request of a style."""

from base64 import b64decode
from collections.abc import Iterable
from typing import NamedTuple

from hookline.crypto.signing import PRIVATE_PREFIX, PUBLIC_PREFIX, key_of
from hookline.errors import Invalid
from hookline.receiver.refusal import Refusal, VerificationError
from hookline.words.signing import Signing

PUBLIC_KEY_BYTES = 32

Secrets = str | Iterable[str]


class VerificationKey(NamedTuple):
    """A secret, decoded."""

    number: int  # its index in the secrets that were given, from 0
    is_public: bool  # an ed25519 public key; otherwise shared, for HMAC
    value: bytes


def keys_for(secrets: Secrets, style: Signing) -> tuple[list[VerificationKey], list[str]]:
    """The keys that suit the style, and for each secret that does not, why (never the secret itself)."""
    keys: list[VerificationKey] = []
    faults: list[str] = []
    for number, secret in enumerate(_each(secrets)):
        found = _key(number, secret, style)
        if isinstance(found, VerificationKey):
            keys.append(found)
        else:
            faults.append(found)
    if not keys:
        raise VerificationError(Refusal.BAD_SECRET, " ".join(faults) or "No secret was given.")
    return keys, faults


def _each(secrets: object) -> Iterable[object]:
    if isinstance(secrets, str):
        return (secrets,)
    if isinstance(secrets, bytes) or not isinstance(secrets, Iterable):
        raise VerificationError(Refusal.BAD_SECRET, "A secret is a string, or a list of strings.")
    return secrets


def _key(number: int, secret: object, style: Signing) -> VerificationKey | str:
    if not isinstance(secret, str):
        return "A secret is text."
    # A public key is public: if it were taken as the text of a shared secret, anybody could sign with it.
    if secret.startswith(PUBLIC_PREFIX):
        if style is Signing.CLASSIC:
            return f"A public key ({PUBLIC_PREFIX}…) verifies standard signatures only."
        return _public(number, secret)
    if secret.startswith(PRIVATE_PREFIX):
        return f"This is a private key ({PRIVATE_PREFIX}…): a receiver needs the public one, {PUBLIC_PREFIX}…"
    try:
        return VerificationKey(number, False, key_of(secret, style))
    except Invalid as refused:
        return refused.detail


def _public(number: int, secret: str) -> VerificationKey | str:
    try:
        value = b64decode(secret[len(PUBLIC_PREFIX) :], validate=True)
    except ValueError:
        value = b""
    if len(value) != PUBLIC_KEY_BYTES:
        return f"A public key is {PUBLIC_PREFIX!r} followed by {PUBLIC_KEY_BYTES} bytes in padded base64."
    return VerificationKey(number, True, value)
