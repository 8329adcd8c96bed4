"""The list of deliveries shows what was chosen, all of it, and says so when there is nothing."""

import json
from html.parser import HTMLParser

import httpx
import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Page, Site

LONG = {"schedule": [3_600, 3_600], "jitter": "none"}


class World:
    """Some endpoints of their own account, with deliveries in several states."""

    def __init__(self, service: Service, site: Site) -> None:
        service.target.answers["/l/refuses"] = (503, b"")
        service.target.answers["/l/rejects"] = (401, b"")
        self.takes = service.create("/l/takes", events=["l.taken"], account="listed")
        self.holds = service.create("/l/holds", events=["l.held"], account="listed")
        self.refuses = service.create(
            "/l/refuses", events=["l.refused"], account="listed", retry=LONG, circuit=None
        )
        self.rejects = service.create("/l/rejects", events=["l.rejected"], account="listed", circuit=None)
        service.call("POST", f"/v1/endpoints/{self.holds['id']}/pause", {})
        for type, count in (("l.taken", 3), ("l.held", 2), ("l.refused", 1), ("l.rejected", 1)):
            for _ in range(count):
                self.last = service.publish(type, account="listed")
        site.until(
            "/deliveries?account=listed&state=delivered", lambda page: page.html.count("<tr data-id") == 3
        )
        site.until(
            "/deliveries?account=listed&state=retrying", lambda page: page.html.count("<tr data-id") == 1
        )
        site.until("/deliveries?account=listed&state=dead", lambda page: page.html.count("<tr data-id") == 1)


@pytest.fixture(scope="module")
def world(service: Service, site: Site) -> World:
    return World(service, site)


def rows(page: Page) -> list[str]:
    """The ids of the deliveries of a page."""
    return [part.partition('"')[0] for part in page.html.split('<tr data-id="')[1:]]


def link(page: Page, text: str) -> str:
    found = [href for href, said in page.links if said == text]
    assert found, f"no link {text!r} in {page.links}"
    return found[0]


def test_all_of_them_newest_first(world: World, site: Site):
    page = site.get("/deliveries")
    assert page.h1 == "All deliveries"
    assert page.title.startswith(page.h1)
    found = rows(page)
    assert found == sorted(found, reverse=True)
    assert len(found) >= 7
    assert "answer was final" in page.text
    assert "until resumed" in page.text


@pytest.mark.parametrize(
    ("state", "count", "h1"),
    [
        ("waiting", 2, "Deliveries that wait for their first attempt for account listed"),
        ("retrying", 1, "Deliveries to be retried for account listed"),
        ("pending", 3, "Deliveries that wait for account listed"),
        ("sending", 0, "Deliveries being sent for account listed"),
        ("delivered", 3, "Deliveries that arrived for account listed"),
        ("dead", 1, "Dead deliveries for account listed"),
        ("cancelled", 0, "Cancelled deliveries for account listed"),
        ("", 7, "Deliveries for account listed"),
    ],
)
def test_of_a_state(world: World, site: Site, state: str, count: int, h1: str):
    page = site.get(f"/deliveries?state={state}&account=listed")
    assert (page.h1, len(rows(page))) == (h1, count)


def test_the_counts_are_those_of_the_lists_behind_them(world: World, service: Service):
    """The counts may be some seconds old: they are right in the end."""
    visitor = Site(service.url, key=service.new_key("read", account="listed"))
    visitor.until(
        "/deliveries",
        lambda page: all(
            text in [said for _, said in page.links]
            for text in ("Waiting 2", "To be retried 1", "Sending 0", "Dead 1", "Delivered")
        ),
    )
    page = visitor.get("/deliveries")
    assert len(rows(visitor.get(link(page, "Waiting 2")))) == 2
    assert len(rows(visitor.get(link(page, "To be retried 1")))) == 1
    assert link(page, "Dead 1") == "/dead-letters"
    assert "Waiting" in [said for _, said in visitor.get("/deliveries?event_type=l.held").links]
    visitor.close()


