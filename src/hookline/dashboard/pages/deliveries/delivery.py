"""Shows what became of one delivery, with what can be done to it."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from hookline.app import Hookline
from hookline.dashboard.look import words
from hookline.dashboard.look.payload_view import payload_file, viewed
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.dashboard.pages.deliveries import delivery_words
from hookline.dashboard.pages.deliveries.curl import curl
from hookline.errors import NotFound, WrongState

_ONE = "/v1/deliveries/{delivery_id}"
_SIBLINGS = 4  # other deliveries of the event that are named

_HOLDS = {
    "circuit": "but its circuit rests, so it waits for that",
    "receiver": "but the receiver asked for a rest, so it waits for that",
    "rate": "and goes out when its rate limit lets it",
    "slot": "and goes out as soon as a slot is free",
    "order": "but an earlier one of its endpoint goes first",
    "paused": "but its endpoint is paused, so it waits until that is resumed",
    "disabled": "but its endpoint is disabled, so it waits until that is enabled",
}


class DeliveryPages:
    """The page of a delivery, its payload, and what can be done to it."""

    def __init__(self, hookline: Hookline) -> None:
        self._settings = hookline.settings

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        one = "/deliveries/{delivery_id}"
        return [
            PageRoute("GET", one, self.show),
            PageRoute("GET", f"{one}/payload", self.payload),
            *(PageRoute("GET", f"{one}/{verb}", self.ask) for verb in _VERBS),
            *(PageRoute("POST", f"{one}/{verb}", self.act) for verb in _VERBS),
        ]

    async def show(self, asked: Asked) -> Answer:
        """What became of this one?"""
        try:
            delivery = await asked.api.get(_ONE, **asked.parts)
        except NotFound:
            return _missing(asked)
        endpoint = await _endpoint(asked, delivery.endpoint_id)
        payload = await _payload(asked, delivery.event_id)
        page = await asked.api.get(
            f"{_ONE}/attempts", {"cursor": asked.query.get("cursor", ""), "limit": "50"}, **asked.parts
        )
        lines, whole = delivery_words.attempt_lines(list(page.data))
        path = f"/deliveries/{delivery.id}"
        title = delivery_words.sentence(delivery)
        return Shown(
            template="delivery.html",
            title=title,
            data={
                "delivery": delivery,
                "endpoint": endpoint,
                "path": path,
                "look": words.delivery_state(delivery),
                "next": delivery_words.next_of(delivery, endpoint, now=asked.now),
                "siblings": await _siblings(asked, delivery),
                "lines": lines,
                "scale_ms": whole,
                "older": f"{path}?cursor={quote(page.next_cursor)}#attempts" if page.next_cursor else "",
                "is_first": "cursor" not in asked.query,
                "viewed": None
                if payload is None
                else viewed(payload, is_raw=asked.query.get("view") == "raw"),
                "curl": _curl(delivery, endpoint, page.data, payload),
                "verbs": _possible(delivery, endpoint),
            },
            nav="dead" if delivery.state == "dead" else "deliveries",
        )

    async def payload(self, asked: Asked) -> Response | Shown:
        """The exact bytes, as a file."""
        try:
            delivery = await asked.api.get(_ONE, **asked.parts)
        except NotFound:
            return _missing(asked)
        payload = await _payload(asked, delivery.event_id)
        if payload is None:
            return _missing(asked)
        return payload_file(payload, name=delivery.event_id)

    async def ask(self, asked: Asked) -> Answer:
        """Ask before something is done."""
        try:
            delivery = await asked.api.get(_ONE, **asked.parts)
        except NotFound:
            return _missing(asked)
        verb = _verb(asked)
        endpoint = await _endpoint(asked, delivery.endpoint_id)
        title = f"{verb.capitalize()} {delivery.event_type}?"
        return Shown(
            template="delivery_ask.html",
            title=title,
            data={
                "verb": verb,
                "delivery": delivery,
                "endpoint": endpoint,
                "path": f"/deliveries/{delivery.id}",
                "look": words.delivery_state(delivery),
                "can": verb in _possible(delivery, endpoint),
            },
            nav="dead" if delivery.state == "dead" else "deliveries",
        )

    async def act(self, asked: Asked) -> Answer:
        """Do it, and say so on the delivery's page."""
        id = asked.parts["delivery_id"]
        try:
            said = await _VERBS[_verb(asked)](asked)
        except NotFound as error:
            if error.noun == "delivery":
                return _missing(asked)
            raise
        except WrongState as error:
            return GoTo(f"/deliveries/{id}", said=f"{error} Nothing was changed.", tone="bad")
        return GoTo(f"/deliveries/{id}", said=said)


