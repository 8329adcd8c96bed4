"""Checks ed25519 signatures."""

from base64 import b64decode, b64encode

from hookline.receiver.refusal import Refusal, VerificationError


def is_signed(public_key: bytes, signature: str, message: bytes) -> bool:
    """Whether the signature (in base64) is this key's for this message."""
    try:
        # Imported here: receivers of HMAC signatures need not have the package, nor pay for its import.
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise VerificationError(
            Refusal.BAD_SECRET, "Verifying with a public key needs the package `cryptography`; install it."
        ) from None
    try:
        raw = b64decode(signature, validate=True)
        if b64encode(raw).decode() != signature:
            return False  # stray bits after the last byte: this text decodes to the same, but was not sent
        Ed25519PublicKey.from_public_bytes(public_key).verify(raw, message)
    except (ValueError, InvalidSignature):
        return False
    return True