def test_by_type_event_and_time(world: World, site: Site):
    assert len(rows(site.get("/deliveries?event_type=l.taken"))) == 3
    assert len(rows(site.get(f"/deliveries?event_id={world.last['id']}"))) == 1
    assert len(rows(site.get("/deliveries?event_type=l.taken&created=1h"))) == 3
    assert len(rows(site.get("/deliveries?event_type=l.taken&created=custom&since=2001-01-01"))) == 3
    page = site.get("/deliveries?event_type=l.taken&created=custom&until=2001-01-01 10:30")
    assert rows(page) == []
    assert link(page, "any time") == "/deliveries?event_type=l.taken"


def test_an_endpoint_is_found_by_a_part_of_its_url(world: World, site: Site):
    page = site.submit(site.get("/deliveries"), "/deliveries", endpoint_id="/l/takes")
    assert len(rows(page)) == 3
    assert page.h1.endswith("/l/takes")
    assert len(rows(site.get(f"/deliveries?endpoint_id={world.takes['id']}"))) == 3
    assert len(rows(site.get(f"/deliveries?endpoint_id={world.takes['id'][:-4]}"))) == 3


def test_more_than_one_endpoint_is_a_question(world: World, site: Site):
    page = site.get("/deliveries?endpoint_id=/l/&state=delivered")
    assert "4 endpoints have /l/ in the URL. Which one?" in page.text
    assert rows(page) == []
    url = world.takes["url"].removeprefix("https://")
    assert len(rows(site.get(link(page, url)))) == 3


def test_no_endpoint_offers_the_nearest(world: World, site: Site):
    page = site.get("/deliveries?endpoint_id=" + world.takes["url"].replace("takes", "taxes"))
    assert "Did you mean" in page.text
    assert len(rows(site.get(link(page, world.takes["url"])))) == 3


def test_no_match_offers_ways_out(world: World, site: Site):
    page = site.get("/deliveries?state=cancelled&account=listed&created=1h")
    assert "There is no delivery like this of the last hour of account listed" in page.text
    assert link(page, "the last 7 days") == "/deliveries?state=cancelled&account=listed&created=7d"
    assert link(page, "any state") == "/deliveries?account=listed&created=1h"
    assert link(page, "all deliveries") == "/deliveries"
    page = site.get("/deliveries?account=listed&event_type=no.such")
    assert "There is no delivery of no.such of account listed" in page.text


def test_pages_follow_each_other_and_lead_back(service: Service, site: Site):
    service.create("/l/many", events=["l.many"])
    events = [{"type": "l.many", "payload": n} for n in range(120)]
    service.call("POST", "/v1/events/batch", {"events": events})
    for query in ("event_type=l.many", "event_type=l.many&created=1h"):
        page, seen = site.get(f"/deliveries?{query}"), []
        for expected in (50, 50, 20):
            assert len(rows(page)) == expected
            seen += rows(page)
            following = [href for href, said in page.links if said == "Next page"]
            if following:
                page = site.get(following[0])
        assert not following
        assert len(set(seen)) == 120
        assert link(page, "First page") == f"/deliveries?{query}"


def test_a_list_of_what_waits_reads_on_until_it_is_full(service: Service, site: Site):
    endpoint = service.create("/l/queue", events=["l.queue"])
    service.call("POST", f"/v1/endpoints/{endpoint['id']}/pause", {})
    events = [{"type": "l.queue", "payload": n} for n in range(180)]
    service.call("POST", "/v1/events/batch", {"events": events})
    page, seen = site.get("/deliveries?state=waiting&event_type=l.queue"), []
    while True:
        seen += rows(page)
        following = [href for href, said in page.links if said == "Next page"]
        if not following:
            break
        page = site.get(following[0])
    assert len(seen) == len(set(seen)) == 180
    page = site.get("/deliveries?state=retrying&event_type=l.queue")
    assert rows(page) == []
    assert "There is no delivery like this" in page.text


