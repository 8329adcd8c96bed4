"""Lists the fields that an endpoint is created and patched with, one row each.

A row says how a value is checked, what a patch does with it, how it is shown and how the API describes it. The library,
the API, the command line and the clients follow this table. CONTRIBUTING.md says what else a new field needs.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from hookline.crypto import client_certificate
from hookline.errors import Invalid
from hookline.model import DEFAULT_ACCOUNT, Endpoint, Ordering, Signature, Signing
from hookline.rules.destination import canonical
from hookline.validate import api_schema, headers, limits, metadata, retry_policy
from hookline.validate.api_schema import Schema
from hookline.validate.names import ACCOUNT_PATTERN, TYPE_PATTERN, check_account, check_pattern, is_text
from hookline.validate.numbers import number, whole

MAX_PATTERNS = 100
MAX_DESCRIPTION = 1_000
MAX_FILTER = 1_000  # characters; repeated here, so that only endpoints with a filter import its library

# The model has the defaults, but not of what every stored endpoint has.
_DEFAULTS: dict[str, Any] = {"account": DEFAULT_ACCOUNT, "secret": None} | {
    field.name: field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    for field in msgspec.structs.fields(Endpoint)
    if not field.required
}


class EndpointField(msgspec.Struct, frozen=True, kw_only=True):
    """A field of an endpoint. Null is its default, unless `null_means_none`."""

    name: str  # in the API, on the command line and in the clients
    attribute: str = ""  # of `Endpoint`, if it has another name there
    check: Callable[[Any], Any]  # the value to store; raises `Invalid`
    check_stored: Callable[[Any], Any] | None = None  # where the stored value has another form
    null_means_none: bool = False  # null switches off what the default switches on
    merge: Callable[[Any, Any], Any] | None = None  # of the stored value and a patch's; None: it is replaced
    fixed: str | None = None  # why a patch must leave it as it is
    in_patch: bool = True  # False: a patch does not know it
    show: Callable[[Any], Any] | None = None  # the stored value as the API shows it; None: as it is
    schema: Schema  # of a value that is not null
    text: str  # for the API's description

    def __post_init__(self) -> None:
        if not self.attribute:
            msgspec.structs.force_setattr(self, "attribute", self.name)

    @property
    def is_required(self) -> bool:
        """Whether a new endpoint needs it."""
        return self.attribute not in _DEFAULTS

    @property
    def default(self) -> Any:
        """The value of an endpoint that was not given one."""
        return _DEFAULTS[self.attribute]

    def created(self, value: Any) -> Any:
        """The value to store for a new endpoint."""
        return self._of_null() if value is None and not self.is_required else self.check(value)

    def patched(self, before: Any, value: Any) -> Any:
        """The value to store after a patch."""
        return self.created(value) if value is None or self.merge is None else self.merge(before, value)

    def refuse_stored(self, value: Any) -> None:
        """Raise `Invalid` if a stored value would be refused today."""
        (self.check_stored or self.created)(msgspec.to_builtins(value))

    def shown(self, endpoint: Endpoint) -> Any:
        """The value as the API shows it."""
        value = getattr(endpoint, self.attribute)
        return value if self.show is None else self.show(value)

    def _of_null(self) -> Any:
        return None if self.null_means_none else self.default


def read_description(value: Any) -> str:
    """A description in free text."""
    if not isinstance(value, str) or len(value) > MAX_DESCRIPTION:
        raise Invalid(
            f"A description is a text of up to {MAX_DESCRIPTION:,} characters.", pointer="/description"
        )
    if not is_text(value):
        raise Invalid("A description cannot hold NUL or lone surrogates.", pointer="/description")
    return value


def read_signature(value: Any) -> Signature:
    """A kind of signature."""
    try:
        return Signature(value)
    except ValueError:
        raise Invalid('signature is "v1" or "v1a".', pointer="/signature") from None


def read_secret(value: Any) -> str:
    """A secret. Whether it suits the style of signing is checked with it (`endpoint_changes.chosen_secret`)."""
    if not isinstance(value, str):
        raise Invalid("A secret is a text.", pointer="/secret")
    return value


def _url(value: Any) -> str:
    """A URL in its one spelling. Whether the server may call its address is checked where it is given and dialled."""
    if value is None:
        raise Invalid("An endpoint needs a url.", pointer="/url")
    if not isinstance(value, str):
        raise Invalid("A url is a text.", pointer="/url")
    return canonical(value, private_allowed=True)


_NO_PATH = re.compile(r"\A(https?://[^/?#]+)(?=\?|\Z)")


def _stored_url(value: Any) -> str:
    spelled = _url(value)
    # Without a path the same request is sent as with "/".
    if spelled != value and spelled != _NO_PATH.sub(r"\1/", value):
        raise Invalid("The URL is not stored in its one spelling.", pointer="/url", code="url_invalid")
    return spelled


def _events(value: Any) -> tuple[str, ...]:
    if value is None:
        raise Invalid('An endpoint needs events, such as ["order.*"] or ["*"].', pointer="/events")
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_PATTERNS:
        raise Invalid(f"events is a list of 1 to {MAX_PATTERNS} patterns.", pointer="/events")
    return tuple(
        dict.fromkeys(check_pattern(each, pointer=f"/events/{place}") for place, each in enumerate(value))
    )


def _flag(name: str) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise Invalid(f"{name} is true or false.", pointer=f"/{name}")
        return value

    return check


def _whole(name: str, low: int, high: int) -> Callable[[Any], int]:
    return lambda value: whole(value, low, high, pointer=f"/{name}")


def _filter(value: Any) -> str:
    from hookline.validate import payload_filter  # only endpoints with a filter pay for the import

    return payload_filter.checked(value)


def _signing(value: Any) -> Signing:
    try:
        return Signing(value)
    except ValueError:
        raise Invalid('signing is "standard" or "classic".', pointer="/signing") from None


def _timeout(value: Any) -> float:
    return whole(value, 1_000, 60_000, pointer="/timeout_ms") / 1_000


FIELDS: tuple[EndpointField, ...] = (
    EndpointField(
        name="url",
        check=_url,
        check_stored=_stored_url,
        schema={"type": "string", "format": "uri"},
        text="where events are sent to",
    ),
    EndpointField(
        name="events",
        check=_events,
        schema={
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_PATTERNS,
            "items": api_schema.matching(rf"(?:\*|{TYPE_PATTERN}(?:\.\*)?)"),
        },
        text="the types of events that it gets, such as order.paid, order.* or *",
    ),
    EndpointField(
        name="account",
        check=check_account,
        fixed="An endpoint stays with its account; create another one.",
        schema=api_schema.matching(ACCOUNT_PATTERN),
        text="whose endpoint it is; never changes",
    ),
    EndpointField(
        name="description",
        check=read_description,
        schema=api_schema.text(MAX_DESCRIPTION),
        text="a note for people",
    ),
    EndpointField(
        name="enabled",
        check=_flag("enabled"),
        schema=api_schema.FLAG,
        text="false: it gets no new events, and its pending deliveries wait",
    ),
    EndpointField(
        name="headers",
        check=lambda value: headers.merged({}, value),
        merge=headers.merged,
        show=lambda value: dict.fromkeys(value, headers.MASK),
        schema=headers.SCHEMA,
        text="headers to add to each request; their values are never shown. A patch replaces them by name, "
        "and null removes one",
    ),
    EndpointField(
        name="client_certificate",
        check=client_certificate.checked,
        check_stored=lambda value: client_certificate.checked(value["pem"]),
        show=lambda value: None if value is None else value.facts,
        schema=api_schema.text(client_certificate.MAX_BYTES),
        text="a PEM text with a certificate, those that lead to its authority, and the private key, not encrypted: "
        "requests over TLS show it (mutual TLS). Never shown again; null removes it",
    ),
    EndpointField(
        name="metadata",
        check=metadata.checked,
        merge=metadata.merged,
        schema={"type": "object"},
        text="an object of your own; a patch is merged into it",
    ),
    EndpointField(
        name="filter",
        check=_filter,
        schema=api_schema.text(MAX_FILTER),
        text="a JMESPath expression over the payload; events for which it is false are not sent",
    ),
    EndpointField(
        name="signing",
        check=_signing,
        show=str,
        schema=api_schema.one_of(Signing),
        text="standard: as Standard Webhooks says; classic: with an X-Webhook-Signature header",
    ),
    EndpointField(
        name="signature",
        check=read_signature,
        fixed="Another kind of signature needs another secret: POST …/secret/rotate takes signature.",
        show=str,
        schema=api_schema.one_of(Signature),
        text="v1: HMAC-SHA256; v1a: ed25519. Changed by a rotation of the secret",
    ),
    EndpointField(
        name="timeout_ms",
        attribute="timeout",
        check=_timeout,
        check_stored=lambda value: number(value, 1, 60, pointer="/timeout", unit=" of seconds"),
        show=lambda value: round(value * 1_000) if math.isfinite(value * 1_000) else 0,
        schema=api_schema.whole(1_000, 60_000),
        text="how long a request may take, in milliseconds",
    ),
    EndpointField(
        name="max_in_flight",
        check=_whole("max_in_flight", 1, 1_000),
        schema=api_schema.whole(1, 1_000),
        text="how many requests may be under way at once",
    ),
    EndpointField(
        name="max_redirects",
        check=limits.max_redirects,
        schema=api_schema.whole(0, limits.MOST_REDIRECTS),
        text="how many redirects a request follows",
    ),
    EndpointField(
        name="rate_limit",
        check=limits.rate_limit,
        merge=lambda before, value: limits.rate_limit(value, before=before),
        schema=limits.RATE_LIMIT_SCHEMA,
        text="how many requests per second, and how many at once; null: no limit",
    ),
    EndpointField(
        name="ordering",
        check=limits.ordering,
        show=str,
        schema=api_schema.one_of(Ordering),
        text="strict: a delivery waits for those before it",
    ),
    EndpointField(
        name="paused",
        check=_flag("paused"),
        schema=api_schema.FLAG,
        text="true: new and pending deliveries wait until it is resumed",
    ),
    EndpointField(
        name="retry",
        check=retry_policy.retry,
        schema=retry_policy.RETRY_SCHEMA,
        text="when a failed delivery is tried again; null: the server's default",
    ),
    EndpointField(
        name="retry_statuses",
        check=retry_policy.retry_statuses,
        schema=retry_policy.RETRY_STATUSES_SCHEMA,
        text="the statuses after which a delivery is tried again, and classes such as 5xx",
    ),
    EndpointField(
        name="circuit",
        check=limits.circuit,
        null_means_none=True,
        merge=lambda before, value: limits.circuit(value, before=before),
        schema=limits.CIRCUIT_SCHEMA,
        text="when sending stops because requests fail, and for how long; null: never",
    ),
    EndpointField(
        name="secret",
        check=read_secret,
        in_patch=False,
        show=lambda _: msgspec.UNSET,  # only the answer that creates an endpoint has it
        schema=api_schema.text(),
        text="whsec_<base64 of 24 to 64 bytes>, made if it is not given; for v1a signatures "
        "whsk_<base64 of an ed25519 key>; for classic signing 16 to 256 visible ASCII characters",
    ),
)
BY_NAME = {field.name: field for field in FIELDS}
IN_PATCH = {field.name: field for field in FIELDS if field.in_patch}
_NAMES = {field.attribute: field.name for field in FIELDS}


def shown_fields(endpoint: Endpoint) -> dict[str, Any]:
    """The fields as the API shows them, by name."""
    return {field.name: field.shown(endpoint) for field in FIELDS}


def shown_as(attribute: str) -> str:
    """The name in the API of an attribute of `Endpoint`."""
    return _NAMES.get(attribute, attribute)
