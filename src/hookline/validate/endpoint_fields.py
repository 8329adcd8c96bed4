"""Checks every field of an endpoint.

The API, the command line and programs that use the library all come through here. A checked endpoint can be stored and
sent to.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from hookline.crypto import signing
from hookline.crypto.sealing import Secrets
from hookline.errors import Invalid
from hookline.model import (
    DEFAULT_ACCOUNT,
    DEFAULT_RETRY_STATUSES,
    CircuitPolicy,
    Endpoint,
    EndpointId,
    Signature,
    Signing,
)
from hookline.rules.address import Network
from hookline.rules.destination import canonical
from hookline.rules.rotation import is_overlapping
from hookline.validate import headers, limits, metadata, retry_policy
from hookline.validate.names import check_account, check_known, check_pattern, is_text
from hookline.validate.numbers import whole

MAX_PATTERNS = 100
MAX_DESCRIPTION = 1_000

# Nothing worth keeping is lost with these: a secret that cannot be read is replaced by a rotation.
_NOT_GIVEN = frozenset({"secret", "old_secret", "old_secret_until", "signature", "disabled_reason"}) | {
    "created_at",
    "updated_at",
}
_TICK = 1e-6  # seconds; both databases keep times to the microsecond


class EndpointInput(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a new endpoint, unchecked; None is the same as absent, except for `circuit`."""

    url: Any = UNSET
    events: Any = UNSET
    account: Any = UNSET
    description: Any = UNSET
    enabled: Any = UNSET
    headers: Any = UNSET
    metadata: Any = UNSET
    filter: Any = UNSET
    signing: Any = UNSET
    signature: Any = UNSET
    secret: Any = UNSET
    timeout_ms: Any = UNSET
    max_in_flight: Any = UNSET
    max_redirects: Any = UNSET
    rate_limit: Any = UNSET
    ordering: Any = UNSET
    paused: Any = UNSET
    retry: Any = UNSET
    retry_statuses: Any = UNSET
    circuit: Any = UNSET


