"""What people come for, from the first click to the last: something breaks, one sees what and why, and brings it back."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from server_process import ServerProcess
from tests.browser.conftest import KEY, NewPage
from tests.browser.guard import Guard
from tests.browser.judging import sideways
from tests.browser.scenes import AT_ONCE, Api
from tests.browser.switched_receiver import SwitchedReceiver, Way


@pytest.fixture
def api(shared_server: ServerProcess) -> Iterator[Api]:
    """The server of the module; each test has accounts of its own."""
    api = Api(shared_server.url)
    yield api
    api.close()


@pytest.fixture
def own_api(server: ServerProcess) -> Iterator[Api]:
    """A server of the test's own."""
    api = Api(server.url)
    yield api
    api.close()


@pytest.fixture
def keyed_api(keyed_server: ServerProcess) -> Iterator[Api]:
    """The server that wants a key."""
    api = Api(keyed_server.url, KEY)
    yield api
    api.close()


def recover(page: Page, receiver: SwitchedReceiver, path: str) -> None:
    """From the overview, which names the endpoint: test it, see it come back, replay what died."""
    trouble = page.locator("#verdict .trouble li", has_text=f"/{path}")
    expect(trouble).to_contain_text("Answers 503 since")
    expect(trouble).to_contain_text("Looks like an outage at the receiver.")
    expect(trouble).to_contain_text("1 dead")
    trouble.get_by_role("link", name="Test and recover").click()
    page.get_by_role("button", name="Test and recover").click()
    expect(page.locator("#recover")).to_contain_text("Not yet:")
    receiver.switch(path, to=Way.OK)
    page.get_by_role("button", name="Test and recover").first.click()
    expect(page.locator("#recover")).to_contain_text("It is back:")
    expect(page.locator("#recover")).to_contain_text("1 delivery died")
    page.locator("#recover").get_by_role("link", name="Replay 1…").click()
    page.get_by_role("button", name="Replay 1", exact=True).click()


def fail(api: Api, endpoint: str, type: str, account: str) -> None:
    """The first event dies and opens the circuit; two more wait behind it."""
    api.until_dead(endpoint, 1)
    api.until(f"/v1/endpoints/{endpoint}", lambda found: found["circuit_state"]["state"] == "open")
    for n in range(2):
        api.publish(type, {"n": n}, account=account)


def test_from_a_new_endpoint_to_its_recovery(
    own_api: Api, new_page: NewPage, receiver: SwitchedReceiver
) -> None:
    api = own_api
    receiver.switch("orders", to=Way.DOWN)
    page = new_page(api.url)
    page.goto("/")
    expect(page.locator("h1")).to_have_text("hookline is running. Nothing has been published yet.")
    page.goto("/endpoints/new")
    page.get_by_label("URL", exact=True).fill(receiver.url("orders"))
    page.get_by_label("Events that it gets").fill("order.*")
    page.get_by_text("they have defaults").click()
    page.get_by_label("A schedule").check()
    page.get_by_label("Seconds before each attempt").fill("0, 0")
    page.get_by_label("Opens after failures in a row").fill("2")
    page.get_by_role("button", name="Create the endpoint").click()
    expect(page.locator("h1")).to_have_text("The endpoint is created")
    overview = page.context.new_page()
    overview.goto("/")
    overview.evaluate("window.isTheSame = true")
    page.goto("/events/new")
    page.get_by_label("Type", exact=True).fill("order.paid")
    page.get_by_label("Payload").fill('{"id": 42}')
    page.get_by_role("button", name="Publish").click()
    expect(page.locator("h1")).to_contain_text("order.paid")
    [endpoint] = api.get("/v1/endpoints")["data"]
    fail(api, endpoint["id"], "order.paid", "default")
    expect(overview.locator("h1")).to_have_text("1 endpoint is failing. Everything else flows.")
    assert overview.evaluate("window.isTheSame"), "the page was loaded again"
    expect(overview).to_have_title(overview.locator("h1").inner_text() + " · hookline")
    recover(overview, receiver, "orders")
    api.until("/v1/deliveries?state=delivered", lambda found: len(found["data"]) >= 4)  # a test is one, too
    overview.goto("/")
    expect(overview.locator("h1")).not_to_contain_text("failing")
    assert api.get("/v1/dead-letters")["data"] == []


