"""Every page, made from the table of pages: who may not see or change something meets the same wall everywhere."""

import json
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest.mock import MagicMock
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

import httpx
import pytest

from hookline.config import Settings
from hookline.dashboard.look.words import short_id
from hookline.dashboard.page import PageRoute
from hookline.dashboard.table import all_pages
from refused_rows import add_refused_row
from tests.dashboard.conftest import Service
from tests.dashboard.site import PATIENCE_S, Page, Site

CANARY = "canaryofothers"
_PAGES = all_pages(MagicMock(settings=Settings()), {})
ROUTES: list[PageRoute] = [route for page in _PAGES for route in page.routes()]
READS = [route for route in ROUTES if route.method == "GET"]
ACTS = [route for route in ROUTES if route.method == "POST"]
STREAMS = sorted(name for page in _PAGES for name in getattr(page, "live", {}))
STREAMS_OF = sorted(name for page in _PAGES for name in getattr(page, "live_of", {}))
ONCE = {"base": 1, "factor": 1, "cap": None, "attempts": 1, "jitter": "none"}
# Every name that a page reads from its address; a value of others' must do what an unknown one does.
FILTERS = {
    "account": "account",
    "action": "text",
    "actor": "key_id",
    "cursor": "text",
    "endpoint": "endpoint_id",
    "endpoint_id": "endpoint_id",
    "event": "event_id",
    "event_id": "event_id",
    "event_type": "text",
    "id": "delivery_id",
    "idempotency_key": "text",
    "job": "replay_id",
    "name": "text",
    "after": "text",
    "open": "endpoint_id",
    "q": "text",
    "subject": "endpoint_id",
    "type": "text",
    "code": "text",
    "source": "text",
}
UNKNOWN = {
    "account": "unknown-account-x",
    "delivery_id": "dlv_01hzzzzzzzzzzzzzzzzzzzzzzz".replace("z", "v"),
    "discard_id": "dsc_01hvvvvvvvvvvvvvvvvvvvvvvv",
    "endpoint_id": "ep_01hvvvvvvvvvvvvvvvvvvvvvvv",
    "event_id": "evt_01hvvvvvvvvvvvvvvvvvvvvvvv",
    "key_id": "key_01hvvvvvvvvvvvvvvvvvvvvvvv",
    "name": "unknown.type",
    "replay_id": "rpl_01hvvvvvvvvvvvvvvvvvvvvvvv",
    "row_id": "evt_01hvvvvvvvvvvvvvvvvvvvvvvv",
    "text": "unknownofnobody",
}
ODD = ["x", "ep_", "ep_x", "%00", "'%20OR%201=1", "%F0%9F%92%A9", "%FF", "a" * 3_000, "%0d%0ax:y"]


class Things(NamedTuple):
    """What an account has, by the parts of paths."""

    ids: dict[str, str]


