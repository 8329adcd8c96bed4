"""Writes numbers, times and states as people read them."""

import math
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from hookline import rfc3339

NOTHING = "–"  # no data; never 0
_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0


class Look(NamedTuple):
    """A state as it is shown: always a colour, an icon and a word."""

    tone: Literal["ok", "bad", "warn", "idle"]
    icon: str
    word: str


ENDPOINT_STATES = {
    "healthy": Look("ok", "ok", "Healthy"),
    "failing": Look("bad", "fail", "Failing"),
    "slow": Look("warn", "slow", "Slow"),
    "paused": Look("idle", "pause", "Paused"),
    "disabled": Look("idle", "off", "Disabled"),
    "idle": Look("idle", "cancel", "Idle"),
}
DELIVERY_STATES = {
    "waiting": Look("idle", "wait", "Waiting"),
    "retrying": Look("warn", "replay", "To be retried"),
    "sending": Look("idle", "fly", "Sending"),
    "delivered": Look("ok", "ok", "Delivered"),
    "dead": Look("bad", "dead", "Dead"),
    "cancelled": Look("idle", "cancel", "Cancelled"),
}
ALERTS = {
    "dead_letters": "Dead letters",
    "dead_letters_growing": "Dead letters growing",
    "oldest_due": "Oldest delivery is late",
    "stuck": "Deliveries are stuck",
    "queue_growing": "Queue growing",
    "endpoint_slow": "Endpoint slow",
    "circuit_open": "Circuit open",
    "endpoint_disabled": "Endpoint disabled",
    "outbox_refused": "Outbox rows refused",
    "outbox_late": "Outbox is late",
}
OUTBOX_STATES = {
    "ok": Look("ok", "ok", "Read"),
    "away": Look("bad", "fail", "Away"),
    "missing": Look("bad", "fail", "No table"),
    "forbidden": Look("bad", "lock", "No right"),
    "unread": Look("warn", "wait", "Not read"),
}
PATTERNS = {
    "outage": Look("bad", "fail", "Outage"),
    "credentials": Look("bad", "key", "Credentials"),
    "throttled": Look("warn", "slow", "Throttled"),
    "intermittent": Look("warn", "replay", "Intermittent"),
    "rejected": Look("bad", "fail", "Rejected"),
    "gone": Look("idle", "off", "Gone"),
    "mixed": Look("bad", "fail", "Mixed"),
}
WAITS_FOR = {
    "due": "its next attempt",
    "circuit": "its circuit",
    "receiver": "the receiver, which asked for a rest",
    "rate": "its rate limit",
    "slot": "a free slot",
    "order": "its turn in the order",
    "paused": "the endpoint, which is paused",
    "disabled": "the endpoint, which is disabled",
}
REASONS = {
    "exhausted": "attempts ran out",
    "rejected": "the answer was final",
    "gone": "the receiver is gone",
    "crash_limit": "workers died under it",
    "cancelled": "cancelled by a person",
    "discarded": "discarded by a person",
    "endpoint_deleted": "its endpoint was deleted",
}
ERRORS = {
    "dns": "name not found",
    "blocked_address": "address not allowed",
    "connect_timeout": "connecting took too long",
    "connect_refused": "connection refused",
    "connect_failed": "no connection",
    "tls": "TLS failed",
    "timeout": "no answer in time",
    "reset": "connection reset",
    "protocol": "no valid HTTP answer",
    "internal": "hookline's own error",
    "http_3xx": "redirect",
    "http_4xx": "refused",
    "http_410": "gone",
    "http_429": "too many requests",
    "http_5xx": "server error",
}


def number(value: float | None) -> str:
    """`1,204`; one decimal below 10 if it is no whole number."""
    if value is None:
        return NOTHING
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) < 100 else f"{value:,.0f}"


def counted(value: int, noun: str, many: str | None = None) -> str:
    """`1 endpoint`, `1,184 endpoints`."""
    return f"{value:,} {noun if value == 1 else many or noun + 's'}"


def attempts_within(attempts: int, seconds: float) -> str:
    """`7 attempts within 34 h 35 min`; without waits: `2 attempts, at once`."""
    within = f" within {length(seconds)}" if seconds else ", at once"
    return f"{counted(attempts, 'attempt')}{within}"


