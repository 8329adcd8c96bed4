"""Every page there is, on each store: it fits, it is accessible, it keeps to itself, and it looks as in its picture."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from hookline import Hookline
from hookline.dashboard.table import all_pages
from server_process import ServerProcess
from tests.browser import hostile
from tests.browser.conftest import KEY, NewPage, Shots
from tests.browser.guard import Guard
from tests.browser.judging import judge
from tests.browser.scenes import HOSTILE_TYPE, Api, Scene
from tests.browser.switched_receiver import SwitchedReceiver
from tests.corpus.shown import SHOWN

UNKNOWN = "ep_01k7aaaaaaaaaaaaaaaaaaaaaa"
ENDPOINT = "/endpoints/{endpoint_id}"
DELIVERY = "/deliveries/{delivery_id}"
Ids = dict[str, str]
# By its route, what a page is asked for: the name of its picture, and the path with names of the scene's ids.
SAMPLES: dict[str, dict[str, str]] = {
    "/": {"overview": "/"},
    "/keyboard": {"keyboard": "/keyboard"},
    "/endpoints": {
        "endpoints": "/endpoints",
        "endpoints-filtered": "/endpoints?state=failing",
        "endpoints-none": "/endpoints?q=nothing-like-this",
    },
    "/endpoints/new": {"endpoint-new": "/endpoints/new"},
    f"{ENDPOINT}/settings": {
        "settings-of-one": "/endpoints/{full}/settings",
        "settings-plain": "/endpoints/{fine}/settings",
        "settings-hostile": "/endpoints/{hostile}/settings",
        "settings-retry": "/endpoints/{full}/settings?change=retry",
        "settings-headers": "/endpoints/{hostile}/settings?change=headers",
    },
    f"{ENDPOINT}/secret/show": {"secret-show": "/endpoints/{fine}/secret/show"},
    f"{ENDPOINT}/secret/rotate": {"secret-rotate": "/endpoints/{fine}/secret/rotate"},
    f"{ENDPOINT}/delete": {"endpoint-delete": "/endpoints/{down}/delete"},
    ENDPOINT: {
        "endpoint-fine": "/endpoints/{fine}",
        "endpoint-down": "/endpoints/{down}",
        "endpoint-refused": "/endpoints/{refused}",
        "endpoint-invalid": "/endpoints/{invalid}",
        "endpoint-throttled": "/endpoints/{throttled}",
        "endpoint-flaky": "/endpoints/{flaky}",
        "endpoint-gone": "/endpoints/{gone}",
        "endpoint-slow": "/endpoints/{slow}",
        "endpoint-paused": "/endpoints/{paused}",
        "endpoint-off": "/endpoints/{off}",
        "endpoint-full": "/endpoints/{full}",
        "endpoint-hostile": "/endpoints/{hostile}",
    },
    f"{ENDPOINT}/recover": {"endpoint-recover": "/endpoints/{down}/recover"},
    f"{ENDPOINT}/test": {"endpoint-test": "/endpoints/{fine}/test"},
    f"{ENDPOINT}/disable": {"endpoint-disable": "/endpoints/{fine}/disable"},
    f"{ENDPOINT}/circuit": {"endpoint-circuit": "/endpoints/{down}/circuit"},
    "/deliveries": {
        "deliveries": "/deliveries",
        "deliveries-dead": "/deliveries?state=dead",
        "deliveries-of-one": "/deliveries?endpoint_id={down}&event_type=order.paid&created=custom",
        "deliveries-none": "/deliveries?event_type=nothing.like.this",
        "deliveries-refused": "/deliveries?event_type=%3Cscript%3E",
    },
    DELIVERY: {
        "delivery": "/deliveries/{delivery}",
        "delivery-pending": "/deliveries/{pending delivery}",
        "delivery-dead": "/deliveries/{dead delivery}",
        "delivery-hostile": "/deliveries/{hostile delivery}",
        "delivery-hostile-raw": "/deliveries/{hostile delivery}?view=raw",
    },
    f"{DELIVERY}/retry": {"delivery-retry": "/deliveries/{pending delivery}/retry"},
    f"{DELIVERY}/cancel": {"delivery-cancel": "/deliveries/{pending delivery}/cancel"},
    f"{DELIVERY}/replay": {"delivery-replay": "/deliveries/{delivery}/replay"},
    f"{DELIVERY}/discard": {"delivery-discard": "/deliveries/{dead delivery}/discard"},
    "/dead-letters": {
        "dead-letters": "/dead-letters",
        "dead-letters-list": "/dead-letters?view=list",
        "dead-letters-of-one": "/dead-letters?endpoint_id={refused}",
        "dead-letters-hostile": "/dead-letters?endpoint_id={hostile}",
        "dead-letters-none": "/dead-letters?event_type=nothing.like.this",
    },
    "/dead-letters/replay": {"bulk-replay": "/dead-letters/replay?endpoint_id={refused}"},
    "/dead-letters/discard": {"bulk-discard": "/dead-letters/discard?account=birch"},
    "/replays": {"replays": "/replays"},
    "/discards": {"discards": "/discards"},
    "/replays/{replay_id}": {"replay-job": "/replays/{replays}"},
    "/discards/{discard_id}": {"discard-job": "/discards/{discards}"},
    "/events/new": {"event-new": "/events/new"},
    "/events": {"events": "/events", "events-none": "/events?type=nothing.like.this"},
    "/events/{event_id}": {
        "event": "/events/{event}",
        "event-hostile": "/events/{hostile event}",
        "event-large": "/events/{large event}",
    },
    "/events/{event_id}/replay": {"event-replay": "/events/{event}/replay"},
    "/event-types": {"event-types": "/event-types"},
    "/event-types/-new": {"event-type-new": "/event-types/-new"},
    "/event-types/{name}": {"event-type": f"/event-types/{HOSTILE_TYPE}"},
    "/event-types/{name}/change": {"event-type-change": f"/event-types/{HOSTILE_TYPE}/change"},
    "/event-types/{name}/delete": {"event-type-delete": f"/event-types/{HOSTILE_TYPE}/delete"},
    "/accounts": {"accounts": "/accounts"},
    "/accounts/{account}": {"account": "/accounts/acme"},
    "/accounts/{account}/notify": {"account-notify": "/accounts/acme/notify"},
    "/keys": {"keys": "/keys"},
    "/keys/new": {"key-new": "/keys/new"},
    "/keys/{key_id}/revoke": {"key-revoke": "/keys/{hostile key}/revoke"},
    "/workers": {"workers": "/workers"},
    "/audit": {
        "audit": "/audit",
        "audit-filtered": "/audit?action=key.created",
        "audit-refused": "/audit?actor=x",
    },
    "/settings": {"settings": "/settings"},
    "/find": {
        "find-many": "/find?q=127.0.0.1",
        "find-none": "/find?q=%22%3E%3Cscript%3Ewindow.__xss=1%3C/script%3E",
    },
}
REFUSED = {"deliveries-refused": 422, "audit-refused": 422, "find-none": 404}
DOWNLOADS = {"/deliveries/{delivery_id}/payload", "/events/{event_id}/payload"}  # tests/dashboard has them
EMPTY = {
    "overview": "/",
    "endpoints": "/endpoints",
    "deliveries": "/deliveries",
    "dead-letters": "/dead-letters",
    "events": "/events",
    "event-types": "/event-types",
    "replays": "/replays",
}
NOT_FOUND = {
    "not-found": f"/endpoints/{UNKNOWN}",
    "not-found-delivery": "/deliveries/dlv_01k7aaaaaaaaaaaaaaaaaaaaaa",
    "not-found-event": "/events/evt_01k7aaaaaaaaaaaaaaaaaaaaaa",
    "not-found-page": f"/endpoints/{UNKNOWN}/nothing",
}
ROUTES = sorted(
    route.path for page in all_pages(Hookline(), {}) for route in page.routes() if route.method == "GET"
)


@pytest.fixture(scope="module")
def scene(watched_server: ServerProcess) -> Iterator[Scene]:
    """The server of the module, with a day's trouble."""
    with SwitchedReceiver() as receiver:
        api = Api(watched_server.url)
        yield Scene(api, receiver)
        api.close()


