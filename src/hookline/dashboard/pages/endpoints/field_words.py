"""Says the fields of an endpoint, and their values, as people read them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hookline.dashboard.look import words
from hookline.errors import HooklineError
from hookline.rules.retry import Policy, policy_of, wait_after
from hookline.validate.endpoint_fields import FIELDS
from hookline.validate.headers import MASK
from hookline.validate.retry_policy import retry as checked_retry

LABELS = {
    "url": "URL",
    "events": "Gets",
    "filter": "Filter",
    "description": "Description",
    "account": "Account",
    "metadata": "Metadata",
    "headers": "Headers",
    "client_certificate": "Client certificate",
    "signing": "Signing",
    "signature": "Signature",
    "secret": "Secret",
    "timeout_ms": "Timeout",
    "max_redirects": "Redirects",
    "max_in_flight": "At once",
    "rate_limit": "Rate",
    "ordering": "Order",
    "retry": "Retry schedule",
    "retry_statuses": "Retried answers",
    "circuit": "Circuit",
    "enabled": "Enabled",
    "paused": "Paused",
}
FORM_LABELS = {
    "events": "Events that it gets",
    "timeout_ms": "Timeout, milliseconds",
    "max_in_flight": "Requests under way at once",
    "secret": "Secret of your own",
}
SECTIONS = (  # what is in none of them comes last
    ("What it gets", ("url", "events", "filter", "description", "account", "metadata")),
    (
        "How it is sent",
        ("headers", "client_certificate", "signing", "signature", "timeout_ms", "max_redirects"),
    ),
    ("How fast", ("max_in_flight", "rate_limit", "ordering")),
    ("When it fails", ("retry", "retry_statuses", "circuit")),
    ("Whether it is sent", ("enabled", "paused")),
)
ANCHORS = {"rate_limit": "rate"}  # others have their name
HELP = {
    "url": "Where each event is sent to with POST.",
    "events": "Types such as order.paid, order.* for all that begin so, or * for all events. "
    "Commas or lines between them.",
    "filter": "JMESPath over the payload; events for which it is false are not sent. Empty: all of them.",
    "description": "A note for people.",
    "account": "Whose endpoint it is. It never changes.",
    "metadata": "A JSON object of your own.",
    "timeout_ms": "How long a request may take, in milliseconds: 1,000 to 60,000.",
    "max_in_flight": "How many requests may be under way at once.",
    "max_redirects": "How many redirects a request follows: 0 to 3.",
    "retry_statuses": "After these answers it is tried again: numbers such as 429, and classes such as 5xx. "
    "Others that are not 2xx are final.",
    "secret": "Empty: a new one is made and shown to you. Or bring one that is in use.",
    "client_certificate": "PEM: a certificate, those that lead to its authority, and the private key, not encrypted. It "
    "is never shown again. Empty: none.",
    "ordering": "",
    "signing": "",
    "signature": "",
    "enabled": "",
    "paused": "",
}
CHOICES: Mapping[str, Mapping[str, str]] = {
    "signing": {
        "standard": "standard: as Standard Webhooks says",
        "classic": "classic: an X-Webhook-Signature header, HMAC-SHA256 of the body",
    },
    "signature": {
        "v1": "v1: HMAC-SHA256, with a secret that both sides know",
        "v1a": "v1a: ed25519, the receiver has a public key only",
    },
    "ordering": {
        "parallel": "parallel: deliveries may overtake each other",
        "strict": "strict: each waits for those before it",
    },
    "retry.kind": {
        "default": "As the server does by default",
        "preset": "A preset",
        "schedule": "A schedule",
        "growing": "Waits that grow",
    },
    "retry.jitter": {
        "": "the usual: the preset’s own, or full",
        "full": "full: anything from 0 to the wait",
        "equal": "equal: from half the wait to all of it",
        "none": "none: exactly the wait",
        "own": "my own",
    },
}
_YES = {
    "enabled": ("yes", "no: it gets no new events, and what is pending waits"),
    "paused": ("yes: everything waits until it is resumed", "no"),
}


class ValueWords(msgspec.Struct, frozen=True, kw_only=True):
    """A value as it is read."""

    text: str = ""
    codes: Sequence[str] = ()  # what stands there as it was typed
    is_none: bool = False


class RetryRow(msgspec.Struct, frozen=True):
    """A row of the table of waits."""

    attempt: int
    text: str
    total: str  # after the first attempt, at most


def label_of(name: str) -> str:
    """The name of a field."""
    return LABELS.get(name, name.replace("_", " ").capitalize())


def anchor_of(name: str) -> str:
    """Where a field is on the page of settings."""
    return ANCHORS.get(name, name)


def sections() -> list[tuple[str, list[str]]]:
    """The fields of the table, in the sections of a page; those that nobody sorted in come last."""
    names = [field.name for field in FIELDS if field.name != "secret"]
    sorted_in = {name for _, members in SECTIONS for name in members}
    found = [(title, [name for name in members if name in names]) for title, members in SECTIONS]
    rest = [name for name in names if name not in sorted_in]
    return [*found, ("Also", rest)] if rest else found


def said(name: str, value: Any) -> ValueWords:
    """A value of the API in words."""
    try:
        return _said(name, value)
    except (KeyError, TypeError, ValueError, AttributeError, HooklineError):
        return ValueWords(codes=[_json(value)])  # a stored value that would be refused today


def _said(name: str, value: Any) -> ValueWords:
    match name:
        case "url":
            return ValueWords(codes=[value])
        case "events":
            return ValueWords(text="all events") if tuple(value) == ("*",) else ValueWords(codes=value)
        case "filter":
            return ValueWords(codes=[value]) if value else ValueWords(text="none: all of them", is_none=True)
        case "headers":
            return _listed([f"{each}: {MASK}" for each in value])
        case "client_certificate":
            if value is None:
                return _NONE
            return ValueWords(text=f"{value['subject']}, until {value['not_after'][:10]}")
        case "metadata":
            return ValueWords(codes=[_json(value)]) if value else _NONE
        case "timeout_ms":
            return ValueWords(text=words.length(value / 1_000))
        case "max_redirects":
            return (
                ValueWords(text=f"up to {words.counted(value, 'redirect')}")
                if value
                else ValueWords(text="not followed")
            )
        case "max_in_flight":
            return ValueWords(text=f"up to {words.counted(value, 'request')}")
        case "rate_limit":
            if value is None:
                return ValueWords(text="no limit", is_none=True)
            return ValueWords(text=f"{value['per_second']:g} a second, {value['burst']:,} at once")
        case "retry":
            return ValueWords(text=_retry(value))
        case "retry_statuses":
            return _listed([str(each) for each in value])
        case "circuit":
            return (
                ValueWords(text="none: it is always tried", is_none=True)
                if value is None
                else ValueWords(text=_circuit(value))
            )
        case _:
            return _plain(name, value)


def _plain(name: str, value: Any) -> ValueWords:
    if value is None or value == "":
        return _NONE
    if isinstance(value, bool):
        yes, no = _YES.get(name, ("yes", "no"))
        return ValueWords(text=yes if value else no)
    if isinstance(value, str):
        return ValueWords(text=CHOICES.get(name, {}).get(value, value))
    if isinstance(value, int | float):
        return ValueWords(text=f"{value:,}")
    return ValueWords(codes=[_json(value)])


_NONE = ValueWords(text="none", is_none=True)


def _listed(codes: Sequence[str]) -> ValueWords:
    return ValueWords(codes=codes) if codes else _NONE


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _retry(value: Mapping[str, Any]) -> str:
    policy = policy_of(value, _ONCE)
    if policy.attempts == 1:
        return "one attempt"
    text = words.attempts_within(policy.attempts, policy.longest)
    return f"{text}, preset {value['preset']}" if "preset" in value else text


_ONCE = Policy((0.0,))


def _circuit(value: Mapping[str, Any]) -> str:
    rate, of = value["failure_rate"], value["min_attempts"]
    share = "half" if rate == 0.5 else "all" if rate == 1 else f"{words.percent(rate)} %"
    first, most = words.length(value["cooldown_s"]), words.length(value["max_cooldown_s"])
    rests = f"rests {first}" if first == most else f"rests {first} to {most}"
    return (
        f"opens after {words.counted(value['consecutive_failures'], 'failure')} in a row, or {share} of {of} within "
        f"{words.length(value['window_s'])}; {rests}"
    )


def waits(retry: Any, *, default: Policy) -> list[RetryRow]:
    """The waits that a checked retry policy leads to; none if it is not valid."""
    try:
        policy = policy_of(None if retry is None else checked_retry(retry), default)
    except (HooklineError, KeyError, TypeError, ValueError):
        return []
    rows = [RetryRow(1, "0", "0")]
    total = 0.0
    for failures in range(1, policy.attempts):
        least = wait_after(failures, policy=policy, roll=0.0) or 0.0
        most = wait_after(failures, policy=policy, roll=1.0) or 0.0
        total += most
        text = words.length(most) if least == most else f"{_least(least)} to {words.length(most)}"
        rows.append(RetryRow(failures + 1, text, words.length(total)))
    return rows


def _least(value: float) -> str:
    return words.length(value) if value else "0"