def percent(share: float | None) -> str:
    """A share from 0 to 1, without its sign: `98.7`, `100`. Only all of it is 100, and only none of it 0."""
    if share is None:
        return NOTHING
    if share in (0.0, 1.0):
        return f"{share * 100:.0f}"
    return f"{min(max(share * 100, 0.1), 99.9):.1f}"


def milliseconds(value: float | None) -> str:
    """`0.3 ms`, `52 ms`, `3.4 s`, `2 min 5 s`."""
    if value is None:
        return NOTHING
    if value < 1:
        return f"{value:.1f} ms"
    if value < 999.5:
        return f"{value:.0f} ms"
    if value < 59_950:
        return f"{value / 1_000:.1f} s".replace(".0 s", " s")
    return length(value / 1_000)


def length(seconds: float | None) -> str:
    """A length of time in at most two units: `9 s`, `58 min`, `1 h 17 min`, `34 h 36 min`, `3 d`."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    seconds = max(0.0, seconds)
    if seconds < _MINUTE:
        return (
            f"{seconds:.0f} s"
            if seconds == int(seconds) or seconds >= 10
            else f"{seconds:.1f} s".replace(".0 ", " ")
        )
    if seconds < _HOUR:
        minutes, rest = divmod(int(seconds), 60)
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    if seconds < 2 * _DAY:
        hours, minutes = divmod(int(seconds) // 60, 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{int(seconds // _DAY)} d"


def about(seconds: float) -> str:
    """A length of time in one unit, for ages: `9 s`, `58 min`, `2 h`, `20 d`."""
    seconds = max(0.0, seconds)
    if seconds < _MINUTE:
        return f"{int(seconds)} s"
    if seconds < 2 * _HOUR:
        return f"{int(seconds / _MINUTE)} min"
    if seconds < 2 * _DAY:
        return f"{int(seconds / _HOUR)} h"
    return f"{int(seconds / _DAY)} d"


def moment(at: str | float | None) -> float | None:
    """Seconds since 1970 of a time that the API shows."""
    return rfc3339.read(at) if isinstance(at, str) else at


def exact(at: float) -> str:
    """`17 Nov 2026, 02:14:08 UTC`."""
    when = _date(at)
    return f"{when.day} {when:%b %Y, %H:%M:%S} UTC"


def clock_time(at: float, *, now: float) -> str:
    """The time of day if it was today: `02:14`; with the day otherwise: `16 Nov, 12:01`."""
    when = _date(at)
    if when.date() == _date(now).date():
        return f"{when:%H:%M}"
    return f"{when.day} {when:%b, %H:%M}"


def short_id(id: str) -> str:
    """`ep_…z1rv0w`, `evt_…ga71yy…`: the part of an id that differs from others in a list.

    An event's id ends with zeros, and a delivery's with its place among the event's deliveries.
    """
    kind, _, rest = id.partition("_")
    if not rest:
        return id
    match kind:
        case "evt":
            return f"evt_…{rest[-10:-4]}…"
        case "dlv":
            return f"dlv_…{rest[-10:]}"
    return f"{kind}_…{rest[-6:]}"


def short_url(url: str | None) -> str:
    """A URL without its scheme; plain HTTP is said."""
    if not url:
        return "a deleted endpoint"
    return url.removeprefix("https://")


def host(url: str) -> str:
    """The host of a URL, or the URL if it has none."""
    try:
        return urlsplit(url).netloc or url
    except ValueError:
        return url


def answer(status: int | None, kind: str | None) -> str:
    """What came of an attempt: `503 Service Unavailable`, `connection reset`."""
    if status is not None:
        from http import HTTPStatus

        try:
            return f"{status} {HTTPStatus(status).phrase}"
        except ValueError:
            return str(status)
    return ERRORS.get(kind or "", kind or "no answer")


def delivery_state(delivery: Any) -> Look:
    """The state of a delivery as the API shows it."""
    if delivery.state != "pending":
        return DELIVERY_STATES[delivery.state]
    if delivery.in_flight:
        return DELIVERY_STATES["sending"]
    return DELIVERY_STATES["retrying" if delivery.attempts else "waiting"]


def _date(at: float) -> datetime:
    return datetime.fromtimestamp(min(max(at, 0.0), 253_402_300_799.0), UTC)