@pytest.fixture
def look(new_page: NewPage, guard: Guard, shots: Shots, database: str) -> Callable[..., Page]:
    """Loads a page and judges it at every width; on SQLite also in both colours, by axe, and with pictures."""

    def look(server: str, path: str, name: str, *, status: int = 200, page: Page | None = None) -> Page:
        page = page or new_page(server)
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == status, path
        if status >= 400:
            refused = guard.take()  # the browser itself complains of such an answer, once
            assert all("Failed to load resource" in trouble for trouble in refused), refused
        judge(page, name, shots if database == "sqlite" else None)
        return page

    return look


def test_every_route_has_a_sample() -> None:
    assert sorted({*SAMPLES, *DOWNLOADS}) == ROUTES


@pytest.mark.parametrize("name", [name for paths in SAMPLES.values() for name in paths])
def test_page(look: Callable[..., Page], scene: Scene, name: str) -> None:
    [path] = [paths[name] for paths in SAMPLES.values() if name in paths]
    look(scene.api.url, path.format_map(scene.ids), name, status=REFUSED.get(name, 200))


@pytest.mark.parametrize("name", NOT_FOUND)
def test_page_that_is_not_there(look: Callable[..., Page], scene: Scene, name: str) -> None:
    look(scene.api.url, NOT_FOUND[name], name, status=404)


