"""Every page there is, on each store: it fits, it is accessible, it keeps to itself, and it looks as in its picture."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from hookline.app import Hookline
from hookline.dashboard.table import all_pages
from server_process import ServerProcess
from tests.browser import hostile
from tests.browser.conftest import KEY, NewPage, Shots
from tests.browser.guard import Guard
from tests.browser.judging import judge
from tests.browser.samples import DOWNLOADS, EMPTY, NOT_FOUND, REFUSED, SAMPLES
from tests.browser.scenes import HOSTILE_TYPE, Api, Scene

ROUTES = sorted(
    route.path for page in all_pages(Hookline(), {}) for route in page.routes() if route.method == "GET"
)


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