def test_a_customer_recovers_what_is_theirs_and_sees_nothing_of_others(
    keyed_api: Api, new_page: NewPage, receiver: SwitchedReceiver
) -> None:
    api = keyed_api
    told = {}
    for account, path in (("acme", "orders"), ("somebody-else", "their-secret-path")):
        receiver.switch(path, to=Way.DOWN)
        told[account] = api.endpoint(
            receiver.url(path),
            "order.*",
            account=account,
            retry=AT_ONCE,
            circuit={"consecutive_failures": 2},
        )
        api.publish("order.paid", {"of": account}, account=account)
        fail(api, told[account], "order.paid", account)
    [theirs] = api.get("/v1/dead-letters?account=somebody-else")["data"]
    page = new_page(api.url)
    page.goto(api.portal_link("acme"))
    expect(page.locator("h1")).to_contain_text("1 of your endpoints is failing")
    for path in (
        "/",
        "/endpoints",
        "/deliveries",
        "/dead-letters",
        "/events",
        "/find?q=127.0.0.1",
        "/replays",
    ):
        page.goto(path)
        for foreign in ("somebody-else", "their-secret-path", told["somebody-else"], theirs["id"]):
            assert foreign not in page.content(), path
    page.goto("/")
    recover(page, receiver, "orders")
    api.until("/v1/deliveries?state=delivered&account=acme", lambda found: len(found["data"]) >= 4)
    page.goto("/dead-letters")
    expect(page.locator("h1")).to_contain_text("No dead letters")
    assert len(api.get("/v1/dead-letters?account=somebody-else")["data"]) == 1


def test_others_things_are_not_there_for_a_customer(
    keyed_api: Api, new_page: NewPage, guard: Guard, receiver: SwitchedReceiver
) -> None:
    api = keyed_api
    theirs = api.endpoint(receiver.url("fine"), account="not-yours")
    event = api.publish("order.paid", account="not-yours")
    delivery = api.delivery(event)["id"]
    page = new_page(api.url, javascript=False)
    page.goto(api.portal_link("yours"))
    page.get_by_role("button", name="Open").click()

    def said(path: str) -> tuple[int, str]:
        answer = page.goto(path)
        assert answer is not None
        return answer.status, page.locator("main").inner_text()

    for path, unknown in (
        (f"/endpoints/{theirs}", "/endpoints/ep_01k7aaaaaaaaaaaaaaaaaaaaaa"),
        (f"/events/{event}", "/events/evt_01k7aaaaaaaaaaaaaaaaaaaaaa"),
        (f"/deliveries/{delivery}", "/deliveries/dlv_01k7aaaaaaaaaaaaaaaaaaaaaa"),
    ):
        (status, text), (expected, same) = said(path), said(unknown)
        assert status == expected == 404
        ids = path.rpartition("/")[2], unknown.rpartition("/")[2]
        assert cleaned(text, ids[0]) == cleaned(same, ids[1])
    for path in ("/accounts", "/keys", "/workers", "/settings", "/accounts/yours"):
        assert said(path)[0] == 404
    assert all("404" in trouble for trouble in guard.take())  # the browser itself complains of them


def cleaned(text: str, id: str) -> str:
    """Without what differs from answer to answer."""
    return " ".join(each for each in text.replace(id, "ID").split() if not each.startswith("req_"))


def log_in(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Log in").click()


def test_login_and_logout(keyed_api: Api, new_page: NewPage) -> None:
    page = new_page(keyed_api.url, javascript=False)
    page.goto("/endpoints?state=paused")
    expect(page.locator("h1")).to_have_text("Log in")
    log_in(page, KEY)
    expect(page).to_have_url(f"{keyed_api.url}/endpoints?state=paused")
    page.locator("summary", has_text="More").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("h1")).to_have_text("Log in")
    page.goto("/endpoints")
    expect(page.locator("h1")).to_have_text("Log in")


