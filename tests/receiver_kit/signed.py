"""Requests as hookline would send them, for tests that need one."""

import base64

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hookline.crypto.signing import Mac, key_of, sign_classic, sign_standard
from hookline.model import Signing

NOW = 1_800_000_000
ID = "evt_06jw3v1q9s5k3m8b7c2d4f6g0h"
BODY = b'{"id":42,"name":"\xc3\xa9"}'


def secret_of(letter: str) -> str:
    return "whsec_" + base64.b64encode(letter.encode() * 32).decode()


SECRET, OTHER = secret_of("a"), secret_of("b")
CLASSIC_SECRET = "a secret brought along".replace(" ", "-")


def standard(
    *secrets: str, body: bytes = BODY, id: str = ID, at: int = NOW, signature: str | None = None
) -> dict[str, str]:
    """The headers of a standard request signed with each secret in turn."""
    macs = [Mac(key_of(secret, Signing.STANDARD)) for secret in secrets]
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": signature or " ".join(sign_standard(mac, id, at, body) for mac in macs),
        "webhook-event": "order.paid",
        "webhook-attempt": "3",
    }


def classic(secret: str, *, following: str | None = None, body: bytes = BODY) -> dict[str, str]:
    """The headers of a classic request; `following` is the secret that will take over.

    Signs with any text, as a forger would.
    """
    headers = {
        "x-webhook-id": "dlv_06jw3v1q9s5k3m8b7c2d4f6g0h",
        "x-event-id": ID,
        "x-idempotency-key": ID,
        "x-webhook-event": "order.paid",
        "x-webhook-timestamp": str(NOW),
        "x-delivery-timestamp": str(NOW),
        "x-webhook-signature": sign_classic(Mac(secret.encode()), body),
        "x-webhook-attempt": "3",
    }
    if following is not None:
        headers["x-webhook-signature-next"] = sign_classic(Mac(following.encode()), body)
    return headers


class Pair:
    """An ed25519 pair of keys, as Standard Webhooks writes them."""

    def __init__(self, seed: bytes = b"s" * 32) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        raw = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.public = "whpk_" + base64.b64encode(raw).decode()
        self.private = "whsk_" + base64.b64encode(seed).decode()

    def sign(self, body: bytes = BODY, *, id: str = ID, at: int = NOW) -> str:
        return "v1a," + base64.b64encode(self._key.sign(f"{id}.{at}.".encode() + body)).decode()
