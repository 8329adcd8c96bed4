"""The words for how requests are signed.

They are not in `model`: receivers need them, and must not pay for the rest of it.
"""

from enum import StrEnum


class Signing(StrEnum):
    """The style of an endpoint's signatures."""

    STANDARD = "standard"
    CLASSIC = "classic"


class Signature(StrEnum):
    """How the signatures of `standard` are made; `classic` always uses a shared secret."""

    V1 = "v1"  # HMAC-SHA256 under a secret that both sides know
    V1A = "v1a"  # ed25519: the receiver has only the public key
