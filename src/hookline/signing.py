"""How does a receiver know that a request came from us and was not changed?

Pure functions over keys and bytes. Two styles: `standard` is Standard Webhooks (id, time and body are signed
with the decoded key), `classic` is what receivers written by hand expect (the body alone, keyed with the
secret's text as it was shown).
"""

import re
import secrets
from base64 import b64decode, b64encode
from binascii import b2a_base64
from hashlib import sha256

from hookline.errors import Invalid
from hookline.model import Signing

PREFIX = "whsec_"
_BLOCK_BYTES = 64  # of SHA-256
NEW_KEY_BYTES = 32  # as long as the digest: more adds nothing to HMAC-SHA256
MIN_KEY_BYTES, MAX_KEY_BYTES = 24, 64

_CLASSIC = re.compile(r"[\x21-\x7e]{16,256}\Z")


def new_secret() -> str:
    """A secret nobody has seen, good for both styles."""
    return PREFIX + b64encode(secrets.token_bytes(NEW_KEY_BYTES)).decode()


def check_secret(secret: str, style: Signing) -> None:
    """Raise `Invalid` for a secret that this style cannot sign with; the message never shows the secret."""
    if style is Signing.CLASSIC:
        if not _CLASSIC.match(secret):
            raise _refused("A secret for classic signing has 16 to 256 visible ASCII characters, no spaces.")
        return
    key = _decoded(secret)
    if key is None:
        raise _refused(
            f"A secret for standard signing is {PREFIX!r} followed by padded base64; leave it out to have one made."
        )
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise _refused(
            f"A secret for standard signing holds {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes in base64; "
            f"this one holds {len(key)}."
        )


def key_of(secret: str, style: Signing) -> bytes:
    """The HMAC key behind a secret; decode once, sign often."""
    check_secret(secret, style)
    if style is Signing.CLASSIC:
        return secret.encode("ascii")
    return b64decode(secret[len(PREFIX) :])


class Mac:
    """HMAC-SHA256 under one key, the key's own two blocks hashed in advance.

    Not `hmac.digest`: it gives up the interpreter's lock for every message, however short, and beside a busy
    thread of the store getting it back takes up to 5 ms.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        block = (key if len(key) <= _BLOCK_BYTES else sha256(key).digest()).ljust(_BLOCK_BYTES, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in block))

    def digest(self, message: bytes) -> bytes:
        """The message's 32 bytes."""
        inner = self._inner.copy()
        inner.update(message)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()


def sign_standard(mac: Mac, id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`. An id never holds a dot, so no two triples share a message."""
    signature = mac.digest(b"%b.%d.%b" % (id.encode("ascii"), timestamp, body))
    return "v1," + b2a_base64(signature, newline=False).decode("ascii")


def sign_classic(mac: Mac, body: bytes) -> str:
    """The value of `x-webhook-signature`."""
    return "sha256=" + mac.digest(body).hex()


def _decoded(secret: str) -> bytes | None:
    if not secret.startswith(PREFIX):
        return None
    text = secret[len(PREFIX) :]
    try:
        key = b64decode(text, validate=True)
    except ValueError:
        return None
    # Receivers' decoders differ on stray trailing bits: only the one spelling that all of them read will do.
    return key if b64encode(key).decode() == text else None


def _refused(detail: str) -> Invalid:
    return Invalid(detail, pointer="/secret")