def test_a_key_that_may_read_finds_every_button_disabled(
    keyed_api: Api, new_page: NewPage, receiver: SwitchedReceiver
) -> None:
    endpoint = keyed_api.endpoint(receiver.url("fine"), account="read-only")
    page = new_page(keyed_api.url)
    page.goto(f"/endpoints/{endpoint}")
    log_in(page, keyed_api.key("read")["key"])
    expect(page.locator(".strip").first).to_contain_text("may read. To act, log in with one of scope admin.")
    for name in ("Pause", "Send a test"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    for path in ("/endpoints", "/events", f"/endpoints/{endpoint}/settings", "/dead-letters"):
        page.goto(path)
        acting = page.locator("main form[method=post] button:not([disabled])")
        expect(acting).to_have_count(0)


def test_a_revoked_key_ends_its_visits_at_the_next_click(
    keyed_api: Api, new_page: NewPage, receiver: SwitchedReceiver
) -> None:
    endpoint = keyed_api.endpoint(receiver.url("fine"), account="revoked")
    key = keyed_api.key("admin")
    page = new_page(keyed_api.url, javascript=False)  # no stream tells the page of it
    page.goto(f"/endpoints/{endpoint}")
    log_in(page, key["key"])
    expect(page.locator("h1")).to_have_text(receiver.url("fine"))
    keyed_api.call("DELETE", f"/v1/keys/{key['id']}")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("h1")).to_have_text("Log in")
    assert keyed_api.get(f"/v1/endpoints/{endpoint}")["paused"] is False


def test_without_javascript_one_can_browse_filter_replay_and_pause(
    api: Api, new_page: NewPage, receiver: SwitchedReceiver
) -> None:
    receiver.switch("plain", to=Way.INVALID)
    endpoint = api.endpoint(receiver.url("plain"), "plain.*", account="plain")
    for n in range(3):
        api.publish("plain.event", {"n": n}, account="plain")
    api.until_dead(endpoint, 3)
    page = new_page(api.url, javascript=False)
    page.goto("/")
    page.get_by_role("link", name="Deliveries", exact=True).click()
    page.get_by_label("Event type").fill("plain.event")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("table tbody tr")).to_have_count(3)
    page.locator("table tbody tr a").first.click()
    expect(page.locator("h1")).to_contain_text("plain.event")
    receiver.switch("plain", to=Way.OK)
    page.get_by_role("link", name="Replay…").click()
    page.get_by_role("button", name="Replay").click()
    api.until(f"/v1/deliveries?endpoint_id={endpoint}&state=delivered", lambda found: len(found["data"]) == 1)
    page.goto(f"/endpoints/{endpoint}")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("main")).to_contain_text("Paused")
    assert api.get(f"/v1/endpoints/{endpoint}")["paused"] is True


def test_some_that_are_selected_are_replayed_and_no_others(
    api: Api, new_page: NewPage, receiver: SwitchedReceiver
) -> None:
    receiver.switch("bulk", to=Way.INVALID)
    endpoint = api.endpoint(receiver.url("bulk"), "bulk.*", account="bulk")
    for n in range(5):
        api.publish("bulk.event", {"n": n}, account="bulk")
    api.until_dead(endpoint, 5)
    receiver.switch("bulk", to=Way.OK)
    page = new_page(api.url)
    page.goto(f"/dead-letters?endpoint_id={endpoint}")
    bar = page.locator(".bulk")
    expect(bar.get_by_role("button", name="Replay")).to_be_disabled()
    boxes = page.locator("tbody input[type=checkbox]")
    expect(boxes).to_have_count(5)
    page.locator("thead input[type=checkbox]").check()
    expect(bar).to_contain_text("5 selected")
    for n in range(3):
        boxes.nth(n).uncheck()
    expect(bar).to_contain_text("2 selected")
    bar.get_by_role("button", name="Replay").click()
    expect(page.locator("h1")).to_contain_text("2 dead letters")
    assert len(api.get(f"/v1/deliveries?endpoint_id={endpoint}&state=dead")["data"]) == 5  # it only asked
    page.get_by_role("button", name="Replay 2").click()
    api.until(f"/v1/deliveries?endpoint_id={endpoint}&state=delivered", lambda found: len(found["data"]) == 2)
    expect(page.locator("h1")).to_contain_text("2")
    assert len(api.get(f"/v1/deliveries?endpoint_id={endpoint}&state=dead")["data"]) == 3