def test_a_search_among_very_many_says_that_it_stopped(service: Service, site: Site):
    endpoint = service.create("/l/deep", events=["l.deep"])
    service.call("POST", f"/v1/endpoints/{endpoint['id']}/pause", {})
    for count in (1_000, 50):
        events = [{"type": "l.deep", "payload": n} for n in range(count)]
        service.call("POST", "/v1/events/batch", {"events": events})
    page = site.get("/deliveries?state=retrying&event_type=l.deep")
    assert "1,000 that wait were looked through, and none of them is like this." in page.text
    page = site.get(link(page, "Next page"))
    assert "There are no further ones." in page.text
    assert link(page, "First page") == "/deliveries?state=retrying&event_type=l.deep"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("event_type=order.*", "An event type is 1 to 128 characters"),
        ("endpoint_id=ep_nonsense", "endpoint_id"),
        ("created=custom&since=yesterday", "since"),
        ("state=lost", "state"),
        ("event_id=evt_nonsense", "event_id"),
    ],
)
def test_bad_input_gets_one_message_and_no_list(world: World, site: Site, query: str, said: str):
    page = site.get(f"/deliveries?{query}")
    assert page.status == 422
    assert said in page.text
    assert rows(page) == []


def test_an_unknown_cursor_leads_to_the_first_page(world: World, site: Site):
    page = site.get("/deliveries?event_type=l.taken&cursor=x")
    assert page.path == "/deliveries?event_type=l.taken"
    assert "This is the first one." in page.text


def test_what_was_typed_is_text(world: World, site: Site):
    for name in ("endpoint_id", "event_type", "account", "state", "since", "event_id", "created"):
        page = site.get(f"/deliveries?{name}=<script>alert(1)</script>")
        assert "<script>alert" not in page.html


def test_another_account_is_neither_seen_nor_counted_nor_named(world: World, service: Service):
    visitor = Site(service.url, key=service.new_key("admin", "read", account="nobody"))
    page = visitor.get("/deliveries")
    assert page.h1 == "Your deliveries"
    assert rows(page) == []
    assert "Account" not in page.text
    others = visitor.get(f"/deliveries?endpoint_id={world.takes['id']}")
    never = visitor.get("/deliveries?endpoint_id=ep_00000000000000000000000000")
    assert others.text == never.text
    searched = visitor.get("/deliveries?endpoint_id=/l/takes")
    assert "No endpoint has /l/takes in its URL." in searched.text
    assert "Did you mean" not in searched.text
    assert rows(visitor.get("/deliveries?account=listed")) == []
    visitor.close()


def test_who_may_read_gets_no_ways_to_act(world: World, service: Service):
    reader = Site(service.url, key=service.new_key("read"))
    page = reader.get("/deliveries")
    assert rows(page)
    assert 'data-key="r"' not in page.html
    reader.close()


class _Items(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "li":
            self.found.append(dict(attrs))


def test_the_stream_names_the_newest_of_the_account_only(world: World, service: Service):
    own = service.create("/l/own", events=["l.own"], account="streamed")
    event = service.publish("l.own", account="streamed")
    visitor = Site(service.url, key=service.new_key("read", account="streamed"))
    regions = _first_regions(visitor.client)
    items = _Items()
    items.feed(regions["newest"])
    assert [(item["data-event"], item["data-endpoint"]) for item in items.found] == [(event["id"], own["id"])]
    assert {"n-waiting", "n-retrying", "n-sending", "n-dead"} <= set(regions)
    visitor.close()


def _first_regions(client: httpx.Client) -> dict[str, str]:
    with client.stream("GET", "/live?page=deliveries") as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith("data: "):
                regions: dict[str, str] = json.loads(line.removeprefix("data: "))["regions"]
                return regions
    raise AssertionError("the stream ended")
