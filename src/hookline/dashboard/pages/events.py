"""Shows what was published, where it went, and sends it there again."""

from collections.abc import Sequence
from typing import Any

from hookline import ids
from hookline.app import Hookline
from hookline.dashboard.addresses import address, moment
from hookline.dashboard.look import words
from hookline.dashboard.look.payload_view import payload_file, viewed
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.dashboard.pages.publishing import may_publish
from hookline.errors import Invalid, NotFound
from hookline.model import EndpointId

FILTERS = ("type", "account", "idempotency_key", "since", "until")
STATES = ("pending", "delivered", "dead", "cancelled")
REPLAYED = ("dead", "cancelled", "delivered")
_SPANS = (("", "Any time"), ("1h", "Last hour"), ("24h", "Last 24 hours"), ("7d", "Last 7 days"))
_MOST_ENDPOINTS = 200  # that a replay lets choose from


class EventPages:
    """The list of events, and the pages of one."""

    def __init__(self, hookline: Hookline) -> None:
        self._store = hookline.store

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        one = "/events/{event_id}"
        return [
            PageRoute("GET", "/events", self.list_events),
            PageRoute("GET", one, self.show),
            PageRoute("GET", f"{one}/payload", self.download),
            PageRoute("GET", f"{one}/replay", self.ask_replay),
            PageRoute("POST", f"{one}/replay", self.replay),
        ]

    async def list_events(self, asked: Asked) -> Answer:
        """What was published?"""
        chosen = {name: asked.query.get(name, "").strip() for name in FILTERS}
        if asked.visitor.account is not None:
            chosen["account"] = ""
        exact = {
            name: moment(text, now=asked.now) if name in ("since", "until") else text
            for name, text in chosen.items()
        }
        problem: Invalid | None = None
        found: Any = None
        cursor = asked.query.get("cursor", "")
        try:
            found = await asked.api.get("/v1/events", {**exact, "cursor": cursor})
        except Invalid as error:
            problem = error
        is_filtered = any(chosen.values())
        return Shown(
            template="events.html",
            title=_list_title(chosen),
            data={
                "events": [] if found is None else found.data,
                "chosen": chosen,
                "problem": problem,
                "spans": [
                    (text, address("/events", chosen, since=span, until=None), chosen["since"] == span)
                    for span, text in _SPANS
                ],
                "is_filtered": is_filtered,
                "is_empty": found is not None and not found.data and not is_filtered and not cursor,
                "next": ""
                if found is None or found.next_cursor is None
                else address("/events", exact, cursor=found.next_cursor),
                "first": address("/events", chosen) if cursor else "",
                "may_publish": may_publish(asked.visitor),
            },
            nav="events",
            status=200 if problem is None else 422,
        )

    async def show(self, asked: Asked) -> Answer:
        """Was it published, and where did it go?"""
        id = asked.parts["event_id"]
        event = await asked.api.get("/v1/events/{event_id}", event_id=id)
        state = asked.query.get("state", "")
        state = state if state in STATES else ""
        cursor = asked.query.get("cursor", "")
        found = await asked.api.get(
            "/v1/events/{event_id}/deliveries", {"state": state, "cursor": cursor}, event_id=id
        )
        page = f"/events/{id}"
        total = _total(event.deliveries)
        return Shown(
            template="event.html",
            title=sentence(event, now=asked.now),
            data={
                "event": event,
                "sub": _sub(event, now=asked.now),
                "total": total,
                "state": state,
                "chips": [
                    (each, getattr(event.deliveries, each), address(page, state=each) + "#where")
                    for each in STATES
                    if getattr(event.deliveries, each)
                ],
                "deliveries": found.data,
                "urls": await self._urls(asked, found.data),
                "next": ""
                if found.next_cursor is None
                else address(page, state=state, cursor=found.next_cursor) + "#where",
                "first": address(page, state=state) + "#where" if cursor else "",
                "viewed": viewed(bytes(event.payload), is_raw=asked.query.get("view") == "raw"),
                "may_replay": total > event.deliveries.pending,
            },
            nav="events",
        )

    async def download(self, asked: Asked) -> Answer:
        """The bytes as they were published."""
        event = await asked.api.get("/v1/events/{event_id}", event_id=asked.parts["event_id"])
        return payload_file(bytes(event.payload), name=event.id)

    async def ask_replay(self, asked: Asked) -> Answer:
        """Which of its deliveries are sent again?"""
        event = await asked.api.get("/v1/events/{event_id}", event_id=asked.parts["event_id"])
        counts = event.deliveries
        given = [each for each in asked.query.get("states", "").split(",") if each in REPLAYED]
        is_dead = counts.dead + counts.cancelled > 0
        states = given or [each for each in REPLAYED if (each != "delivered") == is_dead]
        return await self._asking(asked, event, states, asked.query.get("endpoint_id", ""))

    async def replay(self, asked: Asked) -> Answer:
        """Send them again."""
        id = asked.parts["event_id"]
        event = await asked.api.get("/v1/events/{event_id}", event_id=id)
        states = [str(each) for each in asked.form.getlist("states")]
        endpoint = asked.field("endpoint_id")
        try:
            body = {"states": states, "endpoint_id": endpoint or None}
            done = await asked.api.post("/v1/events/{event_id}/replay", body, event_id=id)
        except Invalid as error:
            return await self._asking(asked, event, states, endpoint, problem=error)
        except NotFound as error:
            if error.noun != "endpoint":
                raise
            return await self._asking(asked, event, states, endpoint, problem=Invalid(str(error)))
        if not done.replayed:
            return GoTo(
                f"/events/{id}", "Nothing was replayed: no delivery was in the chosen states.", "warn"
            )
        return GoTo(
            f"/events/{id}#where",
            f"Replayed {words.counted(done.replayed, 'delivery', 'deliveries')}: on the way again.",
        )

    async def _urls(self, asked: Asked, deliveries: Sequence[Any]) -> dict[str, str]:
        """The URLs of their endpoints, all at once; of deleted ones there are none."""
        known = {EndpointId(ids.read("endpoint", each.endpoint_id)) for each in deliveries}
        found = await self._store.endpoints_by_id(sorted(known)) if known else []
        own = asked.visitor.account
        return {ids.show("endpoint", each.id): each.url for each in found if own in (None, each.account)}

    async def _asking(
        self,
        asked: Asked,
        event: Any,
        states: Sequence[str],
        endpoint: str,
        *,
        problem: Invalid | None = None,
    ) -> Answer:
        found = await asked.api.get(
            "/v1/events/{event_id}/deliveries", {"limit": str(_MOST_ENDPOINTS)}, event_id=event.id
        )
        return Shown(
            template="event_replay.html",
            title=f"Replay {event.type}?",
            data={
                "event": event,
                "states": [(each, getattr(event.deliveries, each), each in states) for each in REPLAYED],
                "endpoint": endpoint,
                "deliveries": found.data,
                "has_more": found.next_cursor is not None,
                "urls": await self._urls(asked, found.data),
                "problem": problem,
            },
            nav="events",
            status=200 if problem is None else 422,
        )


