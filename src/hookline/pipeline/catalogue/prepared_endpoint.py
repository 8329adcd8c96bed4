"""Prepares an endpoint for sending: URL taken apart, headers built, keys opened.

This is done once for each version of the endpoint, so that a request costs one signature and one join.

It also guards the socket: whatever the store holds, what is built here is the head of one request, with only our own
lines and lines that the rules for headers allow. Otherwise nothing is built.

A signer makes the value of the signature header. It is made once for each version of an endpoint. The usual one, with
one shared secret, is a plain function with its key: two overlapping secrets, or an ed25519 key, cost only endpoints
that have them. The old secret expires by itself: its time is compared with the request's.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import msgspec

from hookline import ids
from hookline.crypto import signing
from hookline.crypto.sealing import Secrets
from hookline.crypto.signing import Ed25519, Mac
from hookline.errors import EndpointUnusable, SealBroken
from hookline.model import Endpoint, Signature, Signing
from hookline.pipeline.catalogue.host_limits import Host, Hosts
from hookline.pipeline.sending.contract import ClientIdentity, Request
from hookline.pipeline.sending.target import parse
from hookline.rules import trace_context
from hookline.rules.hops import HEADER as HOPS
from hookline.rules.outcome import expanded
from hookline.rules.retry import DEFAULT_POLICY, Policy, policy_of
from hookline.rules.slots import LaneHealth
from hookline.rules.trace_context import headers_of
from hookline.store.contract import Loaded
from hookline.validate import headers
from hookline.version import USER_AGENT

MASK = "***"

# What replaces the fields at fault of an endpoint. Nothing is sent with these values.
_REPLACED = [
    "headers",
    "client_certificate",
    "timeout",
    "max_redirects",
    "max_in_flight",
    "rate_limit",
    "filter",
    "retry",
    "retry_statuses",
    "circuit",
]
_STAND_INS: dict[str, Any] = {"url": "http://endpoint.invalid/"} | {
    field.name: field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    for field in msgspec.structs.fields(Endpoint)
    if field.name in _REPLACED
}


def usable(endpoint: Endpoint, faults: Collection[str]) -> Endpoint:
    """The endpoint with placeholders for the fields at fault; for all fields if it is not known which."""
    stand_ins = {name: each for name, each in _STAND_INS.items() if name in faults or "" in faults}
    return msgspec.structs.replace(endpoint, **stand_ins)


class PreparedEndpoint:
    """An endpoint that is ready to be sent to."""

    __slots__ = (
        "_base",
        "_constant",
        "_hosts",
        "_sign",
        "endpoint",
        "fault",
        "health",
        "host",
        "is_open",
        "policy",
        "retried",
        "target",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        secrets: Secrets | None,
        *,
        default: Policy = DEFAULT_POLICY,
        contact: str | None = None,
        health: LaneHealth = LaneHealth.UNTRIED,
        hosts: Hosts | None = None,
        fault: str | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.fault = fault  # why nothing can be sent to it, in one line for people
        self.policy = policy_of(endpoint.retry, default)
        self.retried = expanded(endpoint.retry_statuses)
        # Without its secrets (sealed with another key) nothing can be signed, and so nothing sent. An endpoint with a
        # fault is open: its deliveries fail and say why.
        is_sealed = secrets is None and fault is None
        self.is_open = endpoint.enabled and not endpoint.paused and not is_sealed
        certificate = endpoint.client_certificate
        identity = None if certificate is None else ClientIdentity(certificate.pem)
        self.target = msgspec.structs.replace(parse(endpoint.url), identity=identity)
        self._hosts = hosts
        self.host = self.host_of(self.target.host)  # None: it has no cap
        self.health = health  # after the last attempt of this process
        self._sign: Signer = _cannot_sign
        if fault is not None:
            self._sign = partial(_refuse, fault)
        elif secrets is not None:
            self._sign = signer_of(secrets, endpoint.signing)
        self._base = _BASE if contact is None else {**_BASE, "user-agent": f"{USER_AGENT} (+{contact})"}
        # Checked again: a line break in one of them would begin another header, or another request.
        own = headers.merged({}, endpoint.headers) if endpoint.headers else {}
        self._constant = _lines({**self._base, **own})

    def host_of(self, name: str) -> Host | None:
        """The host that a request of the endpoint goes to; None: it has no cap."""
        return None if self._hosts is None else self._hosts.of(name)

    def request(self, delivery: Loaded, body: bytes, *, number: int, wall: float) -> Request:
        """The signed request for one attempt."""
        constant = self._constant if not delivery.hops else self._constant_after(delivery.hops)
        if delivery.trace is not None:
            constant += _lines(self._traced(delivery.trace))
        return Request(
            self.target,
            constant + self._lines(delivery, body, number=number, wall=wall),
            body,
            self.endpoint.timeout,
        )

    def redirected(
        self, delivery: Loaded, body: bytes, *, url: str, number: int, wall: float, timeout: float
    ) -> Request:
        """The same request for the URL that a redirect points to.

        The endpoint's own headers may hold credentials: they and its certificate are only for the origin they are
        meant for.
        """
        target = parse(url)
        ours = (self.target.tls, self.target.host, self.target.port)
        is_same = (target.tls, target.host, target.port) == ours
        if is_same and self.target.identity is not None:
            target = msgspec.structs.replace(target, identity=self.target.identity)
        constant = (
            self._constant_after(delivery.hops) if is_same else _lines(_after(delivery.hops, self._base))
        )
        if delivery.trace is not None:
            constant += _lines(self._traced(delivery.trace))
        return Request(
            target, constant + self._lines(delivery, body, number=number, wall=wall), body, timeout
        )

    def shown_headers(self, delivery: Loaded, body: bytes, *, number: int, wall: float) -> dict[str, str]:
        """The request's headers as they are recorded: the endpoint's own values masked."""
        lines = self._lines(delivery, body, number=number, wall=wall).decode("ascii").splitlines()
        return {
            **_after(delivery.hops, self._base),
            **({} if delivery.trace is None else self._traced(delivery.trace)),
            **dict.fromkeys(self.endpoint.headers, MASK),
            **dict(line.split(": ", 1) for line in lines),
        }

    def _traced(self, trace: str) -> dict[str, str]:
        """The headers of the event's trace, unless the endpoint has such headers of its own."""
        own = {name.lower() for name in self.endpoint.headers}
        return {} if trace_context.PARENT in own or trace_context.STATE in own else headers_of(trace)

    def _constant_after(self, hops: int) -> bytes:
        """The constant lines for an event that was sent on so many times before it came here."""
        return _lines({**_after(hops, self._base), **self.endpoint.headers}) if hops else self._constant

    def _lines(self, delivery: Loaded, body: bytes, *, number: int, wall: float) -> bytes:
        event_id = ids.show("event", ids.event_of(delivery.id))
        timestamp = int(wall)
        event_type = delivery.event_type
        if not event_type.isprintable():
            raise EndpointUnusable("event.type has characters that cannot stand in a request.")
        if self.endpoint.signing is Signing.STANDARD:
            signature = self._sign(event_id, timestamp, body)
            return (
                f"webhook-id: {event_id}\r\nwebhook-timestamp: {timestamp}\r\nwebhook-signature: {signature}\r\n"
                f"webhook-event: {event_type}\r\nwebhook-attempt: {number}\r\n"
            ).encode("ascii")
        key = delivery.idempotency_key or event_id
        if not key.isprintable():
            raise EndpointUnusable("event.idempotency_key has characters that cannot stand in a request.")
        return (
            f"x-webhook-id: {ids.show('delivery', delivery.id)}\r\nx-event-id: {event_id}\r\n"
            f"x-idempotency-key: {key}\r\n"
            f"x-webhook-event: {event_type}\r\n"
            f"x-webhook-timestamp: {timestamp}\r\nx-delivery-timestamp: {timestamp}\r\n"
            f"x-webhook-signature: {self._sign(event_id, timestamp, body)}\r\nx-webhook-attempt: {number}\r\n"
        ).encode("ascii")


