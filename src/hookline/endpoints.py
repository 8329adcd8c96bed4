"""Which endpoints may exist?

Every field of an endpoint is checked here, whoever asks: the API, the command line or a program using the
library. What comes out can be stored and sent to.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from hookline import headers, metadata, signing
from hookline.errors import Invalid
from hookline.model import DEFAULT_ACCOUNT, Endpoint, EndpointId, Signing
from hookline.names import check_account, check_pattern, did_you_mean, is_text, pointer_step
from hookline.rules.address import Network
from hookline.rules.destination import canonical

MAX_PATTERNS = 100
MAX_DESCRIPTION = 1_000


class EndpointInput(msgspec.Struct, frozen=True, kw_only=True):
    """What may be said about a new endpoint, unchecked; None is the same as not said."""

    url: Any = UNSET
    events: Any = UNSET
    account: Any = UNSET
    description: Any = UNSET
    enabled: Any = UNSET
    headers: Any = UNSET
    metadata: Any = UNSET
    signing: Any = UNSET
    secret: Any = UNSET
    timeout_ms: Any = UNSET
    max_in_flight: Any = UNSET


class EndpointPatch(msgspec.Struct, frozen=True, kw_only=True):
    """What may be changed, unchecked; None puts a field back to its default, and removes a header."""

    url: Any = UNSET
    events: Any = UNSET
    account: Any = UNSET  # only as it is: an endpoint does not move
    description: Any = UNSET
    enabled: Any = UNSET
    headers: Any = UNSET
    metadata: Any = UNSET
    signing: Any = UNSET
    timeout_ms: Any = UNSET
    max_in_flight: Any = UNSET


_Fields = TypeVar("_Fields", EndpointInput, EndpointPatch)

_DEFAULT = {
    field.name: field.default
    for field in msgspec.structs.fields(Endpoint)
    if field.default is not msgspec.NODEFAULT
}


def read_fields(kind: type[_Fields], fields: Mapping[str, Any]) -> _Fields:
    """The named fields as a value; `Invalid` with `unknown_field` for a name that is none of them."""
    known = kind.__struct_fields__
    for name in fields:
        if name not in known:
            raise Invalid(
                f"There is no field {name[:100]!r} here.{did_you_mean(name, known)}",
                pointer=f"/{pointer_step(name)}",
                code="unknown_field",
            )
    return kind(**fields)


def new_endpoint(
    fields: EndpointInput,
    *,
    id: EndpointId,
    now: float,
    private_allowed: bool,
    allowed: Sequence[Network] | None = None,
) -> Endpoint:
    """The endpoint that these fields describe; `Invalid` names the field that will not do."""
    style = _signing(_given(fields.signing, Signing.STANDARD))
    secret = _given(fields.secret, None)
    if secret is None:
        secret = signing.new_secret()
    elif not isinstance(secret, str):
        raise Invalid("A secret is a text.", pointer="/secret")
    signing.check_secret(secret, style)
    return Endpoint(
        id=id,
        account=check_account(_given(fields.account, DEFAULT_ACCOUNT)),
        url=_url(_given(fields.url, None), private_allowed=private_allowed, allowed=allowed),
        events=_events(_given(fields.events, None)),
        secret=secret,
        signing=style,
        description=_description(_given(fields.description, "")),
        enabled=_enabled(_given(fields.enabled, True)),
        headers=headers.merged({}, _given(fields.headers, {})),
        metadata=metadata.checked(_given(fields.metadata, {})),
        timeout=_timeout(_given(fields.timeout_ms, None)),
        max_in_flight=_max_in_flight(_given(fields.max_in_flight, None)),
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
) -> Endpoint:
    """The endpoint after a merge patch; `Invalid` names the field that will not do."""
    changes: dict[str, Any] = {}
    if patch.url is not UNSET:
        changes["url"] = _url(patch.url, private_allowed=private_allowed, allowed=allowed)
    if patch.events is not UNSET:
        changes["events"] = _events(patch.events)
    if patch.account is not UNSET and patch.account != endpoint.account:
        raise Invalid("An endpoint stays with its account; create another one.", pointer="/account")
    if patch.description is not UNSET:
        changes["description"] = _description(_given(patch.description, ""))
    if patch.enabled is not UNSET:
        changes["enabled"] = _enabled(_given(patch.enabled, True))
        if changes["enabled"]:
            changes["disabled_reason"] = None
    if patch.headers is not UNSET:
        changes["headers"] = {} if patch.headers is None else headers.merged(endpoint.headers, patch.headers)
    if patch.metadata is not UNSET:
        changes["metadata"] = (
            {} if patch.metadata is None else metadata.merged(endpoint.metadata, patch.metadata)
        )
    if patch.signing is not UNSET:
        changes["signing"] = style = _signing(_given(patch.signing, Signing.STANDARD))
        try:
            signing.check_secret(endpoint.secret, style)
        except Invalid as error:
            raise Invalid(
                f"The endpoint's secret does not suit {style} signing. {error.detail}", pointer="/signing"
            ) from None
    if patch.timeout_ms is not UNSET:
        changes["timeout"] = _timeout(patch.timeout_ms)
    if patch.max_in_flight is not UNSET:
        changes["max_in_flight"] = _max_in_flight(patch.max_in_flight)
    return msgspec.structs.replace(endpoint, **changes, updated_at=now)


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


def _description(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_DESCRIPTION:
        raise Invalid(
            f"A description is a text of up to {MAX_DESCRIPTION:,} characters.", pointer="/description"
        )
    if not is_text(value):
        raise Invalid("A description cannot hold NUL or lone surrogates.", pointer="/description")
    return value


def _enabled(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Invalid("enabled is true or false.", pointer="/enabled")
    return value


def _signing(value: Any) -> Signing:
    try:
        return Signing(value)
    except ValueError:
        raise Invalid('signing is "standard" or "classic".', pointer="/signing") from None


def _timeout(value: Any) -> float:
    if value is None:
        return float(_DEFAULT["timeout"])
    if isinstance(value, bool) or not isinstance(value, int) or not 1_000 <= value <= 60_000:
        raise Invalid("timeout_ms is a whole number from 1,000 to 60,000.", pointer="/timeout_ms")
    return value / 1_000


def _max_in_flight(value: Any) -> int:
    if value is None:
        return int(_DEFAULT["max_in_flight"])
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000:
        raise Invalid("max_in_flight is a whole number from 1 to 1,000.", pointer="/max_in_flight")
    return value
