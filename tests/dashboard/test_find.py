"""Whatever a person was given leads to its page, if it is theirs to see."""

from typing import Any

import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Page, Site


@pytest.fixture(scope="module")
def given(service: Service) -> dict[str, Any]:
    """An endpoint, an event and its delivery of the account `fi-one`."""
    endpoint = service.create("/find-me/hooks", events=["fi.*"], account="fi-one")
    event = service.publish("fi.paid", account="fi-one", idempotency_key="fi-order-77")
    [delivery] = service.call("GET", f"/v1/events/{event['id']}/deliveries")["data"]
    return {"endpoint": endpoint, "event": event, "delivery": delivery}


def found(site: Site, q: str) -> str:
    """Where a search leads to."""
    answer = site.client.get("/find", params={"q": q}, follow_redirects=False)
    return answer.headers.get("location", f"{answer.status_code}")


def test_an_id_or_its_beginning_leads_to_its_page(site: Site, given: dict[str, Any]):
    for noun, folder in (("endpoint", "endpoints"), ("event", "events"), ("delivery", "deliveries")):
        id = given[noun]["id"]
        assert found(site, f" {id} ") == f"/{folder}/{id}"
    event = given["event"]["id"]
    assert found(site, event[:24]) == f"/events/{event}"


def test_a_key_of_the_installation_is_found_by_its_id(service: Service, site: Site):
    made = service.call("POST", "/v1/keys", {"name": "fi", "scopes": ["read"]})
    assert found(site, made["id"]) == f"/keys#{made['id']}"


def test_a_bulk_replay_is_found_by_its_id(service: Service, site: Site):
    job = service.call("POST", "/v1/replays", {"filter": {"account": "fi-nobody"}, "dry_run": False})["id"]
    assert found(site, job) == f"/replays/{job}"


def test_names_lead_to_their_page(site: Site, service: Service, given: dict[str, Any]):
    assert found(site, "fi-order-77") == f"/events/{given['event']['id']}"
    assert found(site, "fi-one") == "/accounts/fi-one"
    assert found(site, "fi.paid") == "/events?type=fi.paid"
    service.call("PUT", "/v1/event-types/fi.paid", {"description": "x"})
    assert found(site, "fi.paid") == "/event-types/fi.paid"


def test_a_url_or_a_part_of_one_leads_to_its_endpoint(site: Site, given: dict[str, Any]):
    page = f"/endpoints/{given['endpoint']['id']}"
    site.until("/find?q=zz", lambda _: found(site, "find-me") == page)
    assert found(site, given["endpoint"]["url"]) == page


def test_what_matches_a_url_is_not_looked_for_among_all_events(service: Service, site: Site):
    service.create("/fi.dots", events=["fi.dots"], account="fi-dots")
    service.publish("fi.dots", account="fi-dots")
    site.until("/find?q=zz", lambda _: found(site, "fi.dots").startswith("/endpoints/ep_"))


def test_several_are_listed(service: Service, site: Site, given: dict[str, Any]):
    for account in ("fi-two", "fi-three"):
        service.publish("fi.made", account=account, idempotency_key="fi-same")
    page = site.get("/find?q=fi-same")
    assert page.h1 == "2 things match fi-same"
    assert sum(href.startswith("/events/evt_") for href, _ in page.links) == 2


@pytest.mark.parametrize(
    "q", ["<script>alert(1)</script>", "evt_…c50000", "evt_01m7kmg3", "%00", "nobody has this"]
)
def test_what_is_not_there_is_said_as_text(site: Site, q: str):
    page = Page(site.client.get("/find", params={"q": q}))
    assert page.status == 404
    assert page.h1 == f"Nothing is called {q}"
    assert "<script>alert" not in page.html


def test_an_empty_search_explains_itself(site: Site):
    assert site.get("/find").h1 == "Find"


def test_nothing_tells_of_other_accounts(service: Service, given: dict[str, Any]):
    tenant = Site(service.url, key=service.new_key("read", account="fi-tenant"))
    worker = service.call("GET", "/v1/workers")["data"][0]["id"]
    things = [given[noun]["id"] for noun in ("endpoint", "event", "delivery")]
    things += [
        things[1][:20],
        "fi-order-77",
        "fi-one",
        "find-me",
        given["endpoint"]["url"],
        worker,
        "fi.never",
    ]
    for q in things:
        page = Page(tenant.client.get("/find", params={"q": q}))
        assert page.status == 404
        assert page.h1 == f"Nothing is called {q}"
    assert not any(href.startswith("/accounts") for href, _ in page.links)
    tenant.close()
