"""Verifies that a request came from hookline, unchanged and just now.

Each style proves what it signs and no more: `standard` the event's id, the time and the body; `classic` only the
body. The other headers are passed on as hints.
"""

import hmac
import re
from base64 import b64encode
from typing import NamedTuple

from hookline.receiver import ed25519
from hookline.receiver.fields import Fields, Headers, malformed
from hookline.receiver.keys import Secrets, VerificationKey, keys_for
from hookline.receiver.refusal import Refusal, VerificationError
from hookline.words.signing import Signing

TOLERANCE = 300.0  # seconds; what Standard Webhooks recommends
MAX_SIGNATURES = (
    16  # a rotation has two; checking an ed25519 signature costs time that a stranger must not waste
)

# No dot: with one, bytes could move between the end of the id and the start of the body under the same signature.
_ID = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,255}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_NUMBER = re.compile(r"[0-9]{1,6}")


class Verified(NamedTuple):
    """A request that came from hookline."""

    style: Signing
    id: str  # of the event: the same on every attempt and replay. Signed in standard, a hint in classic
    timestamp: int | None  # when it was sent, in seconds since 1970; None in classic, which does not sign it
    body: bytes  # the bytes that were signed: parse these
    secret_number: int  # which of the secrets verified it, from 0: one that verifies nothing any more can go
    event_type: str | None  # a hint: no style signs it
    attempt: int | None  # a hint: no style signs it; 1 is the first request
    hops: int = 0  # a hint: pass it on with events that you publish because of this one, so that loops end


def verify(
    secret: Secrets,
    headers: Headers,
    body: bytes,
    *,
    now: float | None = None,
    tolerance: float = TOLERANCE,
    style: str | None = None,
) -> Verified:
    """Verify a request; raises `VerificationError` and nothing else, whatever the secrets and the request hold.

    `secret` is the endpoint's as it was shown (`whsec_…`, a classic secret's text, or a public key `whpk_…`),
    or several of them during a rotation. `body` is the raw body, before any decoding. `now` is in seconds since 1970.
    With a `style` (`"standard"`, `"classic"`), requests signed in the other one are refused.
    """
    if not isinstance(body, bytes | bytearray | memoryview):
        raise VerificationError(Refusal.BAD_BODY, "The body must be the bytes that were received.")
    fields = Fields(headers)
    if _style(fields, style) is Signing.CLASSIC:
        return _classic(secret, fields, bytes(body))
    verified, sent = _standard(secret, fields, bytes(body))
    _check_time(sent, _wall() if now is None else now, tolerance)
    return verified


def _style(fields: Fields, wanted: str | None) -> Signing:
    if wanted is not None:
        return Signing(wanted)
    is_classic = "x-webhook-signature" in fields and "webhook-signature" not in fields
    return Signing.CLASSIC if is_classic else Signing.STANDARD


def _standard(secrets: Secrets, fields: Fields, body: bytes) -> tuple[Verified, int]:
    id, timestamp = fields.need("webhook-id"), fields.need("webhook-timestamp")
    given = fields.need("webhook-signature").split(" ")
    if not _ID.fullmatch(id):
        raise malformed("webhook-id", "is not an id")
    if not _TIMESTAMP.fullmatch(timestamp):
        raise malformed("webhook-timestamp", "is not a time in seconds since 1970")
    if len(given) > MAX_SIGNATURES:
        raise malformed("webhook-signature", "has too many signatures")
    message = f"{id}.{timestamp}.".encode("ascii") + body
    keys, faults = keys_for(secrets, Signing.STANDARD)
    number = _proving([_standard_proof(key, given, message) for key in keys], keys, faults)
    verified = Verified(
        style=Signing.STANDARD,
        id=id,
        timestamp=int(timestamp),
        body=body,
        secret_number=number,
        event_type=fields.get("webhook-event"),
        attempt=_number(fields.get("webhook-attempt")),
        hops=_number(fields.get("hookline-hops")) or 0,
    )
    return verified, int(timestamp)


def _standard_proof(key: VerificationKey, given: list[str], message: bytes) -> bool:
    if key.is_public:
        prefix = "v1a,"
        signatures = [each[len(prefix) :] for each in given if each.startswith(prefix)]
        return any(ed25519.is_signed(key.value, signature, message) for signature in signatures)
    return _is_among(b"v1," + b64encode(hmac.digest(key.value, message, "sha256")), given)


def _classic(secrets: Secrets, fields: Fields, body: bytes) -> Verified:
    given = [fields.need("x-webhook-signature")]
    if "x-webhook-signature-next" in fields:
        given.append(fields.need("x-webhook-signature-next"))
    id = fields.need("x-event-id")
    if not _ID.fullmatch(id):
        raise malformed("x-event-id", "is not an id")
    keys, faults = keys_for(secrets, Signing.CLASSIC)
    proofs = [
        _is_among(b"sha256=" + hmac.digest(key.value, body, "sha256").hex().encode(), given) for key in keys
    ]
    return Verified(
        style=Signing.CLASSIC,
        id=id,
        timestamp=None,
        body=body,
        secret_number=_proving(proofs, keys, faults),
        event_type=fields.get("x-webhook-event"),
        attempt=_number(fields.get("x-webhook-attempt")),
        hops=_number(fields.get("hookline-hops")) or 0,
    )


def _is_among(expected: bytes, given: list[str]) -> bool:
    # A list, not a generator: every comparison is made, so that the time does not tell which one matched.
    return any([hmac.compare_digest(expected, each.encode("ascii")) for each in given])


def _proving(proofs: list[bool], keys: list[VerificationKey], faults: list[str]) -> int:
    """The index of the first secret that verifies the request."""
    if True in proofs:
        return keys[proofs.index(True)].number
    if faults:  # the right secret may be among those that could not be tried
        raise VerificationError(Refusal.BAD_SECRET, "None of the usable secrets matches. " + " ".join(faults))
    raise VerificationError(Refusal.WRONG_SIGNATURE, "The signature does not match the request.")


def _check_time(sent: int, now: float, tolerance: float) -> None:
    age = now - sent
    # Written so that NaN refuses.
    if not age <= tolerance:
        raise VerificationError(Refusal.TOO_OLD, f"The request was signed more than {tolerance:g} s ago.")
    if not age >= -tolerance:
        raise VerificationError(
            Refusal.TOO_NEW, f"The request was signed more than {tolerance:g} s in the future."
        )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def _wall() -> float:
    from hookline.clock import SystemClock  # loads asyncio, which a synchronous receiver does not need

    return SystemClock().wall()
