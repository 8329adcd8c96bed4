"""Signs requests, so that a receiver can check who sent them and that nothing was changed.

Pure functions over keys and bytes. There are two styles. `standard` is Standard Webhooks: id, time and body are signed
with the decoded key. `classic` is what handwritten receivers expect: the body alone, keyed with the secret's text as
it was shown. A standard secret may also be an ed25519 key (`v1a`): the receiver then gets the public half, which
cannot sign.
"""

import re
import secrets
from base64 import b64decode, b64encode
from binascii import b2a_base64
from hashlib import sha256
from typing import TYPE_CHECKING

from hookline.errors import Invalid
from hookline.words.signing import Signature, Signing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PREFIX = "whsec_"
PRIVATE_PREFIX, PUBLIC_PREFIX = "whsk_", "whpk_"  # of an ed25519 key's two halves
_SEED_BYTES = 32
_BLOCK_BYTES = 64  # of SHA-256
NEW_KEY_BYTES = 32  # as long as the digest: a longer key adds nothing to HMAC-SHA256
MIN_KEY_BYTES, MAX_KEY_BYTES = 24, 64

_CLASSIC = re.compile(r"[\x21-\x7e]{16,256}\Z")


def new_secret(signature: Signature = Signature.V1) -> str:
    """A new secret; with `v1` it works in both styles, with `v1a` it is a private key followed by its public half."""
    if signature is Signature.V1A:
        seed = secrets.token_bytes(_SEED_BYTES)
        return PRIVATE_PREFIX + b64encode(seed + _public(_private(seed))).decode()
    return PREFIX + b64encode(secrets.token_bytes(NEW_KEY_BYTES)).decode()


def check_secret(secret: str, style: Signing) -> None:
    """Raise `Invalid` for a secret that this style cannot sign with; the message never shows the secret."""
    if style is Signing.CLASSIC:
        if not _CLASSIC.match(secret):
            raise _refused("A secret for classic signing has 16 to 256 visible ASCII characters, no spaces.")
        if secret.startswith((PRIVATE_PREFIX, PUBLIC_PREFIX)):
            raise _refused("An ed25519 key signs in the standard style only.")
        return
    if secret.startswith(PRIVATE_PREFIX):
        _seed(secret)
        return
    key = _decoded(secret, PREFIX)
    if key is None:
        raise _refused(
            f"A secret for standard signing is {PREFIX!r} followed by padded base64 of {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes."
        )
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise _refused(
            f"A secret for standard signing holds {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes in base64; "
            f"this one holds {len(key)}."
        )


def signature_of(secret: str, style: Signing) -> Signature:
    """The kind of signature that a secret makes."""
    is_key = style is Signing.STANDARD and secret.startswith(PRIVATE_PREFIX)
    return Signature.V1A if is_key else Signature.V1


def public_key_of(secret: str) -> str:
    """The key that a receiver verifies `v1a` signatures with."""
    return PUBLIC_PREFIX + b64encode(_public(_private(_seed(secret)))).decode()


def key_of(secret: str, style: Signing) -> bytes:
    """The HMAC key in a secret; decode once, sign often."""
    check_secret(secret, style)
    if style is Signing.CLASSIC:
        return secret.encode("ascii")
    return b64decode(secret[len(PREFIX) :])


class Mac:
    """HMAC-SHA256 under one key, with the key's own two blocks hashed in advance.

    Not `hmac.digest`: it releases the interpreter's lock for every message, however short. Beside a busy thread of the
    store, getting the lock back takes up to 5 ms.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        block = (key if len(key) <= _BLOCK_BYTES else sha256(key).digest()).ljust(_BLOCK_BYTES, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in block))

    def digest(self, *parts: bytes) -> bytes:
        """The 32-byte digest of these parts, joined; a payload is not copied for that."""
        inner = self._inner.copy()
        for part in parts:
            inner.update(part)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()


class Ed25519:
    """Signatures under one private key."""

    __slots__ = ("_key",)

    def __init__(self, secret: str) -> None:
        self._key = _private(_seed(secret))

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature of the message."""
        return self._key.sign(message)


def sign_standard(mac: Mac, id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`. An id never contains a dot, so no two triples share a message."""
    signature = mac.digest(f"{id}.{timestamp}.".encode("ascii"), body)
    return "v1," + b2a_base64(signature, newline=False).decode("ascii")


def sign_with_key(key: Ed25519, id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature` for a receiver that has the public key."""
    signature = key.sign(b"%b.%d.%b" % (id.encode("ascii"), timestamp, body))
    return "v1a," + b2a_base64(signature, newline=False).decode("ascii")


def sign_classic(mac: Mac, body: bytes) -> str:
    """The value of `x-webhook-signature`."""
    return "sha256=" + mac.digest(body).hex()


def _private(seed: bytes) -> "Ed25519PrivateKey":
    # Imported here, not above: it takes 20 ms, and only users of such keys pay for them.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed)


def _public(key: "Ed25519PrivateKey") -> bytes:
    return key.public_key().public_bytes_raw()


def _seed(secret: str) -> bytes:
    """The private half of an ed25519 key; `Invalid` if it is not one or if the public half is of another key."""
    key = _decoded(secret, PRIVATE_PREFIX)
    if key is None or len(key) not in (_SEED_BYTES, 2 * _SEED_BYTES):
        raise _refused(
            f"An ed25519 key is {PRIVATE_PREFIX!r} followed by padded base64 of 32 bytes, or of 64 with the public half."
        )
    seed, public = key[:_SEED_BYTES], key[_SEED_BYTES:]
    if public and public != _public(_private(seed)):
        raise _refused("The two halves of this ed25519 key do not belong together.")
    return seed


def _decoded(secret: str, prefix: str) -> bytes | None:
    if not secret.startswith(prefix):
        return None
    text = secret[len(prefix) :]
    try:
        key = b64decode(text, validate=True)
    except ValueError:
        return None
    # Receivers' decoders differ on stray trailing bits, so only the one spelling that all of them read is valid.
    return key if b64encode(key).decode() == text else None


def _refused(detail: str) -> Invalid:
    return Invalid(detail, pointer="/secret")