class World:
    """Two accounts that each have something of everything."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.mine_account = f"mine{uuid4().hex[:8]}"
        self.mine = self._things(self.mine_account, "mineown")
        self.others = self._things(f"{CANARY}-account", CANARY)
        self._visitors: dict[str, Site] = {}

    def _things(self, account: str, word: str) -> Things:
        service, path = self.service, f"/{word}"
        service.target.answers[path] = (500, f"{word} body".encode())
        endpoint = service.create(
            path,
            account=account,
            events=["*"],
            retry=ONCE,
            circuit=None,
            description=f"{word} description",
            headers={"x-own": f"{word}-value"},
        )
        made = [
            service.publish(
                f"{word}.type",
                {"word": f"{word} payload {n}"},
                account=account,
                idempotency_key=f"{word}-key{n}",
            )
            for n in range(2)
        ]
        found = f"/v1/deliveries?endpoint_id={endpoint['id']}&limit=200"
        deliveries = _until(lambda: service.call("GET", found)["data"], lambda data: _all(data, "dead", 2))
        key = service.call(
            "POST", "/v1/keys", {"name": f"{word} key", "scopes": ["read"], "account": account}
        )
        own = {"authorization": f"Bearer {service.new_key('admin', account=account)}"}
        jobs = {kind: _job(service, kind, deliveries[1]["id"], own) for kind in ("replay", "discard")}
        return Things(
            {
                "account": account,
                "delivery_id": deliveries[0]["id"],
                "discard_id": jobs["discard"],
                "endpoint_id": endpoint["id"],
                "event_id": made[0]["id"],
                "key_id": key["id"],
                "name": f"{word}.type",
                "replay_id": jobs["replay"],
                "row_id": add_refused_row(
                    service.database, account=account, type=f"{word}.type", detail=f"{word} detail"
                ),
                "text": word,
            }
        )

    def visitor(self, name: str) -> Site:
        """A visitor by what lets it in; the same one each time."""
        if name not in self._visitors:
            self._visitors[name] = self._new(name)
        return self._visitors[name]

    def _new(self, name: str) -> Site:
        service, account = self.service, self.mine_account
        match name:
            case "nobody":
                return Site(service.url)
            case "reader":
                return Site(service.url, key=service.new_key("read"))
            case "own reader":
                return Site(service.url, key=service.new_key("read", account=account))
            case "own admin":
                return Site(service.url, key=service.new_key("admin", account=account))
            case "publisher" | "own publisher":
                visitor = Site(service.url)
                bound = account if name.startswith("own") else None
                visitor.post("/login", key=service.new_key("publish", account=bound))
                return visitor
        made = service.call(
            "POST", f"/v1/accounts/{account}/portal-link", {"may_act": name == "portal that acts"}
        )
        parts = urlsplit(made["url"])
        visitor = Site(service.url)
        page = visitor.submit(visitor.get(f"{parts.path}?{parts.query}"), "/portal/enter")
        assert page.status == 200
        return visitor

    def everything(self) -> str:
        """All that could be changed, as the API shows it to the operator."""
        shown = {}
        for path in (
            "/v1/audit?limit=200",
            "/v1/dead-letters?limit=200",
            "/v1/deliveries?limit=200",
            "/v1/discards?limit=200",
            "/v1/endpoints?limit=200",
            "/v1/event-types?limit=200",
            "/v1/events?limit=200",
            "/v1/keys?limit=200",
            "/v1/replays?limit=200",
        ):
            shown[path] = self.service.call("GET", path)
        return json.dumps(shown, indent=1, sort_keys=True)

    def close(self) -> None:
        for visitor in self._visitors.values():
            visitor.close()


@pytest.fixture(scope="module")
def world(service: Service) -> Iterator[World]:
    world = World(service)
    yield world
    world.close()


def _job(service: Service, kind: str, delivery_id: str, own: dict[str, str]) -> str:
    """A bulk job of the account's own key, which is over; what it replayed is dead again."""
    answer = service.client.post(f"/v1/{kind}s", json={"filter": {"ids": [delivery_id]}}, headers=own)
    path = f"/v1/{kind}s/{answer.json()['id']}"
    _until(lambda: service.call("GET", path), lambda job: job["state"] == "done")
    if kind == "replay":
        found = f"/v1/deliveries/{delivery_id}"
        _until(lambda: service.call("GET", found), lambda delivery: delivery["state"] == "dead")
    return str(answer.json()["id"])


def _all(data: list[dict[str, Any]], state: str, count: int) -> bool:
    return len(data) == count and all(each["state"] == state for each in data)


def _until(look: Any, is_good: Any) -> Any:
    ends_at = time.monotonic() + PATIENCE_S
    while not is_good(found := look()):
        assert time.monotonic() < ends_at, found
        time.sleep(0.05)
    return found


def _path(route: PageRoute, ids: dict[str, str]) -> str:
    """The path with these ids; a part that is not known here is a new one, which these tests have to learn."""
    names = re.findall(r"\{(\w+)\}", route.path)
    assert set(names) <= UNKNOWN.keys(), f"{route.path}: add its part to UNKNOWN and to World"
    return route.path.format_map({name: quote(ids[name], safe="%") for name in names})


def _has_part(route: PageRoute) -> bool:
    return "{" in route.path


def _is_of_account(route: PageRoute) -> bool:
    """Whether what its path names belongs to an account; types are described for all of them."""
    return _has_part(route) and "{name}" not in route.path


def _raw(visitor: Site, method: str, path: str, data: Any = None) -> httpx.Response:
    headers = visitor.origin if method == "POST" else {}
    if "hookline_said" in visitor.client.cookies:
        visitor.client.cookies.delete("hookline_said")
    return visitor.client.request(method, path, data=data, headers=headers, follow_redirects=False)


