"""Ten thousand endpoints: the list answers, finds and counts."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from playwright.sync_api import Page, expect

from server_process import ServerProcess
from tests.browser.conftest import CEILING_MS, NewPage
from tests.browser.judging import sideways

MANY = 10_000
AT_ONCE = 8


@pytest.fixture(scope="module")
def filled(shared_server: ServerProcess) -> str:
    """A server with as many endpoints, one in a hundred of them paused."""
    limits = httpx.Limits(max_connections=AT_ONCE)
    with httpx.Client(
        base_url=shared_server.url, trust_env=False, timeout=CEILING_MS / 1000, limits=limits
    ) as client:

        def create(n: int) -> str:
            body = {
                "url": f"https://host-{n % 100}.example.com/hooks/{n:05}",
                "events": ["order.paid"],
                "account": f"account-{n % 10}",
            }
            content = json.dumps(body)
            answer = client.post(
                "/v1/endpoints", content=content, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 201, answer.text
            id: str = answer.json()["id"]
            return id

        with ThreadPoolExecutor(AT_ONCE) as threads:
            ids = list(threads.map(create, range(MANY)))
            paused = [f"/v1/endpoints/{id}/pause" for id in ids[::100]]
            assert all(answer.is_success for answer in threads.map(client.post, paused))
    return shared_server.url


def urls(page: Page) -> list[str]:
    return page.locator("table[data-rows] tbody a.url").all_inner_texts()


def test_the_list_of_many_endpoints(filled: str, new_page: NewPage) -> None:
    page = new_page(filled)
    page.goto("/endpoints")
    expect(page.locator("h1")).to_contain_text("10,000 endpoints")
    chips = page.get_by_role("navigation", name="By state")
    expect(chips).to_contain_text("All 10,000")
    expect(chips).to_contain_text("Paused 100")
    pager = page.locator(".pager")
    expect(pager).to_contain_text(re.compile(r"1 to \d+ of 10,000"))
    first = urls(page)
    assert first
    pager.get_by_role("link", name="Next").click()
    expect(pager).to_contain_text(f"{len(first) + 1} to {2 * len(first)} of 10,000")
    assert not set(first) & set(urls(page))
    chips.get_by_role("link", name=re.compile("Paused")).click()
    expect(pager).to_contain_text("of 100")
    assert all(each.endswith("00") for each in urls(page))


def test_one_of_many_is_found(filled: str, new_page: NewPage) -> None:
    page = new_page(filled)
    page.goto("/endpoints")
    page.get_by_label("URL, description or id").fill("hooks/07123")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".pager")).to_contain_text("1 to 1 of 1")
    [found] = urls(page)
    assert found.endswith("host-23.example.com/hooks/07123")
    page.goto("/endpoints?account=account-3")
    expect(page.locator(".pager")).to_contain_text("of 1,000")
    page.locator("#find").fill("host-23.example.com/hooks/07123")
    page.keyboard.press("Enter")
    page.wait_for_url("**/endpoints/ep_*")
    expect(page.locator("h1")).to_contain_text("/hooks/07123")


def test_many_are_sorted(filled: str, new_page: NewPage) -> None:
    page = new_page(filled, width=360, javascript=False)
    page.goto("/endpoints")
    orders = page.locator("select[name=sort] option").evaluate_all("all => all.map((each) => each.value)")
    assert len(orders) > 1
    for order in orders:
        page.goto(f"/endpoints?sort={order}")
        assert len(urls(page)) > 1
        expect(page.locator(".pager")).to_contain_text("of 10,000")
        assert sideways(page) == []


@pytest.mark.parametrize(
    "path", ["/", "/deliveries", "/dead-letters", "/accounts", "/find?q=example.com", "/events"]
)
def test_the_other_pages_answer(filled: str, new_page: NewPage, path: str) -> None:
    page = new_page(filled)
    answer = page.goto(path)
    assert answer is not None
    assert answer.ok
    expect(page.locator("h1")).to_have_count(1)