def sentence(event: Any, *, now: float) -> str:
    """`order.paid went to 3 endpoints: 2 delivered, 1 waits`."""
    counts = event.deliveries
    total = _total(counts)
    if not total:
        return f"{event.type} went to no endpoint"
    where = words.counted(total, "endpoint")
    if _is_ahead(event, now=now) and counts.pending == total:
        return f"{event.type} will go to {where}"
    if total == 1:
        [state] = [each for each in STATES if getattr(counts, each)]
        return f"{event.type} went to 1 endpoint: {_ONE[state]}"
    said = [
        f"{count:,} {_ONE[each] if count == 1 or each != 'pending' else 'wait'}"
        for each in ("delivered", "dead", "pending", "cancelled")
        if (count := getattr(counts, each))
    ]
    if len(said) == 1:
        said = [f"all {said[0].split(' ', 1)[1]}"]
    return f"{event.type} went to {where}: {', '.join(said)}"


_ONE = {"pending": "waits", "delivered": "delivered", "dead": "dead", "cancelled": "cancelled"}


def _sub(event: Any, *, now: float) -> str:
    if not _total(event.deliveries):
        return "No endpoint asked for this type when it was published. It is kept, but there is nothing to replay."
    if _is_ahead(event, now=now):
        return "It was published to be delivered later."
    if event.deliveries.dead:
        return "What is dead was given up and is kept: it can be replayed."
    return ""


def _is_ahead(event: Any, *, now: float) -> bool:
    at = words.moment(event.deliver_at)
    return at is not None and at > now


def _total(counts: Any) -> int:
    return int(counts.pending + counts.delivered + counts.dead + counts.cancelled)


def _list_title(chosen: dict[str, str]) -> str:
    said = "Events"
    if chosen["type"]:
        said += f" of type {chosen['type'][:128]}"
    if chosen["account"]:
        said += f" of {chosen['account'][:64]}"
    if chosen["idempotency_key"]:
        said += f" with the key {chosen['idempotency_key'][:60]}"
    spans = {"1h": "the last hour", "24h": "the last 24 hours", "7d": "the last 7 days"}
    if chosen["since"] in spans and not chosen["until"]:
        said += f", {spans[chosen['since']]}"
    return said
