"""Shows a request that has arrived.

People get a line that says what it is and how it was answered, then its body. Programs get one JSON value per line.
Control characters from a sender never reach a terminal.
"""

import base64
import json
import os
from typing import Any, NamedTuple

import click

from hookline import rfc3339
from hookline.cli.output import printable

_LONGEST = 2_000  # characters of a body that are shown to people


class Check(NamedTuple):
    """Whether a request was signed with the secret."""

    is_good: bool
    detail: str


class Forwarded(NamedTuple):
    """The result of forwarding a request."""

    status: int | None  # None: nobody answered
    duration_ms: float
    detail: str  # why there was no answer


class Arrival(NamedTuple):
    """A request that arrived, and how it was answered."""

    at: float  # seconds since 1970
    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    check: Check | None  # None: there is no secret to check with
    forwarded: Forwarded | None
    status: int

    @property
    def event_id(self) -> str | None:
        """The event's id, in either style."""
        return self.headers.get("webhook-id") or self.headers.get("x-event-id")

    @property
    def event_type(self) -> str | None:
        """The event type that the sender states."""
        return self.headers.get("webhook-event") or self.headers.get("x-webhook-event")

    @property
    def attempt(self) -> str | None:
        """The attempt that the sender states."""
        return self.headers.get("webhook-attempt") or self.headers.get("x-webhook-attempt")


def as_line(arrival: Arrival) -> str:
    """The arrival as one line of JSON."""
    return json.dumps(
        {
            "at": rfc3339.show(arrival.at),
            "method": arrival.method,
            "path": arrival.path,
            "event_id": arrival.event_id,
            "event_type": arrival.event_type,
            "attempt": arrival.attempt,
            "signature": None if arrival.check is None else arrival.check._asdict(),
            "forwarded": None if arrival.forwarded is None else arrival.forwarded._asdict(),
            "status": arrival.status,
            "headers": arrival.headers,
            **_body(arrival.body),
        }
    )


def as_text(arrival: Arrival, *, headers: bool) -> str:
    """The arrival as a few lines for people."""
    said = [
        rfc3339.show(arrival.at)[11:19],
        f"{arrival.method} {arrival.path}",
        arrival.event_type or "no event type",
        arrival.event_id or "no event id",
        f"attempt {arrival.attempt}" if arrival.attempt else "",
    ]
    parts = [printable(each) for each in said if each]
    if arrival.check is not None:
        good = _coloured("signature ok", "green")
        parts.append(
            good
            if arrival.check.is_good
            else _coloured(f"NOT VERIFIED: {printable(arrival.check.detail)}", "red")
        )
    if arrival.forwarded is not None:
        parts.append(_forwarded(arrival.forwarded))
    parts.append(_coloured(f"answered {arrival.status}", "green" if arrival.status < 300 else "yellow"))
    lines = ["  ".join(parts)]
    if headers:
        lines += [f"  {printable(name)}: {printable(value)}" for name, value in arrival.headers.items()]
    if arrival.body:
        text = printable(arrival.body.decode("utf-8", "backslashreplace"))
        more = f"… ({len(arrival.body):,} bytes)" if len(text) > _LONGEST else ""
        lines.append(f"  {text[:_LONGEST]}{more}")
    return "\n".join(lines)


def _forwarded(forwarded: Forwarded) -> str:
    if forwarded.status is None:
        return f"not forwarded: {printable(forwarded.detail).removesuffix('.')};"
    return f"forwarded: {forwarded.status} in {forwarded.duration_ms:.0f} ms"


def _body(body: bytes) -> dict[str, Any]:
    try:
        return {"body": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _coloured(text: str, colour: str) -> str:
    return (
        text if "NO_COLOR" in os.environ else click.style(text, fg=colour)
    )  # echo drops the colour without a terminal
