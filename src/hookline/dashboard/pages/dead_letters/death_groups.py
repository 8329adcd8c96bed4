"""Says what is wrong with the dead letters of an endpoint, and which buttons help."""

import re
from typing import Any
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup

from hookline.dashboard.look import words
from hookline.dashboard.look.commands import with_commands
from hookline.dashboard.look.words import Look

_RATE = re.compile(r"--rate ([0-9.]+)")
_PASSING = ("outage", "credentials", "throttled", "intermittent", "mixed")

_CAUSES = {  # for customers, who have no commands
    "outage": "Looks like an outage at the receiver.",
    "credentials": "Its credentials were refused: give us a new header for it.",
    "throttled": "It is sent more than it takes.",
    "intermittent": "It fails now and then.",
    "rejected": "It does not accept these payloads. The same bytes will be refused again.",
    "gone": "It said that it will not come back.",
    "mixed": "They died of different causes: the list has their answers.",
}


class Button(msgspec.Struct, frozen=True):
    """A way to a page that asks, or to a field."""

    href: str
    label: str
    symbol: str = ""
    kind: str = ""
    changes: bool = True  # False: it only shows something


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The dead letters of an endpoint with the same diagnosis."""

    deaths: Any  # DeathsReport
    endpoint: Any | None  # EndpointReport; None: deleted
    look: Look
    is_over: bool
    accepted_at: str | None
    answer: str
    advice: Markup
    buttons: tuple[Button, ...]
    listed: str  # the address of the list that has this count

    @property
    def cause(self) -> str:
        """The diagnosis without what to do on a command line."""
        if self.endpoint is None:
            return "The endpoint is deleted, so they cannot be replayed."
        return _CAUSES.get(self.deaths.pattern, _CAUSES["mixed"])

    @property
    def can_go(self) -> bool:
        """Whether they would be accepted now, as far as one can tell."""
        return self.is_over and self.deaths.pattern in _PASSING


def accepts_again(endpoint: Any | None, accepted_at: str | None, last_death: str) -> bool:
    """Whether the endpoint accepted something after the last of them died, and still sends."""
    if endpoint is None or not endpoint.enabled or endpoint.paused:
        return False
    accepted, died = words.moment(accepted_at), words.moment(last_death)
    is_closed = endpoint.circuit_state.state == "closed"
    return is_closed and accepted is not None and died is not None and accepted > died


def group(
    deaths: Any, endpoint: Any | None, accepted_at: str | None, *, window: str, is_open: bool = False
) -> Group:
    """What is shown of an endpoint's dead letters."""
    is_over = accepts_again(endpoint, accepted_at, deaths.last_at)
    look = words.PATTERNS.get(deaths.pattern, words.PATTERNS["mixed"])
    if is_over and deaths.pattern in ("outage", "credentials", "throttled", "intermittent"):
        look = Look("ok", "ok", f"{look.word}, over")
    return Group(
        deaths=deaths,
        endpoint=endpoint,
        look=look,
        is_over=is_over,
        accepted_at=accepted_at,
        answer=_answer(deaths),
        advice=with_commands(deaths.advice),
        buttons=tuple(_buttons(deaths, endpoint, window, is_over=is_over, is_open=is_open)),
        listed=f"/dead-letters?{urlencode({'endpoint_id': deaths.endpoint_id, 'since': window})}",
    )


def _answer(deaths: Any) -> str:
    if deaths.status is None and deaths.error is None:
        return ""
    return words.answer(deaths.status, deaths.error)


def _buttons(deaths: Any, endpoint: Any | None, window: str, *, is_over: bool, is_open: bool) -> list[Button]:
    id, n = deaths.endpoint_id, f"{deaths.count:,}"
    chosen = urlencode({"endpoint_id": id, "since": window})
    page = f"/endpoints/{id}"
    shut = urlencode({"window": window})
    if is_open:
        show = Button(f"/dead-letters?{shut}#g-{id}", "Close the list", changes=False)
    else:
        show = Button(f"/dead-letters?{shut}&open={id}#g-{id}", "List", changes=False)
    replay = Button(f"/dead-letters/replay?{chosen}", f"Replay {n}…", "replay")
    first = msgspec.structs.replace(replay, kind="primary")
    discard = Button(f"/dead-letters/discard?{chosen}", f"Discard {n}…", "", "danger")
    if endpoint is None:
        return [show, discard]
    match deaths.pattern:
        case "gone":
            return [show, discard]
        case "rejected":
            return [show]
        case "mixed":
            return [show, first if is_over else replay]
        case "intermittent":
            change = Button(f"{page}/settings?change=retry#retry", "Change the schedule", "edit", "primary")
            return [show, replay, change]
        case _ if is_over:
            return [show, first]
        case "credentials":
            change = Button(f"{page}/settings?change=headers#headers", "Change the header", "edit", "primary")
            return [show, replay, change]
        case "throttled":
            found = _RATE.search(deaths.advice)
            label = f"Set {found[1]} per second…" if found else "Set a rate limit…"
            change = Button(f"{page}/settings?change=rate_limit#rate", label, "edit", "primary")
            return [show, replay, change]
        case _:
            return [show, Button(f"{page}#recover", "Test and recover", "probe", "primary")]
