"""What proves whom a request is from?

A signer makes the value of the signature header. It is made once per version of an endpoint, and the usual one,
with one shared secret, is the plain function with its key: two secrets that overlap, or an ed25519 key, cost
only those who have them. The old secret leaves by itself: its time is compared with the request's.
"""

from collections.abc import Callable
from functools import partial

from hookline.crypto import signing
from hookline.crypto.sealing import Secrets
from hookline.crypto.signing import (
    Ed25519,
    Mac,
)
from hookline.model import Signature, Signing

# (the event's id, the timestamp in seconds, the body) -> the header's value
Signer = Callable[[str, int, bytes], str]


def signer_of(secrets: Secrets, style: Signing) -> Signer:
    """What signs an endpoint's requests."""
    one = _classic if style is Signing.CLASSIC else _standard
    new = one(secrets.secret)
    if secrets.old is None or secrets.old_until is None:
        return new
    both = _in_two_headers if style is Signing.CLASSIC else _in_one_list
    return partial(both, new, one(secrets.old), secrets.old_until)


def _standard(secret: str) -> Signer:
    if signing.signature_of(secret, Signing.STANDARD) is Signature.V1A:
        return partial(signing.sign_with_key, Ed25519(secret))
    return partial(signing.sign_standard, Mac(signing.key_of(secret, Signing.STANDARD)))


def _classic(secret: str) -> Signer:
    return partial(_sign_body, Mac(signing.key_of(secret, Signing.CLASSIC)))


def _sign_body(mac: Mac, id: str, timestamp: int, body: bytes) -> str:
    return "sha256=" + mac.digest(body).hex()


def _in_one_list(new: Signer, old: Signer, until: float, id: str, timestamp: int, body: bytes) -> str:
    signature = new(id, timestamp, body)
    return signature if timestamp >= until else f"{signature} {old(id, timestamp, body)}"


def _in_two_headers(new: Signer, old: Signer, until: float, id: str, timestamp: int, body: bytes) -> str:
    # A receiver written by hand compares one header with one signature: the old one stays where it was.
    signature = new(id, timestamp, body)
    if timestamp >= until:
        return signature
    return f"{old(id, timestamp, body)}\r\nx-webhook-signature-next: {signature}"
