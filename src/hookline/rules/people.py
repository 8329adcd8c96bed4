"""Decides who is told of what, in which words, and when a message that could not be sent is tried again.

Owners of accounts are told of the alerts about their account and its endpoints, and of their dead deliveries. The
operators are the owners of the account `hookline`: they are told of every alert. What is due for one recipient at the
same time is told in one message.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hookline.model import OWN_ACCOUNT, AlertKind, Notify

FIRED, RESOLVED, DEAD = "alert.fired", "alert.resolved", "delivery.dead"
GIVE_UP_S = 6 * 3_600.0  # after this a message that could not be sent is old news
FIRST_WAIT_S = 30.0
LONGEST_WAIT_S = 1_800.0
NAMED_ALERTS = 50  # in one message
NAMED_ENDPOINTS = 20  # in a message about deaths
NAMED_DELIVERIES = 10
HIDDEN = "/***"  # shown instead of what follows a URL's host

_PREFIX = "[hookline] "
_MOST_OF_A_SUBJECT = 150  # characters

# What an operator types next.
_NEXT_STEP = {
    AlertKind.DEAD_LETTERS: "hookline dead analyse",
    AlertKind.DEAD_LETTERS_GROWING: "hookline dead analyse",
    AlertKind.OLDEST_DUE: "hookline status",
    AlertKind.STUCK: "hookline status",
    AlertKind.QUEUE_GROWING: "hookline status",
    AlertKind.ENDPOINT_SLOW: "hookline stats {endpoint}",
    AlertKind.CIRCUIT_OPEN: "hookline endpoints recover {endpoint}",
    AlertKind.ENDPOINT_DISABLED: "hookline endpoints show {endpoint}",
    AlertKind.OUTBOX_REFUSED: "hookline outbox list",
    AlertKind.OUTBOX_LATE: "hookline outbox sources",
}


class Channel(StrEnum):
    """A way to reach people; the value is what the database stores."""

    EMAIL = "email"
    SLACK = "slack"
    WEBHOOK = "webhook"


class Recipient(msgspec.Struct, frozen=True):
    """An address on a channel, and the account whose owner it belongs to."""

    channel: Channel
    address: str
    account: str


class EndpointDeaths(msgspec.Struct, frozen=True, kw_only=True):
    """How many deliveries to an endpoint died, and the last answer."""

    place: str  # its URL without what may be a token
    count: int
    answer: str | None


class Deaths(msgspec.Struct, frozen=True, kw_only=True):
    """What went dead of an account."""

    count: int
    first_at: str
    last_at: str
    endpoints: dict[str, EndpointDeaths]  # by id
    deliveries: tuple[str, ...]  # the first few


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message in the form of each channel."""

    subject: str
    text: str
    data: Any  # what a webhook gets, as JSON


def recipients(kind: str, account: str | None, notified: Mapping[str, Notify]) -> list[Recipient]:
    """Who is told of an own event about this account; None is the installation."""
    told: list[str] = []
    if kind in (FIRED, RESOLVED):
        told.append(OWN_ACCOUNT)
    if kind in (FIRED, RESOLVED, DEAD) and account is not None and account != OWN_ACCOUNT:
        told.append(account)
    found = [each for name in told for each in channels_of(name, notified.get(name, Notify()))]
    # Who is an operator and the owner is told once, as an operator.
    return list({(each.channel, each.address): each for each in reversed(found)}.values())[::-1]


def channels_of(account: str, notify: Notify) -> list[Recipient]:
    """The channels of an account."""
    given = ((Channel.EMAIL, notify.email), (Channel.SLACK, notify.slack), (Channel.WEBHOOK, notify.webhook))
    return [Recipient(channel, address, account) for channel, address in given if address is not None]