_BASE = {
    "content-type": "application/json",
    "user-agent": USER_AGENT,
    "accept-encoding": "identity",
    HOPS: "1",
}


def _after(hops: int, headers: dict[str, str]) -> dict[str, str]:
    return {**headers, HOPS: str(hops + 1)}


def _cannot_sign(id: str, timestamp: int, body: bytes) -> str:
    raise SealBroken("The endpoint's secret is sealed with another key.")


def _refuse(fault: str, id: str, timestamp: int, body: bytes) -> str:
    raise EndpointUnusable(fault)


def _lines(fields: dict[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode("ascii")


# (the event's id, the timestamp in seconds, the body) -> the header's value
Signer = Callable[[str, int, bytes], str]


def signer_of(secrets: Secrets, style: Signing) -> Signer:
    """The signer of an endpoint's requests."""
    one = _classic if style is Signing.CLASSIC else _standard
    new = one(secrets.secret)
    if secrets.old is None or secrets.old_until is None:
        return new
    both = _in_two_headers if style is Signing.CLASSIC else _in_one_list
    return partial(both, new, one(secrets.old), secrets.old_until)


def _standard(secret: str) -> Signer:
    if signing.signature_of(secret, Signing.STANDARD) is Signature.V1A:
        return partial(signing.sign_with_key, Ed25519(secret))
    return partial(signing.sign_standard, Mac(signing.key_of(secret, Signing.STANDARD)))


def _classic(secret: str) -> Signer:
    return partial(_sign_body, Mac(signing.key_of(secret, Signing.CLASSIC)))


def _sign_body(mac: Mac, id: str, timestamp: int, body: bytes) -> str:
    return "sha256=" + mac.digest(body).hex()


def _in_one_list(new: Signer, old: Signer, until: float, id: str, timestamp: int, body: bytes) -> str:
    signature = new(id, timestamp, body)
    return signature if timestamp >= until else f"{signature} {old(id, timestamp, body)}"


def _in_two_headers(new: Signer, old: Signer, until: float, id: str, timestamp: int, body: bytes) -> str:
    # A handwritten receiver compares one header with one signature: the old one stays where it was.
    signature = new(id, timestamp, body)
    if timestamp >= until:
        return signature
    return f"{old(id, timestamp, body)}\r\nx-webhook-signature-next: {signature}"
