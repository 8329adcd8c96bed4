"""The page of the audit trail says who changed what, finds it, and tells an account no operator's name."""

from contextlib import closing
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Page, Site


def rows(page: Page) -> list[str]:
    """The text of each row."""
    return [part.split("</tr>")[0] for part in page.html.split("<tr id=")[1:]]


def a_visit(service: Service, account: str, **fields: bool) -> Site:
    made = service.call("POST", f"/v1/accounts/{account}/portal-link", fields)
    parts = urlsplit(made["url"])
    visitor = Site(service.url)
    visitor.submit(visitor.get(f"{parts.path}?{parts.query}"), "/portal/enter")
    return visitor


def test_what_is_done_on_a_page_is_told_with_the_way_and_the_request(service: Service, site: Site):
    endpoint = service.create(account="au-one")
    page = site.get(f"/endpoints/{endpoint['id']}")
    done = site.submit(page, f"/endpoints/{endpoint['id']}/pause")
    assert done.status == 200
    [entry, _] = service.call("GET", f"/v1/audit?subject={endpoint['id']}")["data"]
    assert (entry["action"], entry["via"], entry["address"]) == ("endpoint.paused", "dashboard", "127.0.0.1")
    assert entry["actor"]["kind"] == "settings_key"
    assert entry["request_id"].startswith("req_")
    first, second = rows(site.get(f"/audit?subject={endpoint['id']}"))
    assert "Endpoint paused" in first
    assert "The key of the settings" in first
    assert "dashboard, 127.0.0.1" in first
    assert "paused</span> false → true" in first
    assert "Endpoint created" in second
    assert ("/audit", "Audit trail") in site.get("/").links


def test_what_people_wrote_is_text(service: Service, site: Site):
    hostile = '<script>window.__xss = 1</script>"'
    endpoint = service.create(account="au-two", description=hostile)
    shown = site.get(f"/audit?subject={endpoint['id']}")
    assert "<script>window" not in shown.html
    assert hostile in shown.text


def test_entries_are_found_by_what_is_chosen_and_pages_follow(service: Service, site: Site):
    account = f"au-{uuid4().hex[:8]}"
    ids = [service.create(account=account)["id"] for _ in range(51)]
    service.call("POST", f"/v1/endpoints/{ids[0]}/pause")
    page = site.get(f"/audit?account={account}&action=endpoint.created")
    assert len(rows(page)) == 50
    assert "Endpoint paused" not in "".join(rows(page))
    [older] = [href for href, text in page.links if text == "Next page"]
    rest = site.get(older)
    assert len(rows(rest)) == 1
    assert ids[0] in rows(rest)[0]
    assert len(rows(site.get(f"/audit?account={account}&since=1h&subject={ids[0]}"))) == 2
    assert "Nothing like this was done" in site.get(f"/audit?account={account}&until=1h").text


@pytest.mark.parametrize("field", ["action", "subject", "actor", "account", "since", "until"])
def test_what_is_wrong_stands_beside_its_field(site: Site, field: str):
    page = site.get(f"/audit?{field}=%22no+such%3Cb%3E")
    assert page.status == 422
    assert f"The parameter {field} " in page.text
    assert not rows(page)


def test_a_cursor_of_nobody_leads_back_to_the_first_page(site: Site):
    page = site.get("/audit?cursor=x")
    assert page.status == 422
    assert ("/audit", "First page") in page.links


def test_an_account_sees_its_own_part_and_no_operator(service: Service, site: Site):
    account, other = (f"au-{uuid4().hex[:8]}" for _ in range(2))
    endpoint = service.create(account=account)
    service.create(account=other, description="of others")
    operators = service.call("POST", "/v1/keys", {"name": "night shift", "scopes": ["admin"]})
    with closing(Site(service.url, key=operators["key"])) as operator:
        operator.submit(operator.get(f"/endpoints/{endpoint['id']}"), f"/endpoints/{endpoint['id']}/pause")
    visitor = a_visit(service, account)
    visitor.submit(visitor.get(f"/endpoints/{endpoint['id']}"), f"/endpoints/{endpoint['id']}/resume")
    looker = a_visit(service, account, may_act=False)
    for who in (visitor, looker, Site(service.url, key=service.new_key("read", account=account))):
        page = who.get("/audit")
        assert page.status == 200
        assert ("/audit", "Audit trail") in page.links
        seen = rows(page)
        [resumed] = [row for row in seen if "Endpoint resumed" in row]
        assert "A visitor of the portal" in resumed
        assert "portal, 127.0.0.1" in resumed
        [paused] = [row for row in seen if "Endpoint paused" in row]
        assert "An operator" in paused
        assert "127.0.0.1" not in paused
        assert "night shift" not in page.html
        assert operators["hint"] not in page.html
        assert other not in page.html
        assert "of others" not in page.html
        who.close()
    # An operator sees through which key the visit came.
    [entry] = service.call("GET", f"/v1/audit?account={account}&action=endpoint.resumed")["data"]
    assert (entry["via"], entry["actor"]["kind"], entry["actor"]["name"]) == (
        "portal",
        "portal",
        "HOOKLINE_API_KEY",
    )


def test_a_key_that_may_only_read_everything_is_told_that_this_needs_more(service: Service):
    reader = Site(service.url, key=service.new_key("read"))
    assert reader.get("/audit").status == 403
    assert ("/audit", "Audit trail") not in reader.get("/").links
    reader.close()