def masked(url: str) -> str:
    """A URL without what follows its host and port: whoever knows it can write there."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{HIDDEN}"


def wait_before(tries: int, *, age: float, asked: float | None, roll: float) -> float | None:
    """The seconds until a message that failed so many times is tried again; None: it is old and given up.

    `asked` is the receiver's `Retry-After`. Messages that failed together are not tried again together.
    """
    if age >= GIVE_UP_S:
        return None
    wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(tries - 1, 10))
    return min(max(wait * (0.75 + 0.5 * roll), asked or 0.0), LONGEST_WAIT_S)


def gathered(parts: Sequence[Deaths]) -> Deaths:
    """Several counts of deaths as one."""
    endpoints: dict[str, EndpointDeaths] = {}
    for part in parts:
        for id, each in part.endpoints.items():
            before = endpoints.get(id)
            count = each.count + (0 if before is None else before.count)
            endpoints[id] = EndpointDeaths(place=each.place, count=count, answer=each.answer)
    return Deaths(
        count=sum(part.count for part in parts),
        first_at=min(part.first_at for part in parts),
        last_at=max(part.last_at for part in parts),
        endpoints=endpoints,
        deliveries=tuple(id for part in parts for id in part.deliveries)[:NAMED_DELIVERIES],
    )


def about_deaths(account: str, deaths: Deaths) -> Message:
    """A message about deliveries that died."""
    is_one = deaths.count == 1
    what = "1 delivery" if is_one else f"{deaths.count:,} deliveries"
    when = f"at {deaths.first_at}" if is_one else f"from {deaths.first_at} to {deaths.last_at}"
    worst = sorted(deaths.endpoints.items(), key=lambda each: (-each[1].count, each[0]))
    shown = [(id, msgspec.to_builtins(each)) for id, each in worst[:NAMED_ENDPOINTS]]
    lines = [f"{what} of account {account} could not be delivered, {when}.", ""]
    for id, each in worst[:NAMED_ENDPOINTS]:
        answer = "" if each.answer is None else f", last answer: {each.answer}"
        lines.append(f"{each.count:,}  {each.place} ({id}){answer}")
    if len(worst) > NAMED_ENDPOINTS:
        lines.append(f"and {len(worst) - NAMED_ENDPOINTS:,} more endpoints")
    kept = "It is kept as a dead letter" if is_one else "They are kept as dead letters"
    lines += ["", f"{kept} and can be replayed when the receiver works again."]
    return Message(
        subject=_subject(f"{what} of {account} could not be delivered"),
        text="\n".join(lines),
        data={
            "type": "deliveries.dead",
            "at": deaths.last_at,
            "account": account,
            "data": {**msgspec.to_builtins(deaths), "endpoints": dict(shown)},
        },
    )


def about_alert(event: Mapping[str, Any], *, is_for_operators: bool) -> Message:
    """A message about an alert, from the own event that tells of it."""
    alert = event.get("data") or {}
    said = str(alert.get("message") or alert.get("reason") or alert.get("kind") or "An alert has changed.")
    is_over = event.get("type") == RESOLVED
    lines = [f"Resolved: {said}" if is_over else said, ""]
    facts = (
        ("alert", alert.get("kind")),
        ("account", alert.get("account")),
        ("endpoint", alert.get("endpoint_id")),
        ("since", alert.get("since")),
        ("resolved", alert.get("resolved_at")),
    )
    lines += [f"{name + ':':<10}{value}" for name, value in facts if value is not None]
    step = _next_step(alert)
    if is_for_operators and not is_over and step is not None:
        lines += ["", f"Next step: {step}"]
    return Message(
        subject=_subject(f"{'Resolved' if is_over else 'Alert'}: {said}"), text="\n".join(lines), data=event
    )


def about_alerts(events: Sequence[Mapping[str, Any]], *, is_for_operators: bool) -> Message:
    """A message about several alerts."""
    if len(events) == 1:
        return about_alert(events[0], is_for_operators=is_for_operators)
    parts = [about_alert(each, is_for_operators=is_for_operators) for each in events]
    resolved = sum(each.get("type") == RESOLVED for each in events)
    counts = [
        f"{len(events) - resolved:,} alerts" if len(events) > resolved else "",
        f"{resolved:,} resolved",
    ]
    what = ", ".join(each for each in counts[: 1 + (resolved > 0)] if each)
    texts = [part.text for part in parts[:NAMED_ALERTS]]
    if len(parts) > NAMED_ALERTS:
        texts.append(f"and {len(parts) - NAMED_ALERTS:,} more: hookline alerts --all")
    first = parts[0].subject.removeprefix(_PREFIX)
    return Message(subject=_subject(f"{what}. {first}"), text="\n\n----\n\n".join(texts), data=list(events))


def about_a_test(account: str, *, at: str) -> Message:
    """A message that only shows that messages arrive."""
    said = f"This is a test of the alerts for account {account}. Nothing is wrong."
    return Message(
        subject=_subject(f"Test of the alerts for account {account}"),
        text=said,
        data={"type": "alert.test", "at": at, "account": account, "data": {"message": said}},
    )


def _next_step(alert: Mapping[str, Any]) -> str | None:
    kind, endpoint = alert.get("kind"), alert.get("endpoint_id")
    if kind not in _NEXT_STEP or (endpoint is None and "{" in _NEXT_STEP[AlertKind(kind)]):
        return None
    return _NEXT_STEP[AlertKind(kind)].format(endpoint=endpoint)


def _subject(said: str) -> str:
    """One line: what a receiver said may be quoted in it."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in said).split())
    shown = line if len(line) <= _MOST_OF_A_SUBJECT else f"{line[: _MOST_OF_A_SUBJECT - 1]}…"
    return _PREFIX + shown
