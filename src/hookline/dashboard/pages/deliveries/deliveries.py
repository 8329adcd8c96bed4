"""Lists deliveries: what is going on."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from hookline.api.inside import CallersApi
from hookline.app import Hookline
from hookline.dashboard.endpoint_search import Found, endpoint_urls, find_endpoint
from hookline.dashboard.look import words
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.dashboard.pages.deliveries.chosen_deliveries import CREATED_WORDS, STATES, ChosenDeliveries
from hookline.dashboard.pages.deliveries.delivery_words import WAITS_SHORT
from hookline.errors import Invalid

_ROWS = 50
_LOOKED_AT = 100  # deliveries read at a time, where the API finds more than was chosen
_LOOKS = 10

Parts = dict[str, tuple[str, Mapping[str, Any]]]


class Rows(NamedTuple):
    """A page of the list."""

    deliveries: Sequence[Any]
    next_cursor: str
    looked_at: int  # how many were read for it; 0: only what is shown
    is_cut: bool  # the page could be fuller: there are more to look at


class DeliveriesPages:
    """The list of deliveries, and what is live on it."""

    def __init__(self, hookline: Hookline) -> None:
        self.live = {"deliveries": self.live_parts}

    def routes(self) -> Sequence[PageRoute]:
        """The page."""
        return [PageRoute("GET", "/deliveries", self.show)]

    async def show(self, asked: Asked) -> Answer:
        """What is going on?"""
        chosen = ChosenDeliveries.read(asked.query, account=asked.visitor.account)
        found = Found()
        rows = None
        problem: Invalid | None = None
        parameters: dict[str, str] = {}
        try:
            if chosen.endpoint_id:
                found = await find_endpoint(asked.api, chosen.endpoint_id, account=chosen.account)
            if found.id or not chosen.endpoint_id:
                parameters = chosen.parameters(endpoint_id=found.id, now=asked.now)
                rows = await _rows(asked.api, chosen, parameters)
        except Invalid as error:
            if error.code == "invalid_cursor":
                return GoTo(
                    chosen.url(), said="That page is no longer known. This is the first one.", tone="warn"
                )
            problem = error
        deliveries = rows.deliveries if rows else ()
        health = await asked.api.get("/v1/health") if chosen.is_all else None
        is_tail = not chosen.cursor and not chosen.until and rows is not None
        return Shown(
            template="deliveries.html",
            title=chosen.sentence(url=found.url, is_tenant=asked.visitor.account is not None),
            data={
                "chosen": chosen,
                "created_words": CREATED_WORDS,
                "found": found,
                "problem": problem,
                "rows": rows,
                "urls": await endpoint_urls(asked.api, deliveries),
                "chips": _chips(chosen, health),
                "health": health,
                "waits": WAITS_SHORT,
                "is_tail": is_tail,
                "match": _match(chosen, found),
                "next_href": _next(chosen, rows, parameters),
                "ways_out": _ways_out(chosen),
            },
            nav="deliveries",
            status=200 if problem is None else 422,
            live="deliveries" if is_tail else "",
        )

    async def live_parts(self, api: CallersApi, account: str | None, now: float) -> Parts:
        """The newest deliveries, for the script to compare, and the counts."""
        page = await api.get("/v1/deliveries", {"limit": str(_ROWS)})
        health = await api.get("/v1/health")
        counts = _counts(health)
        return {
            "newest": ("parts/newest.html", {"deliveries": page.data}),
            "so-far": ("parts/so_far.html", {"health": health}),
            **{f"n-{name}": ("parts/number.html", {"value": value}) for name, value in counts.items()},
        }


async def _rows(api: CallersApi, chosen: ChosenDeliveries, parameters: Mapping[str, str]) -> Rows:
    """A page of the list. Of the pending ones it reads on until the page is full, up to a bound."""
    if not chosen.is_part_of_pending:
        page = await api.get("/v1/deliveries", {**parameters, "limit": str(_ROWS)})
        return Rows(page.data, page.next_cursor or "", 0, False)
    kept: list[Any] = []
    looked_at, cursor = 0, parameters["cursor"]
    for _ in range(_LOOKS):
        page = await api.get("/v1/deliveries", {**parameters, "limit": str(_LOOKED_AT), "cursor": cursor})
        looked_at += len(page.data)
        kept += [each for each in page.data if chosen.keeps(each)]
        cursor = page.next_cursor or ""
        if not cursor or len(kept) >= _ROWS:
            break
    return Rows(kept, cursor, looked_at, bool(cursor) and len(kept) < _ROWS)


def _next(chosen: ChosenDeliveries, rows: Rows | None, parameters: Mapping[str, str]) -> str:
    if rows is None or not rows.next_cursor:
        return ""
    # The cursor is good for this moment only; the clock has moved on when it is used.
    return chosen.url(cursor=rows.next_cursor, since=parameters["since"])


def _counts(health: Any) -> dict[str, int]:
    return {
        "waiting": health.pending,
        "retrying": health.awaiting_retry,
        "sending": health.in_flight,
        "dead": health.dead,
    }


def _chips(chosen: ChosenDeliveries, health: Any) -> list[Mapping[str, Any]]:
    counts = _counts(health) if health is not None else {}
    return [
        {
            "name": state,
            "look": words.DELIVERY_STATES[state],
            "href": chosen.dead_url() if state == "dead" else chosen.url(state=state),
            "count": counts.get(state),
            "is_chosen": chosen.state == state,
        }
        for state in STATES
    ]


def _match(chosen: ChosenDeliveries, found: Found) -> str:
    """What a new delivery must be to belong on the page, for its script."""
    wanted = {
        "state": chosen.state,
        "endpoint": found.id,
        "type": chosen.event_type,
        "account": chosen.account,
        "event": chosen.event_id,
    }
    return msgspec.json.encode({name: value for name, value in wanted.items() if value}).decode()


def _ways_out(chosen: ChosenDeliveries) -> list[tuple[str, str]]:
    """Where more is found: a wider window, one filter less, none at all."""
    ways = []
    if chosen.created in ("1h", "24h"):
        ways.append(("the last 7 days", chosen.url(created="7d")))
    if chosen.created:
        ways.append(("any time", chosen.url(created="", since="", until="")))
    if chosen.state:
        ways.append(("any state", chosen.url(state="")))
    if chosen.event_type and not chosen.is_all:
        ways.append(("any event type", chosen.url(event_type="")))
    if chosen.endpoint_id:
        ways.append(("any endpoint", chosen.url(endpoint_id="")))
    if chosen.account:
        ways.append(("any account", chosen.url(account="")))
    if not chosen.is_all or chosen.state:
        ways.append(("all deliveries", "/deliveries"))
    return ways