def test_a_setting_is_refused_beside_its_field_and_saved_when_it_is_good(
    api: Api, new_page: NewPage, guard: Guard, receiver: SwitchedReceiver
) -> None:
    endpoint = api.endpoint(receiver.url("fine"), account="settings")
    page = new_page(api.url)
    page.goto(f"/endpoints/{endpoint}/settings?change=timeout_ms")
    page.get_by_label("Timeout, milliseconds").fill("7")
    page.get_by_role("button", name="Save").click()
    field = page.get_by_label("Timeout, milliseconds")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value("7")
    expect(field).to_have_accessible_description(api_message(api, endpoint, {"timeout_ms": 7}))
    [trouble] = guard.take()
    assert "422" in trouble  # the browser itself complains of it
    field.fill("7000")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Timeout, milliseconds")).to_have_count(0)
    assert api.get(f"/v1/endpoints/{endpoint}")["timeout_ms"] == 7_000


def api_message(api: Api, endpoint: str, change: dict[str, object]) -> "re.Pattern[str]":
    """What the API says to this change."""
    answer = api.refused("PATCH", f"/v1/endpoints/{endpoint}", change)
    return re.compile(re.escape(answer["errors"][0]["detail"]))


def rows(page: Page) -> Locator:
    return page.locator("table[data-rows] tbody tr")


def test_everything_can_be_reached_by_keys(api: Api, new_page: NewPage, receiver: SwitchedReceiver) -> None:
    receiver.switch("keys", to=Way.INVALID)
    endpoint = api.endpoint(receiver.url("keys"), "keys.*", account="keys")
    for n in range(3):
        api.publish("keys.event", {"n": n}, account="keys")
    api.until_dead(endpoint, 3)
    page = new_page(api.url)
    page.goto(f"/dead-letters?endpoint_id={endpoint}")
    page.keyboard.press("/")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.press("j")  # a letter, in a field
    expect(page.locator("#find")).to_have_value("j")
    page.keyboard.press("Escape")
    expect(page.locator("#find")).not_to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows(page).nth(1)).to_have_class(re.compile("cursor"))
    page.keyboard.press("k")
    expect(rows(page).nth(0)).to_have_class(re.compile("cursor"))
    page.keyboard.press("x")
    expect(page.locator(".bulk")).to_contain_text("1 selected")
    page.keyboard.press("r")
    expect(page.locator("h1")).to_contain_text("1 dead letter")
    assert len(api.get(f"/v1/deliveries?endpoint_id={endpoint}&state=dead")["data"]) == 3  # it only asked
    page.go_back()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/deliveries/dlv_*")
    page.keyboard.press("r")
    page.wait_for_url("**/replay")
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_url("**/endpoints")
    page.keyboard.press("?")
    page.wait_for_url("**/keyboard")
    menu = page.locator("details.menu")
    menu.locator("summary").click()
    expect(menu).to_have_attribute("open", "")
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(menu.locator("summary")).to_be_focused()


def test_colours_and_times_stay_as_they_were_chosen(
    api: Api, new_page: NewPage, receiver: SwitchedReceiver
) -> None:
    api.endpoint(receiver.url("fine"), "kept.*", account="kept")
    api.delivery(api.publish("kept.event", account="kept"))
    page = new_page(api.url)
    page.goto("/deliveries?account=kept")
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(background)
    page.locator("summary", has_text="More").click()
    page.get_by_role("button", name="Dark colours").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(background) != before
    page.get_by_role("button", name="Show exact times (UTC)").click()
    expect(rows(page).first).to_contain_text("UTC")
    page.goto("/events?account=kept")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(rows(page).first).to_contain_text("UTC")
    assert page.evaluate(background) != before


def test_an_id_is_copied(api: Api, new_page: NewPage, receiver: SwitchedReceiver) -> None:
    api.endpoint(receiver.url("fine"), "copied.*", account="copied")
    delivery = api.delivery(api.publish("copied.event", account="copied"))["id"]
    page = new_page(api.url)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/deliveries/{delivery}")
    page.get_by_role("button", name="Copy the delivery id").click()
    page.wait_for_function(f"async () => await navigator.clipboard.readText() === {delivery!r}")


@pytest.mark.parametrize(
    "path", ["/", "/endpoints", "/deliveries", "/dead-letters", "/events/new", "/settings"]
)
def test_at_twice_the_size_nothing_is_cut_off(api: Api, new_page: NewPage, path: str) -> None:
    page = new_page(api.url, width=720, height=450)  # what 200 % leaves of 1440 x 900
    page.goto(path)
    assert sideways(page) == []
