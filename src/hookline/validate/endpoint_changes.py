"""Applies given fields to an endpoint, a new or a stored one.

The API, the command line and programs that use the library all come through here. A checked endpoint can be stored and
sent to.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from hookline.crypto import signing
from hookline.crypto.sealing import Secrets
from hookline.errors import Invalid
from hookline.model import Endpoint, EndpointId, Signature, Signing
from hookline.rules.address import Network
from hookline.rules.destination import canonical
from hookline.rules.rotation import is_overlapping
from hookline.validate.endpoint_fields import BY_NAME, FIELDS, IN_PATCH, shown_as
from hookline.validate.names import check_known

# Nothing worth keeping is lost with these: a secret that cannot be read is replaced by a rotation.
_NOT_GIVEN = frozenset({"secret", "old_secret", "old_secret_until", "signature", "disabled_reason"}) | {
    "created_at",
    "updated_at",
}
_TICK = 1e-6  # seconds; both databases keep times to the microsecond


def new_endpoint(
    fields: Mapping[str, Any],
    *,
    id: EndpointId,
    now: float,
    private_allowed: bool,
    allowed: Sequence[Network] | None = None,
    denied: Sequence[Network] = (),
) -> Endpoint:
    """The endpoint that these fields describe; `Invalid` names the field that is invalid."""
    check_known(fields, BY_NAME)
    fields = _with_allowed_url(fields, private_allowed=private_allowed, allowed=allowed, denied=denied)
    values: dict[str, Any] = {
        field.attribute: field.created(fields.get(field.name))
        if field.name in fields or field.is_required
        else field.default
        for field in FIELDS
    }
    style = values["signing"]
    values["secret"] = chosen_secret(
        values["secret"],
        style=style,
        signature=None if fields.get("signature") is None else values["signature"],
    )
    values["signature"] = signing.signature_of(values["secret"], style)
    return Endpoint(id=id, **values, created_at=now, updated_at=now)


def patched(
    endpoint: Endpoint,
    patch: Mapping[str, Any],
    *,
    now: float,
    private_allowed: bool,
    allowed: Sequence[Network] | None = None,
    denied: Sequence[Network] = (),
    secrets: Secrets | None = None,
    faults: Collection[str] = (),
) -> Endpoint:
    """The endpoint after a merge patch; `Invalid` names the field that is invalid.

    `secrets` are the endpoint's own, opened, if they are not stored plain. A stored field that is at `fault` is
    replaced, not merged.
    """
    check_known(patch, IN_PATCH)
    patch = _with_allowed_url(patch, private_allowed=private_allowed, allowed=allowed, denied=denied)
    changes: dict[str, Any] = {}
    for name, value in patch.items():
        field = IN_PATCH[name]
        before = getattr(endpoint, field.attribute)
        if field.fixed is not None:
            if (field.default if value is None else value) != before:
                raise Invalid(field.fixed, pointer=f"/{name}")
            continue
        if field.attribute in faults and field.merge is not None:
            before = field.default
        changes[field.attribute] = field.patched(before, value)
    if changes.get("enabled"):
        changes["disabled_reason"] = None
    if "signing" in changes:
        stored = secrets or Secrets(endpoint.secret, endpoint.old_secret, endpoint.old_secret_until)
        _check_style(changes["signing"], stored, has_two=is_overlapping(endpoint, at=now))
    changed = msgspec.structs.replace(endpoint, **changes, updated_at=later_than(endpoint.updated_at, now))
    return written_whole(changed, given=changes)


def written_whole(endpoint: Endpoint, *, given: Collection[str]) -> Endpoint:
    """The endpoint as it may be written: a stored value that cannot be read must be given anew, or it would be lost."""
    for name, why in endpoint.unread.items():
        if name not in given and name not in _NOT_GIVEN:
            raise Invalid(
                f"{name} of this endpoint is not valid ({why}); give it too.", pointer=f"/{shown_as(name)}"
            )
    return msgspec.structs.replace(endpoint, unread={}) if endpoint.unread else endpoint


def later_than(updated_at: float, now: float) -> float:
    """When it was changed. Never the same time twice: a replacement names the `updated_at` that was read before."""
    return max(now, round(updated_at + _TICK, 6))


def chosen_secret(value: str | None, *, style: Signing, signature: Signature | None) -> str:
    """The given secret, or a new one; the kind of signature is given, or follows from the secret."""
    secret = signing.new_secret(signature or Signature.V1) if value is None else value
    if signature is Signature.V1A and style is Signing.CLASSIC:
        raise Invalid("ed25519 signatures (v1a) are made in the standard style only.", pointer="/signature")
    signing.check_secret(secret, style)
    if signature is not None and signing.signature_of(secret, style) is not signature:
        raise Invalid(f"This secret does not make {signature} signatures.", pointer="/signature")
    return secret


def _with_allowed_url(
    fields: Mapping[str, Any],
    *,
    private_allowed: bool,
    allowed: Sequence[Network] | None,
    denied: Sequence[Network],
) -> Mapping[str, Any]:
    """The fields, with a URL that the server may call in its one spelling."""
    url = fields.get("url")
    if not isinstance(url, str):
        return fields
    return {**fields, "url": canonical(url, private_allowed=private_allowed, allowed=allowed, denied=denied)}


def _check_style(style: Signing, secrets: Secrets, *, has_two: bool) -> None:
    try:
        signing.check_secret(secrets.secret, style)
        if has_two and secrets.old is not None:
            signing.check_secret(secrets.old, style)
    except Invalid as error:
        raise Invalid(
            f"The endpoint's secret does not suit {style} signing. {error.detail}", pointer="/signing"
        ) from None
