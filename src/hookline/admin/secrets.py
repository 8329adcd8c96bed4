"""Shows and rotates the secrets of endpoints."""

import hmac
from typing import Any

import msgspec
import structlog

from hookline import ids, rfc3339
from hookline.admin.audit import Audit
from hookline.clock import Clock
from hookline.crypto import signing
from hookline.crypto.sealing import Sealer
from hookline.errors import Invalid, NotFound, OverlapUnderWay, Overloaded
from hookline.model import AuditAction, Endpoint, EndpointId, Signature
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.rules.audit_changes import noted
from hookline.rules.rotation import DEFAULT_OVERLAP_S, LONGEST_OVERLAP_S, UnderWay, is_overlapping, rotate
from hookline.store.contract import Store
from hookline.validate.api_schema import Moment
from hookline.validate.endpoint_changes import chosen_secret, later_than, written_whole
from hookline.validate.endpoint_fields import read_secret, read_signature
from hookline.validate.numbers import whole
from hookline.validate.stored_endpoint import EndpointJudge

_TRIES = 10  # against others who change the same endpoint at the same moment

log = structlog.get_logger()


class RotationInput(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a rotation, unchecked; None is the same as absent."""

    overlap_s: Any = None
    secret: Any = None  # the caller's own, instead of a new one
    signature: Any = None  # by default unchanged


class OldSecretReport(msgspec.Struct, kw_only=True):
    """A secret that still signs beside the new one."""

    secret: str
    signature: str
    public_key: str | None
    valid_until: Moment


class SecretReport(msgspec.Struct, kw_only=True):
    """The secret that signs an endpoint's requests."""

    secret: str
    signature: str
    public_key: str | None  # of v1a: all that the receiver needs
    old: OldSecretReport | None  # while it signs


class Rotation:
    """Shows and replaces secrets."""

    def __init__(
        self, store: Store, catalogue: Catalogue, sealer: Sealer, clock: Clock, audit: Audit
    ) -> None:
        self._store = store
        self._audit = audit
        self._catalogue = catalogue
        self._sealer = sealer
        self._judge = EndpointJudge(sealer)
        self._clock = clock

    async def read(self, id: EndpointId) -> SecretReport:
        """The secrets that sign now. Nobody gets them without an entry in the audit trail."""
        endpoint = await self._endpoint(id)
        report = self._shown(endpoint)
        entry = self._audit.entry(
            AuditAction.SECRET_REVEALED, "endpoint", ids.show("endpoint", id), account=endpoint.account
        )
        await self._store.write_audit(entry)
        log.info("secret.shown", endpoint_id=ids.show("endpoint", id))
        return report

    async def rotate(self, id: EndpointId, asked: RotationInput) -> SecretReport:
        """Give the endpoint another secret; both sign until the overlap ends."""
        overlap = DEFAULT_OVERLAP_S
        if asked.overlap_s is not None:
            overlap = whole(asked.overlap_s, 0, LONGEST_OVERLAP_S, pointer="/overlap_s")
        signature = None if asked.signature is None else read_signature(asked.signature)
        given = None if asked.secret is None else read_secret(asked.secret)
        for _ in range(_TRIES):
            endpoint = await self._endpoint(id)
            kind = signature if given is not None else signature or endpoint.signature
            secret = chosen_secret(given, style=endpoint.signing, signature=kind)
            now = self._clock.now()
            # A secret that cannot sign is replaced at once: there is nothing to overlap with.
            opened = None if "secret" in self._judge.faults(endpoint) else self._sealer.opened(endpoint)
            if opened is not None and _is_one_of(
                secret, opened.secret, opened.old if is_overlapping(endpoint, at=now) else None
            ):
                raise Invalid(
                    "This secret is already in use; give another one, or leave it out to get a new one.",
                    pointer="/secret",
                )
            rotated = rotate(
                endpoint,
                secret,
                signature=signing.signature_of(secret, endpoint.signing),
                overlap=0 if opened is None else overlap,
                now=now,
            )
            if isinstance(rotated, UnderWay):
                raise OverlapUnderWay(rfc3339.show(rotated.until))
            changed = msgspec.structs.replace(
                rotated.endpoint, updated_at=later_than(endpoint.updated_at, now)
            )
            changed = self._sealer.sealed(written_whole(changed, given=()))
            entry = self._audit.entry(
                AuditAction.SECRET_ROTATED,
                "endpoint",
                ids.show("endpoint", id),
                account=endpoint.account,
                changes=noted(overlap_s=overlap),
            )
            if await self._store.update_endpoint(changed, was=endpoint.updated_at, now=now, audit=entry):
                await self._catalogue.include_own()
                log.info("secret.rotated", endpoint_id=ids.show("endpoint", id), overlap_s=overlap)
                return self._shown(changed)
        raise Overloaded(
            f"The endpoint {ids.show('endpoint', id)} was changed by others meanwhile; try again."
        )

    async def _endpoint(self, id: EndpointId) -> Endpoint:
        found = await self._store.endpoints_by_id([id])
        if not found:
            raise NotFound("endpoint", ids.show("endpoint", id))
        return found[0]

    def _shown(self, endpoint: Endpoint) -> SecretReport:
        opened = self._sealer.opened(endpoint)
        old = None
        if (
            opened.old is not None
            and opened.old_until is not None
            and is_overlapping(endpoint, at=self._clock.now())
        ):
            signature, public_key = _half(opened.old, endpoint)
            old = OldSecretReport(
                secret=opened.old,
                signature=signature,
                public_key=public_key,
                valid_until=rfc3339.show(opened.old_until),
            )
        signature, public_key = _half(opened.secret, endpoint)
        return SecretReport(secret=opened.secret, signature=signature, public_key=public_key, old=old)


def _half(secret: str, endpoint: Endpoint) -> tuple[str, str | None]:
    """The kind of a secret's signatures, and the public key that verifies them without being able to sign."""
    signature = signing.signature_of(secret, endpoint.signing)
    return signature.value, signing.public_key_of(secret) if signature is Signature.V1A else None


def _is_one_of(secret: str, *used: str | None) -> bool:
    given = secret.encode()
    return any(hmac.compare_digest(given, each.encode()) for each in used if each is not None)