def _same(answer: httpx.Response, things: dict[str, str]) -> tuple[Any, ...]:
    """What of an answer must be equal, whatever id was asked for."""
    text = re.sub(r"req_[0-9a-f]+", "REQ", answer.text)
    text = re.sub(r'name="token" value="[^"]*"', "TOKEN", text)
    text = re.sub(r'data-plot="[^"]*"', "PLOT", text)
    text = re.sub(r"<time .*?</time>", "TIME", text)
    text = re.sub(r'name="(key|idempotency_key)"[^>]*', "KEY", text)
    text = re.sub(r'id="tally">[^<]*', "TALLY", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d(:|%3A)\d\d(:|%3A)\d\d(\.\d+)?Z?", "TIME", text)
    where = answer.headers.get("location", "")
    for value in sorted(things.values(), key=len, reverse=True):
        for written in (quote(value, safe=""), value, short_id(value)):
            text, where = text.replace(written, "IT"), where.replace(written, "IT")
    return answer.status_code, answer.headers.get("content-type"), where, *text.splitlines()


def _token(visitor: Site) -> str:
    page = visitor.get("/keyboard")
    found = [dict(form.fields).get("token") for form in page.forms]
    return next((each for each in found if each), "")


def _form(visitor: Site, ids: dict[str, str]) -> dict[str, Any]:
    """Fields as many forms have them, all about the same things."""
    return {
        "token": _token(visitor),
        "account": ids["account"],
        "endpoint_id": ids["endpoint_id"],
        "event_id": ids["event_id"],
        "id": [ids["delivery_id"]],
        "ids": [ids["delivery_id"]],
        "states": ["dead", "delivered"],
        "confirm": "1",
        "sure": "1",
        "name": "made.by.nobody",
        "scopes": "read",
        "type": f"{CANARY}.made",
        "payload": "{}",
        "url": "http://127.0.0.1:9/made",
        "until": "2100-01-01T00:00:00Z",
        "key": uuid4().hex,
    }


def _tells_of_others(world: World, text: str) -> list[str]:
    """What of others a text has in it."""
    things = world.others.ids
    words = {CANARY, *(value for name, value in things.items() if name != "text")}
    return sorted(each for each in words if each in text)


BOUND = ("own admin", "own reader", "portal that acts", "portal that looks")


@pytest.mark.parametrize("route", READS, ids=lambda route: route.path)
def test_without_a_visit_a_page_tells_nothing(world: World, route: PageRoute):
    visitor = world.visitor("nobody")
    for ids in (world.mine.ids, world.others.ids, UNKNOWN):
        path = _path(route, ids)
        answer = _raw(visitor, "GET", path)
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/login?next={quote(path, safe='')}"
        assert not answer.content


@pytest.mark.parametrize("route", READS, ids=lambda route: route.path)
@pytest.mark.parametrize("name", ["publisher", "own publisher"])
def test_a_key_that_may_only_publish_sees_no_page(world: World, route: PageRoute, name: str):
    for ids in (world.mine.ids, world.others.ids, UNKNOWN):
        answer = _raw(world.visitor(name), "GET", _path(route, ids))
        assert answer.status_code in (403, 404), answer.text
        page = Page(answer)
        assert "mineown" not in page.text
        assert not _tells_of_others(world, page.text)


@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize("route", READS, ids=lambda route: route.path)
def test_no_page_tells_an_account_of_others(world: World, route: PageRoute, name: str):
    visitor = world.visitor(name)
    own = _raw(visitor, "GET", _path(route, world.mine.ids))
    assert own.status_code == (404 if not route.for_accounts else own.status_code)
    assert own.status_code < 500
    if "{name}" not in route.path:
        is_closed = not route.for_accounts or (route.path == "/events/new" and name.startswith("portal"))
        assert own.status_code in ((403, 404) if is_closed else (200, 303, 403)), own.text
    assert not _tells_of_others(world, own.text + str(own.headers))
    if not _is_of_account(route):
        return
    foreign = _raw(visitor, "GET", _path(route, world.others.ids))
    unknown = _raw(visitor, "GET", _path(route, UNKNOWN))
    assert _same(foreign, world.others.ids) == _same(unknown, UNKNOWN)
    assert foreign.status_code in (404, 303)


@pytest.mark.parametrize("name", ["own admin", "portal that looks"])
@pytest.mark.parametrize("route", READS, ids=lambda route: route.path)
def test_a_filter_tells_an_account_nothing_of_others(world: World, route: PageRoute, name: str):
    visitor = world.visitor(name)
    path = _path(route, world.mine.ids)
    for field, kind in FILTERS.items():
        values = [(world.others.ids[kind], UNKNOWN[kind])]
        if kind == "endpoint_id":  # also by a part of its URL, or the beginning of its id
            values.append((f"{CANARY}", "unknownofno-one"))
        if field in ("q", "type", "event_type", "name"):
            values += [(world.others.ids[each], UNKNOWN[each]) for each in UNKNOWN if each != "text"]
        for foreign, unknown in values:
            for tries_left in reversed(range(5)):
                given = _raw(visitor, "GET", f"{path}?{urlencode({field: foreign})}")
                nothing = _raw(visitor, "GET", f"{path}?{urlencode({field: unknown})}")
                is_same = _same(given, {"x": foreign}) == _same(nothing, {"x": unknown})
                if is_same or not tries_left:
                    break  # else: what the page shows of the visitor's own may have changed in between
            assert is_same, (field, given.text, nothing.text)
            assert given.status_code < 500


@pytest.mark.parametrize("name", ["own admin", "reader"])
@pytest.mark.parametrize("route", READS, ids=lambda route: route.path)
def test_what_cannot_be_an_id_gets_one_clear_page(world: World, route: PageRoute, name: str):
    visitor = world.visitor(name)
    parts = re.findall(r"\{(\w+)\}", route.path)
    for odd in ODD:
        if parts:
            answer = _raw(visitor, "GET", route.path.format_map(dict.fromkeys(parts, odd)))
            assert answer.status_code in (200, 303, 404, 403, 422), (odd, answer.text)
        for field in FILTERS:
            answer = _raw(visitor, "GET", f"{_path(route, world.mine.ids)}?{field}={odd}")
            assert answer.status_code < 500, (field, odd, answer.text)


@pytest.mark.parametrize(
    "name", ["nobody", "reader", "own reader", "publisher", "own publisher", "portal that looks"]
)
def test_who_may_not_act_changes_nothing_with_any_form(world: World, name: str):
    visitor = world.visitor(name)
    before = world.everything()
    for route in ACTS:
        if route.path == "/events/new" and "publisher" in name:
            continue
        for ids in (world.mine.ids, world.others.ids, UNKNOWN):
            answer = _raw(visitor, "POST", _path(route, ids), _form(visitor, ids))
            assert answer.status_code < 500, route.path
            if route.path.endswith(("/test", "/recover")) or name == "nobody":
                assert answer.status_code in (303, 403, 404), (route.path, answer.text)
            if name.startswith(("own", "portal")):
                assert not _tells_of_others(world, answer.text) or ids is world.others.ids
    assert world.everything() == before


@pytest.mark.parametrize("name", ["own admin", "portal that acts"])
@pytest.mark.parametrize("route", ACTS, ids=lambda route: route.path)
def test_no_form_reaches_what_others_have(world: World, route: PageRoute, name: str):
    visitor = world.visitor(name)
    before = world.everything()
    foreign_ids, unknown_ids = world.others.ids, UNKNOWN
    forms = [_form(visitor, ids) for ids in (foreign_ids, unknown_ids)]
    if not _has_part(route):  # then what it would create may be the visitor's own
        forms = [{**each, "url": "", "type": ""} for each in forms]
    foreign = _raw(visitor, "POST", _path(route, foreign_ids), forms[0])
    unknown = _raw(visitor, "POST", _path(route, unknown_ids), forms[1])
    assert foreign.status_code < 500
    if "{name}" not in route.path:
        assert _same(foreign, foreign_ids) == _same(unknown, unknown_ids)
    assert world.everything() == before


@pytest.mark.parametrize("route", ACTS, ids=lambda route: route.path)
def test_no_form_does_anything_without_its_token_or_from_elsewhere(world: World, route: PageRoute):
    visitor = world.visitor("own admin")
    before = world.everything()
    form = _form(visitor, world.mine.ids)
    path = _path(route, world.mine.ids)
    assert _raw(visitor, "POST", path, {**form, "token": ""}).status_code == 403
    for headers in (
        {},
        {"origin": "null"},
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
    ):
        answer = visitor.client.post(path, data=form, headers=headers, follow_redirects=False)
        assert answer.status_code == 403, headers
    assert world.everything() == before


@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize("stream", STREAMS)
def test_no_stream_tells_an_account_of_others(world: World, stream: str, name: str):
    assert not _tells_of_others(world, _first_event(world.visitor(name), stream))


@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize("stream", STREAMS_OF)
def test_a_stream_of_what_others_have_is_one_of_nothing(world: World, stream: str, name: str):
    visitor = world.visitor(name)
    kind = f"{stream}_id"
    assert kind in UNKNOWN, f"{stream}: add its id to UNKNOWN and to World"
    assert not _tells_of_others(world, _first_event(visitor, f"{stream}:{world.mine.ids[kind]}"))
    foreign = _raw(visitor, "GET", f"/live?page={stream}:{world.others.ids[kind]}")
    unknown = _raw(visitor, "GET", f"/live?page={stream}:{UNKNOWN[kind]}")
    assert foreign.status_code == 404
    assert _same(foreign, world.others.ids) == _same(unknown, UNKNOWN)


@pytest.mark.parametrize("name", ["publisher", "own publisher"])
def test_a_key_that_may_only_publish_has_no_stream(world: World, name: str):
    names = [*STREAMS, *(f"{each}:{world.mine.ids[f'{each}_id']}" for each in STREAMS_OF)]
    for stream in names:
        with world.visitor(name).client.stream("GET", f"/live?page={stream}") as response:
            assert response.status_code == 403


def _first_event(visitor: Site, stream: str) -> str:
    with visitor.client.stream("GET", f"/live?page={stream}") as response:
        assert response.status_code == 200
        lines = []
        for line in response.iter_lines():
            lines.append(line)
            if line.startswith("data: "):
                break
        return "\n".join(lines)