def test_pages_of_an_empty_installation(server: ServerProcess, look: Callable[..., Page]) -> None:
    # In this order, the server ends after its pages.
    for name, path in EMPTY.items():
        look(server.url, path, f"empty-{name}")


def test_pages_that_a_form_leads_to(
    look: Callable[..., Page], new_page: NewPage, scene: Scene, shots: Shots, database: str
) -> None:
    """What is shown once: a new key, a portal link, a secret, a new endpoint."""
    taken = shots if database == "sqlite" else None
    page = new_page(scene.api.url)
    page.goto("/keys/new")
    page.get_by_label("Name").fill(hostile.TEXTS[1])
    page.get_by_role("button", name="Make the key").click()
    expect(page.locator("main")).to_contain_text("hlk_")
    judge(page, "key-made", taken)
    page.goto("/accounts/acme")
    page.get_by_role("button", name="Make a portal link").click()
    expect(page.locator("main")).to_contain_text("/portal/enter?")
    judge(page, "portal-link", taken)
    page.goto(f"/endpoints/{scene.ids['fine']}/settings")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("main")).to_contain_text("whsec_")
    judge(page, "secret-shown", taken)
    page.goto("/endpoints/new")
    page.get_by_label("URL", exact=True).fill(scene.receiver.url("made"))
    page.get_by_label("Events that it gets").fill("nothing.like.this")
    page.get_by_role("button", name="Create the endpoint").click()
    expect(page.locator("h1")).to_have_text("The endpoint is created")
    judge(page, "endpoint-made", taken)


def test_what_is_seen_without_a_visit_or_with_few_rights(
    look: Callable[..., Page], new_page: NewPage, keyed_server: ServerProcess, shots: Shots, database: str
) -> None:
    taken = shots if database == "sqlite" else None
    look(keyed_server.url, "/", "login")
    look(keyed_server.url, "/login?next=%2F&ended=1", "login-again")
    look(keyed_server.url, "/portal/enter", "portal-no-link")
    api = Api(keyed_server.url, KEY)
    page = new_page(keyed_server.url)
    page.goto("/")
    page.get_by_label("API key").fill(api.key("read", name="looks only")["key"])
    page.get_by_role("button", name="Log in").click()
    expect(page.locator(".strip").first).to_contain_text("looks only")
    for name, path in EMPTY.items():
        look(keyed_server.url, path, f"read-only-{name}", page=page)
    look(keyed_server.url, "/keys", "forbidden", status=403, page=page)
    api.close()
    judge(page, "forbidden", taken)


def test_the_portal(look: Callable[..., Page], new_page: NewPage, scene: Scene) -> None:
    page = new_page(scene.api.url)
    page.goto(scene.api.portal_link("acme"))
    expect(page.locator("footer")).to_contain_text("This visit ends")
    ids = scene.ids
    for name, path in {
        **EMPTY,
        "endpoint": f"/endpoints/{ids['down']}",
        "settings-of-one": f"/endpoints/{ids['full']}/settings",
        "delivery": f"/deliveries/{ids['hostile delivery']}",
        "event": f"/events/{ids['event']}",
        "event-type": f"/event-types/{HOSTILE_TYPE}",
        "bulk-replay": f"/dead-letters/replay?endpoint_id={ids['refused']}",
    }.items():
        look(scene.api.url, path, f"portal-{name}", page=page)
        assert "birch" not in page.content(), path


@pytest.mark.parametrize("row", sorted(SHOWN))
def test_payloads_of_the_corpus_are_text(new_page: NewPage, scene: Scene, row: str) -> None:
    """Rows P31 to P33 of tests/corpus/bad-input.jsonl: byte for byte, and no script runs."""
    page = new_page(scene.api.url)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for delivery, payload in zip(scene.shown[row], SHOWN[row], strict=True):
        event = scene.api.get(f"/v1/deliveries/{delivery}")["event_id"]
        for path in (f"/deliveries/{delivery}", f"/events/{event}"):
            page.goto(f"{path}?view=raw")
            shown = page.locator("#payload pre.code").first
            assert shown.evaluate("each => each.textContent") == payload.decode()
            assert shown.locator("script, img, textarea").count() == 0
            page.goto(path)
            written = page.locator("#payload pre.code").first.evaluate("each => each.textContent")
            assert "".join(written.split()) == "".join(payload.decode().split())
            assert page.evaluate("({}).x") is None  # no prototype is polluted
    assert dialogs == []