async def _retry(asked: Asked) -> str:
    delivery = await asked.api.post(f"{_ONE}/retry", **asked.parts)
    held = _HOLDS.get(delivery.waiting_for or "")
    return f"It is due now, {held}." if held else "It is due now: the next attempt is on its way."


async def _cancel(asked: Asked) -> str:
    await asked.api.post(f"{_ONE}/cancel", **asked.parts)
    return "It is cancelled and will not be sent again. It can be replayed."


async def _discard(asked: Asked) -> str:
    await asked.api.post("/v1/dead-letters/{delivery_id}/discard", **asked.parts)
    return "It is discarded and no longer among the dead letters. It can still be replayed."


async def _replay(asked: Asked) -> str:
    delivery = await asked.api.get(_ONE, **asked.parts)
    if delivery.state == "dead":
        delivery = await asked.api.post("/v1/dead-letters/{delivery_id}/replay", **asked.parts)
    elif delivery.state == "pending":
        raise WrongState("replayed", "pending")
    else:
        body = {"endpoint_id": delivery.endpoint_id, "states": [delivery.state]}
        replayed = await asked.api.post("/v1/events/{event_id}/replay", body, event_id=delivery.event_id)
        if delivery.id not in replayed.deliveries:
            raise WrongState("replayed", f"{delivery.state}, to an endpoint that is deleted,")
        delivery = await asked.api.get(_ONE, **asked.parts)
    held = _HOLDS.get(delivery.waiting_for or "")
    return (
        f"It is sent once more, {held}." if held else "It is on its way once more, with a new retry schedule."
    )


_VERBS = {"retry": _retry, "cancel": _cancel, "replay": _replay, "discard": _discard}


def _verb(asked: Asked) -> str:
    return str(asked.request.scope["path"]).rpartition("/")[2]


def _possible(delivery: Any, endpoint: Any) -> tuple[str, ...]:
    """What can be done to it."""
    match delivery.state:
        case "pending":
            # Behind a circuit it would go on waiting; testing the endpoint is what helps.
            return ("cancel",) if delivery.waiting_for == "circuit" else ("retry", "cancel")
        case "dead":
            return ("replay", "discard") if endpoint is not None else ("discard",)
        case _:
            return ("replay",) if endpoint is not None else ()


async def _endpoint(asked: Asked, id: str) -> Any | None:
    try:
        return await asked.api.get("/v1/endpoints/{endpoint_id}", endpoint_id=id)
    except NotFound:
        return None  # deleted


async def _payload(asked: Asked, event_id: str) -> bytes | None:
    try:
        return bytes((await asked.api.get("/v1/events/{event_id}", event_id=event_id)).payload)
    except NotFound:
        return None  # it was removed a moment ago


async def _siblings(asked: Asked, delivery: Any) -> Mapping[str, Any]:
    """The other deliveries of its event, each with its endpoint."""
    try:
        page = await asked.api.get(
            "/v1/events/{event_id}/deliveries", {"limit": str(_SIBLINGS + 1)}, event_id=delivery.event_id
        )
    except NotFound:
        return {"rows": [], "has_more": False}
    others = [each for each in page.data if each.id != delivery.id][:_SIBLINGS]
    rows = [(each, words.delivery_state(each), await _endpoint(asked, each.endpoint_id)) for each in others]
    return {"rows": rows, "has_more": page.next_cursor is not None}


def _curl(delivery: Any, endpoint: Any, attempts: Sequence[Any], payload: bytes | None) -> str:
    """The newest request whose headers were kept; without one what is known of the request."""
    if payload is None:
        return ""
    kept = next((each.request for each in attempts if each.request.url and each.request.headers), None)
    if kept is not None:
        url, headers = kept.url, kept.headers
    elif endpoint is not None:
        url, headers = endpoint.url, {"content-type": "application/json", **endpoint.headers}
    else:
        return ""
    return curl(url, headers, payload, file_name=f"{delivery.event_id}.json")


def _missing(asked: Asked) -> Shown:
    """The same page for what never was, is gone and is another account's."""
    id = asked.parts["delivery_id"]
    return Shown(
        template="delivery_missing.html",
        title=f"There is no delivery {id[:64]}.",
        data={},
        nav="deliveries",
        status=404,
    )
