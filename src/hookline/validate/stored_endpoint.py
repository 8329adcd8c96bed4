"""Finds the fields of a stored endpoint that today's rules would refuse.

The checks are those of a new endpoint. An endpoint with a fault is shown, changed and deleted like any other. Its
deliveries fail, with the field in their reason, until the field is corrected.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hookline.crypto import signing
from hookline.crypto.sealing import Sealer
from hookline.errors import Invalid, SealBroken
from hookline.model import Endpoint
from hookline.validate.endpoint_fields import BY_NAME, FIELDS

# Each attribute with its default, which needs no check, and its check: this runs for every endpoint when a process starts.
_CHECKS = tuple(
    (field.attribute, msgspec.UNSET if field.is_required else field.default, field.refuse_stored)
    for field in FIELDS
)
_MOST_TOLD = 300  # characters


class EndpointJudge:
    """Judges endpoints as they are stored."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def faults(self, endpoint: Endpoint) -> Mapping[str, str]:
        """The fields at fault, each with the reason."""
        found = dict(endpoint.unread)
        try:
            endpoint = self._sealer.open_certificate(endpoint)
        except SealBroken as error:
            found.setdefault("client_certificate", str(error))
        if endpoint.headers:
            try:
                endpoint = msgspec.structs.replace(endpoint, headers=self._sealer.open_headers(endpoint))
            except SealBroken as error:
                found.setdefault("headers", str(error))
        for name, usual, check in _CHECKS:
            value = getattr(endpoint, name)
            if value != usual and name not in found and (why := _why_not(check, value)) is not None:
                found[name] = why
        if "secret" not in found and (why := _why_not(self._check_secrets, endpoint)) is not None:
            found["secret"] = why
        return found

    def _check_secrets(self, endpoint: Endpoint) -> None:
        secrets = self._sealer.opened(endpoint)
        signing.check_secret(secrets.secret, endpoint.signing)
        if secrets.old is not None and secrets.old_until is not None:
            signing.check_secret(secrets.old, endpoint.signing)


def retry_of(endpoint: Endpoint) -> dict[str, Any] | None:
    """The endpoint's own retry policy; None: it has none, or an unusable one."""
    if endpoint.retry is None or _why_not(BY_NAME["retry"].refuse_stored, endpoint.retry) is not None:
        return None
    return endpoint.retry


def _why_not(check: Callable[[Any], Any], value: Any) -> str | None:
    try:
        check(value)
    except Invalid as error:
        return error.detail[:_MOST_TOLD]
    except SealBroken as error:
        return str(error)
    except Exception as error:  # a value of a shape that no check expects
        return f"It cannot be used ({type(error).__name__})."
    return None