class EndpointPatch(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a patch, unchecked; None resets a field to its default, and removes a header or the circuit."""

    url: Any = UNSET
    events: Any = UNSET
    account: Any = UNSET  # must be unchanged: an endpoint does not move
    description: Any = UNSET
    enabled: Any = UNSET
    headers: Any = UNSET
    metadata: Any = UNSET
    filter: Any = UNSET
    signing: Any = UNSET
    signature: Any = UNSET  # must be unchanged: another kind needs another secret
    timeout_ms: Any = UNSET
    max_in_flight: Any = UNSET
    max_redirects: Any = UNSET
    rate_limit: Any = UNSET
    ordering: Any = UNSET
    paused: Any = UNSET
    retry: Any = UNSET
    retry_statuses: Any = UNSET
    circuit: Any = UNSET


_Fields = TypeVar("_Fields", EndpointInput, EndpointPatch)

_DEFAULT = {
    field.name: field.default
    for field in msgspec.structs.fields(Endpoint)
    if field.default is not msgspec.NODEFAULT
}


def read_fields(kind: type[_Fields], fields: Mapping[str, Any]) -> _Fields:
    """The named fields as a value; `Invalid` with `unknown_field` for a name that is not a field."""
    check_known(fields, kind.__struct_fields__)
    return kind(**fields)


def new_endpoint(
    fields: EndpointInput,
    *,
    id: EndpointId,
    now: float,
    private_allowed: bool,
    allowed: Sequence[Network] | None = None,
) -> Endpoint:
    """The endpoint that these fields describe; `Invalid` names the field that is invalid."""
    style = _signing(_given(fields.signing, Signing.STANDARD))
    secret = chosen_secret(
        _given(fields.secret, None),
        style=style,
        signature=None if _given(fields.signature, None) is None else read_signature(fields.signature),
    )
    return Endpoint(
        id=id,
        account=check_account(_given(fields.account, DEFAULT_ACCOUNT)),
        url=_url(_given(fields.url, None), private_allowed=private_allowed, allowed=allowed),
        events=_events(_given(fields.events, None)),
        secret=secret,
        signing=style,
        signature=signing.signature_of(secret, style),
        description=read_description(_given(fields.description, "")),
        enabled=_flag(_given(fields.enabled, True), "enabled"),
        paused=_flag(_given(fields.paused, False), "paused"),
        headers=headers.merged({}, _given(fields.headers, {})),
        metadata=metadata.checked(_given(fields.metadata, {})),
        filter=_filter(_given(fields.filter, None)),
        timeout=_timeout(_given(fields.timeout_ms, None)),
        max_in_flight=_max_in_flight(_given(fields.max_in_flight, None)),
        max_redirects=limits.max_redirects(_given(fields.max_redirects, None)),
        rate_limit=limits.rate_limit(_given(fields.rate_limit, None)),
        ordering=limits.ordering(_given(fields.ordering, None)),
        retry=_retry(_given(fields.retry, None)),
        retry_statuses=_retry_statuses(_given(fields.retry_statuses, None)),
        circuit=CircuitPolicy() if fields.circuit is UNSET else limits.circuit(fields.circuit),
        created_at=now,
        updated_at=now,
    )


def patched(
    endpoint: Endpoint,
    patch: EndpointPatch,
    *,
    now: float,
    private_allowed: bool,
    allowed: Sequence[Network] | None = None,
    secrets: Secrets | None = None,
    faults: Collection[str] = (),
) -> Endpoint:
    """The endpoint after a merge patch; `Invalid` names the field that is invalid.

    `secrets` are the endpoint's own, opened, if they are not stored plain. A stored field that is at `fault` is
    replaced, not merged.
    """
    secrets = secrets or Secrets(endpoint.secret, endpoint.old_secret, endpoint.old_secret_until)
    changes: dict[str, Any] = {}
    if patch.url is not UNSET:
        changes["url"] = _url(patch.url, private_allowed=private_allowed, allowed=allowed)
    if patch.events is not UNSET:
        changes["events"] = _events(patch.events)
    if patch.account is not UNSET and patch.account != endpoint.account:
        raise Invalid("An endpoint stays with its account; create another one.", pointer="/account")
    if patch.description is not UNSET:
        changes["description"] = read_description(_given(patch.description, ""))
    if patch.enabled is not UNSET:
        changes["enabled"] = _flag(_given(patch.enabled, True), "enabled")
        if changes["enabled"]:
            changes["disabled_reason"] = None
    if patch.headers is not UNSET:
        changes["headers"] = (
            {}
            if patch.headers is None
            else headers.merged({} if "headers" in faults else endpoint.headers, patch.headers)
        )
    if patch.metadata is not UNSET:
        changes["metadata"] = (
            {}
            if patch.metadata is None
            else metadata.merged({} if "metadata" in faults else endpoint.metadata, patch.metadata)
        )
    if patch.signing is not UNSET:
        changes["signing"] = style = _signing(_given(patch.signing, Signing.STANDARD))
        try:
            signing.check_secret(secrets.secret, style)
            if is_overlapping(endpoint, at=now) and secrets.old is not None:
                signing.check_secret(secrets.old, style)
        except Invalid as error:
            raise Invalid(
                f"The endpoint's secret does not suit {style} signing. {error.detail}", pointer="/signing"
            ) from None
    if patch.signature is not UNSET and _given(patch.signature, Signature.V1) != endpoint.signature:
        raise Invalid(
            "Another kind of signature needs another secret: POST …/secret/rotate takes signature.",
            pointer="/signature",
        )
    if patch.filter is not UNSET:
        changes["filter"] = _filter(patch.filter)
    if patch.timeout_ms is not UNSET:
        changes["timeout"] = _timeout(patch.timeout_ms)
    if patch.max_in_flight is not UNSET:
        changes["max_in_flight"] = _max_in_flight(patch.max_in_flight)
    if patch.max_redirects is not UNSET:
        changes["max_redirects"] = limits.max_redirects(patch.max_redirects)
    if patch.rate_limit is not UNSET:
        changes["rate_limit"] = limits.rate_limit(
            patch.rate_limit, before=None if "rate_limit" in faults else endpoint.rate_limit
        )
    if patch.ordering is not UNSET:
        changes["ordering"] = limits.ordering(patch.ordering)
    if patch.paused is not UNSET:
        changes["paused"] = _flag(_given(patch.paused, False), "paused")
    if patch.retry is not UNSET:
        changes["retry"] = _retry(patch.retry)
    if patch.retry_statuses is not UNSET:
        changes["retry_statuses"] = _retry_statuses(patch.retry_statuses)
    if patch.circuit is not UNSET:
        changes["circuit"] = limits.circuit(
            patch.circuit, before=None if "circuit" in faults else endpoint.circuit
        )
    changed = msgspec.structs.replace(endpoint, **changes, updated_at=later_than(endpoint, now))
    return written_whole(changed, given=changes)


def written_whole(endpoint: Endpoint, *, given: Collection[str]) -> Endpoint:
    """The endpoint as it may be written: a stored value that cannot be read must be given anew, or it would be lost."""
    for name, why in endpoint.unread.items():
        if name not in given and name not in _NOT_GIVEN:
            raise Invalid(
                f"{name} of this endpoint is not valid ({why}); give it too.", pointer=f"/{_shown_as(name)}"
            )
    return msgspec.structs.replace(endpoint, unread={}) if endpoint.unread else endpoint


def _shown_as(field: str) -> str:
    return "timeout_ms" if field == "timeout" else field


def later_than(endpoint: Endpoint, now: float) -> float:
    """When it was changed. Never the same time twice: a replacement names the `updated_at` that was read before."""
    return max(now, round(endpoint.updated_at + _TICK, 6))


def chosen_secret(value: Any, *, style: Signing, signature: Signature | None) -> str:
    """The given secret, or a new one; the kind of signature is given, or follows from the secret."""
    if value is None:
        secret = signing.new_secret(signature or Signature.V1)
    elif not isinstance(value, str):
        raise Invalid("A secret is a text.", pointer="/secret")
    else:
        secret = value
    if signature is Signature.V1A and style is Signing.CLASSIC:
        raise Invalid("ed25519 signatures (v1a) are made in the standard style only.", pointer="/signature")
    signing.check_secret(secret, style)
    if signature is not None and signing.signature_of(secret, style) is not signature:
        raise Invalid(f"This secret does not make {signature} signatures.", pointer="/signature")
    return secret


def read_signature(value: Any) -> Signature:
    """A kind of signature."""
    try:
        return Signature(value)
    except ValueError:
        raise Invalid('signature is "v1" or "v1a".', pointer="/signature") from None


def _filter(value: Any) -> str | None:
    if value is None:
        return None
    from hookline.validate import payload_filter  # only endpoints with a filter pay for the import

    return payload_filter.checked(value)


def _given(value: Any, otherwise: Any) -> Any:
    return otherwise if value is UNSET or value is None else value


def _url(value: Any, *, private_allowed: bool, allowed: Sequence[Network] | None) -> str:
    if value is None:
        raise Invalid("An endpoint needs a url.", pointer="/url")
    if not isinstance(value, str):
        raise Invalid("A url is a text.", pointer="/url")
    return canonical(value, private_allowed=private_allowed, allowed=allowed)


def _events(value: Any) -> tuple[str, ...]:
    if value is None:
        raise Invalid('An endpoint needs events, such as ["order.*"] or ["*"].', pointer="/events")
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_PATTERNS:
        raise Invalid(f"events is a list of 1 to {MAX_PATTERNS} patterns.", pointer="/events")
    return tuple(
        dict.fromkeys(check_pattern(each, pointer=f"/events/{place}") for place, each in enumerate(value))
    )


def read_description(value: Any) -> str:
    """A description in free text."""
    if not isinstance(value, str) or len(value) > MAX_DESCRIPTION:
        raise Invalid(
            f"A description is a text of up to {MAX_DESCRIPTION:,} characters.", pointer="/description"
        )
    if not is_text(value):
        raise Invalid("A description cannot hold NUL or lone surrogates.", pointer="/description")
    return value


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"{name} is true or false.", pointer=f"/{name}")
    return value


def _retry(value: Any) -> dict[str, Any] | None:
    return None if value is None else retry_policy.retry(value)


def _retry_statuses(value: Any) -> tuple[str | int, ...]:
    return DEFAULT_RETRY_STATUSES if value is None else retry_policy.retry_statuses(value)


def _signing(value: Any) -> Signing:
    try:
        return Signing(value)
    except ValueError:
        raise Invalid('signing is "standard" or "classic".', pointer="/signing") from None


def _timeout(value: Any) -> float:
    if value is None:
        return float(_DEFAULT["timeout"])
    return whole(value, 1_000, 60_000, pointer="/timeout_ms") / 1_000


def _max_in_flight(value: Any) -> int:
    return whole(_DEFAULT["max_in_flight"] if value is None else value, 1, 1_000, pointer="/max_in_flight")
