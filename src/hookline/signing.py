"""How does a receiver know that a request came from us and was not changed?

Pure functions over keys and bytes. Two styles: `standard` is Standard Webhooks (id, time and body are signed
with the decoded key), `classic` is what receivers written by hand expect (the body alone, keyed with the
secret's text as it was shown).
"""

import re
import secrets
from base64 import b64decode, b64encode
from binascii import b2a_base64
from hmac import digest

from hookline.errors import Invalid
from hookline.model import Signing

PREFIX = "whsec_"
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


def sign_standard(key: bytes, id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`. An id never holds a dot, so no two triples share a message."""
    mac = digest(key, b"%b.%d.%b" % (id.encode("ascii"), timestamp, body), "sha256")
    return "v1," + b2a_base64(mac, newline=False).decode("ascii")


def sign_classic(key: bytes, body: bytes) -> str:
    """The value of `x-webhook-signature`."""
    return "sha256=" + digest(key, body, "sha256").hex()


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
