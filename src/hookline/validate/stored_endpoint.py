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
from hookline.model import DEFAULT_RETRY_STATUSES, CircuitPolicy, Endpoint
from hookline.rules.destination import canonical
from hookline.validate import headers, limits, metadata, retry_policy
from hookline.validate.endpoint_fields import MAX_PATTERNS, read_description
from hookline.validate.names import check_account, check_pattern
from hookline.validate.numbers import number, whole

_USUAL_CIRCUIT = CircuitPolicy()
_MOST_TOLD = 300  # characters


def _check_events(endpoint: Endpoint) -> None:
    if not 1 <= len(endpoint.events) <= MAX_PATTERNS:
        raise Invalid(f"events is a list of 1 to {MAX_PATTERNS} patterns.")
    for place, pattern in enumerate(endpoint.events):
        check_pattern(pattern, pointer=f"/events/{place}")


def _check_filter(endpoint: Endpoint) -> None:
    if endpoint.filter is not None:
        from hookline.validate import payload_filter  # only endpoints with a filter pay for the import

        payload_filter.checked(endpoint.filter)


def _check_circuit(endpoint: Endpoint) -> None:
    if endpoint.circuit is not None and endpoint.circuit != _USUAL_CIRCUIT:
        limits.circuit(msgspec.structs.asdict(endpoint.circuit))


def _check_rate_limit(endpoint: Endpoint) -> None:
    if endpoint.rate_limit is not None:
        limits.rate_limit(msgspec.structs.asdict(endpoint.rate_limit))


def _check_retry(endpoint: Endpoint) -> None:
    if endpoint.retry is not None:
        retry_policy.retry(endpoint.retry)


def _check_retry_statuses(endpoint: Endpoint) -> None:
    if endpoint.retry_statuses != DEFAULT_RETRY_STATUSES:
        retry_policy.retry_statuses(endpoint.retry_statuses)


def _check_headers(endpoint: Endpoint) -> None:
    if endpoint.headers:
        headers.merged({}, endpoint.headers)


def _check_metadata(endpoint: Endpoint) -> None:
    if endpoint.metadata:
        metadata.checked(endpoint.metadata)


_CHECKS: dict[str, Callable[[Endpoint], Any]] = {
    "account": lambda endpoint: check_account(endpoint.account),
    # Whether these settings allow the address is checked when it is dialled.
    "url": lambda endpoint: canonical(endpoint.url, private_allowed=True),
    "events": _check_events,
    "description": lambda endpoint: read_description(endpoint.description),
    "headers": _check_headers,
    "metadata": _check_metadata,
    "filter": _check_filter,
    "timeout": lambda endpoint: number(endpoint.timeout, 1, 60, pointer="/timeout", unit=" of seconds"),
    "max_redirects": lambda endpoint: limits.max_redirects(endpoint.max_redirects),
    "max_in_flight": lambda endpoint: whole(endpoint.max_in_flight, 1, 1_000, pointer="/max_in_flight"),
    "rate_limit": _check_rate_limit,
    "retry": _check_retry,
    "retry_statuses": _check_retry_statuses,
    "circuit": _check_circuit,
}


class EndpointJudge:
    """Judges endpoints as they are stored."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def faults(self, endpoint: Endpoint) -> Mapping[str, str]:
        """The fields at fault, each with the reason."""
        found = dict(endpoint.unread)
        for field, check in _CHECKS.items():
            if field not in found and (why := _why_not(check, endpoint)) is not None:
                found[field] = why
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
    return None if _why_not(_check_retry, endpoint) is not None else endpoint.retry


def shown_as(field: str) -> str:
    """The field's name in the API."""
    return "timeout_ms" if field == "timeout" else field


def _why_not(check: Callable[[Endpoint], Any], endpoint: Endpoint) -> str | None:
    try:
        check(endpoint)
    except Invalid as error:
        return error.detail[:_MOST_TOLD]
    except SealBroken as error:
        return str(error)
    except Exception as error:  # a value of a shape that no check expects
        return f"It cannot be used ({type(error).__name__})."
    return None
