"""Open pages tell what happens, and leave those in peace who are in them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, expect

from server_process import ServerProcess
from tests.browser.conftest import KEY, NewPage
from tests.browser.scenes import Api
from tests.browser.switched_receiver import SwitchedReceiver, Way

TOP = "each => each.getBoundingClientRect().top"


@pytest.fixture
def api(shared_server: ServerProcess) -> Iterator[Api]:
    """The server of the module; each test has an account of its own."""
    api = Api(shared_server.url)
    yield api
    api.close()


def rejecting(api: Api, receiver: SwitchedReceiver, name: str) -> str:
    """An endpoint whose deliveries die at once, with one dead letter."""
    receiver.switch(name, to=Way.INVALID)
    endpoint = api.endpoint(receiver.url(name), f"{name}.event", account=name)
    api.publish(f"{name}.event", account=name)
    api.until_dead(endpoint, 1)
    return endpoint


def test_nothing_moves_under_the_pointer_in_a_list(
    api: Api, new_page: NewPage, receiver: SwitchedReceiver
) -> None:
    api.endpoint(receiver.url("calm"), "calm.event", account="calm")
    for n in range(30):
        api.publish("calm.event", {"n": n}, account="calm")
    page = new_page(api.url, height=600)
    page.goto("/deliveries?account=calm")
    rows = page.locator("#list tbody tr")
    expect(rows).to_have_count(30)
    rows.nth(3).hover()
    page.mouse.wheel(0, 200)
    page.wait_for_function("scrollY > 100")
    ids = "[...document.querySelectorAll('#list tbody tr')].map((row) => row.dataset.id)"
    before, scrolled = page.evaluate(ids), page.evaluate("scrollY")
    for n in range(3):
        api.publish("calm.event", {"new": n}, account="calm")
    announced = page.locator("#show-new")
    expect(announced).to_have_text("3 new: show them")
    expect(page.locator("#held")).to_contain_text("Held still")
    assert page.evaluate(ids) == before
    assert page.evaluate("scrollY") == scrolled
    announced.click()
    expect(rows).to_have_count(33)
    assert page.evaluate(ids)[3:] == before


def test_a_list_that_nobody_is_in_follows_by_itself(
    api: Api, new_page: NewPage, receiver: SwitchedReceiver
) -> None:
    api.endpoint(receiver.url("follow"), "follow.event", account="follow")
    api.publish("follow.event", account="follow")
    page = new_page(api.url)
    page.goto("/deliveries?account=follow")
    rows = page.locator("#list tbody tr")
    expect(rows).to_have_count(1)
    api.publish("follow.event", account="follow")
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Hold still").click()
    api.publish("follow.event", account="follow")
    expect(page.locator("#show-new")).to_have_text("1 new: show them")
    expect(rows).to_have_count(2)


def test_a_region_waits_for_who_is_in_it(api: Api, new_page: NewPage, receiver: SwitchedReceiver) -> None:
    """Focus, selection and scroll are kept, while the regions around them change."""
    rejecting(api, receiver, "peace")
    page = new_page(api.url, height=500)
    page.goto("/")
    dead = page.locator("#stands div", has=page.get_by_text("Dead letters", exact=True)).locator("a")
    expect(page.locator("#stands")).to_contain_text("Dead letters")
    link = page.locator("#stands a").first
    link.focus()
    page.evaluate("scrollTo(0, 120)")
    seen_at = link.evaluate(TOP)
    kept = page.locator("#stands").inner_html()
    select(page, "#flow dt")
    selected = page.evaluate("getSelection().toString()")
    assert selected
    tally = len(api.get("/v1/dead-letters?limit=200")["data"])
    expect(page.locator("#tally")).to_have_text(str(tally))
    api.publish("peace.event", account="peace")
    expect(page.locator("#tally")).to_have_text(str(tally + 1))
    expect(link).to_be_focused()
    assert page.locator("#stands").inner_html() == kept
    assert page.evaluate("getSelection().toString()") == selected
    assert link.evaluate(TOP) == pytest.approx(seen_at, abs=1)  # whatever came in above it
    link.blur()
    expect(dead).to_have_text(str(tally + 1))
    assert link.evaluate(TOP) == pytest.approx(seen_at, abs=1)


def select(page: Page, selector: str) -> None:
    page.evaluate(
        """(selector) => {
          const range = document.createRange();
          range.selectNodeContents(document.querySelector(selector));
          getSelection().removeAllRanges();
          getSelection().addRange(range);
        }""",
        selector,
    )


def test_a_hidden_page_hears_nothing_until_it_is_seen_again(api: Api, new_page: NewPage) -> None:
    """A browser without a window hides no page, so the page is told that it is hidden."""

    def is_stream(request: Request) -> bool:
        return "/live?" in request.url

    page = new_page(api.url)
    with page.expect_request(is_stream):
        page.goto("/")
    expect(page.locator("#live")).to_contain_text("Live")
    with page.expect_event("requestfailed", is_stream):
        hide(page, is_hidden=True)
    with page.expect_request(is_stream):
        hide(page, is_hidden=False)


def hide(page: Page, *, is_hidden: bool) -> None:
    page.evaluate(
        """(isHidden) => {
          Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
        }""",
        is_hidden,
    )


def test_an_ended_visit_is_noticed_by_the_open_page(keyed_server: ServerProcess, new_page: NewPage) -> None:
    api = Api(keyed_server.url, KEY)
    key = api.key("read")
    page = new_page(api.url)
    page.goto("/")
    page.get_by_label("API key").fill(key["key"])
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#live")).to_contain_text("Live")
    api.call("DELETE", f"/v1/keys/{key['id']}")
    expect(page.locator("h1")).to_have_text("Log in")
    expect(page.locator("main, .login").first).to_contain_text("Your visit has ended")
    api.close()
