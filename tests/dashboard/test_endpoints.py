"""The list of endpoints says which one needs a look; a new one is created with a form."""

from collections.abc import Iterator

import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Site

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def own(service: Service) -> Iterator[Site]:
    """A visitor of one account."""
    site = Site(service.url, key=service.new_key("read", "publish", "admin", account="own"))
    yield site
    site.close()


def test_without_endpoints_the_list_shows_the_first_command(site: Site):
    page = site.get("/endpoints")
    assert page.h1 == "No endpoint yet"
    assert "hookline endpoints create" in page.text
    assert ("/endpoints/new", "New endpoint") in page.links


def test_a_p95_that_was_not_added_up_yet_follows_soon(service: Service, site: Site):
    """The server has just started: it adds up days every 5 minutes."""
    service.create("/soon/sent", account="soon", events=["soon.sent"])
    service.create("/soon/idle", account="soon", events=["soon.never"])
    service.publish("soon.sent", account="soon")
    page = site.until("/endpoints?account=soon", lambda page: "100 %" in page.text)
    assert page.html.count(">soon</span>") == 1  # the other has no attempts, and a dash


def test_the_list_counts_states_and_every_count_leads_to_as_many(service: Service, site: Site):
    service.target.answers["/list/down"] = (503, b"no")
    down = service.create(
        "/list/down", events=["list.down"], account="lists", description=HOSTILE, retry={"schedule": [0]}
    )
    service.create("/list/ok", account="lists", events=["list.ok"])
    service.create("/list/paused", account="lists", paused=True)
    service.create("/list/off", account="lists", enabled=False)
    for n in range(6):
        service.publish("list.down", {"n": n}, account="lists")
    page = site.until("/endpoints?account=lists", lambda page: "Failing 1 " in page.text)
    assert page.h1 == "4 endpoints of account lists"
    assert HOSTILE in page.text
    assert "<script>alert" not in page.html
    rows = [text for href, text in page.links if href.startswith("/endpoints/ep_") and "/list/" in text]
    assert rows[0].endswith("/list/down")
    for state, path in (("failing", "down"), ("paused", "paused"), ("disabled", "off")):
        href = next(href for href, _ in page.links if f"state={state}" in href)
        some = site.get(href)
        assert some.h1 == f"1 of 4 endpoints is {state}"
        assert [text for href, text in some.links if "/list/" in text] == [
            f"{service.target.url}/list/{path}"
        ]
    page = site.until(
        "/endpoints?account=lists",
        lambda page: any(href == f"/dead-letters?endpoint_id={down['id']}" for href, _ in page.links),
    )
    assert site.get("/endpoints?account=lists&state=dead").h1 == "1 of 4 endpoints has dead letters"


def test_the_list_is_searched_sorted_and_filtered_by_event(service: Service, site: Site):
    service.create("/find/alpha", account="find", events=["find.a"], description="Orders of Alpha")
    service.create("/find/beta", account="find", events=["find.*"])
    site.until("/endpoints?account=find", lambda page: page.h1 == "2 endpoints of account find")
    assert site.get("/endpoints?account=find&q=ORDERS+of").h1 == "1 of 2 endpoints matches"
    assert site.get("/endpoints?account=find&event_type=find.a").h1 == "2 of 2 endpoints match"
    assert site.get("/endpoints?account=find&event_type=find.b").h1 == "1 of 2 endpoints matches"
    page = site.get("/endpoints?account=find&sort=url")
    assert [text.rsplit("/", 1)[1] for _, text in page.links if "/find/" in text] == ["alpha", "beta"]
    kept = page.form("/endpoints")
    assert ("sort", "url") in kept.fields
    assert ("account", "find") in kept.fields


def test_when_nothing_matches_the_nearest_name_and_a_way_out_are_offered(service: Service, site: Site):
    service.create(url="https://hooks.fernhill.example/v2")
    site.until("/endpoints?q=hooks.fernhill", lambda page: "1 of " in page.h1)
    page = site.get("/endpoints?q=hooks.fernhil.example")
    assert page.h1.startswith("0 of ")
    assert "Did you mean hooks.fernhill.example ?" in page.text.replace("?", " ?").replace("  ?", " ?")
    assert ("/endpoints", "all endpoints") in page.links


@pytest.mark.parametrize("query", ["state=nothing", "sort=nothing"])
def test_a_filter_that_cannot_be_says_what_can(site: Site, query: str):
    page = site.get(f"/endpoints?{query}")
    assert page.status == 422
    assert "is one of" in page.text


@pytest.mark.parametrize("offset", ["-1", "x", "99999", "9" * 50, "²"])
def test_an_offset_that_cannot_be_shows_a_page(site: Site, offset: str):
    assert site.get(f"/endpoints?offset={offset}").status == 200


def test_a_long_list_has_pages(service: Service, site: Site):
    for n in range(51):
        service.create(f"/many/{n:02}", account="many")
    site.until("/endpoints?account=many", lambda page: page.h1 == "51 endpoints of account many")
    first = site.get("/endpoints?account=many&sort=url")
    assert "1 to 50 of 51" in first.text
    [href] = [href for href, text in first.links if text == "Next"]
    second = site.get(href)
    assert "51 to 51 of 51" in second.text
    assert [text.rsplit("/", 1)[1] for _, text in second.links if "/many/" in text] == ["50"]


def test_an_account_sees_its_own_endpoints_and_no_trace_of_others(service: Service, own: Site):
    assert own.get("/endpoints").h1 == "You have no endpoint yet"
    service.create("/foreign", account="foreign", description="of-foreign")
    mine = service.create("/mine", account="own")
    page = own.until("/endpoints", lambda page: page.h1.startswith("Your 1 endpoint"))
    assert [href for href, text in page.links if "/mine" in text] == [f"/endpoints/{mine['id']}"]
    for query in ("", "?account=foreign", "?q=foreign", "?q=of-foreig", "?state=paused"):
        found = own.get(f"/endpoints{query}")
        assert found.status == 200
        assert "/foreign" not in found.text
        assert "of-foreign" not in found.text
        assert 'name="account"' not in found.html
    assert own.get("/endpoints?account=foreign").h1 == page.h1


def test_who_may_only_read_is_offered_no_new_endpoint(service: Service):
    reader = Site(service.url, key=service.new_key("read"))
    assert ("/endpoints/new", "New endpoint") not in reader.get("/endpoints").links
    form = reader.get("/endpoints/new")
    assert form.form("/endpoints/new").is_disabled
    before = len(service.call("GET", "/v1/endpoints?account=readers")["data"])
    answer = reader.submit(
        form, "/endpoints/new", url=f"{service.target.url}/reader", events="*", account="readers"
    )
    assert answer.status == 403
    assert len(service.call("GET", "/v1/endpoints?account=readers")["data"]) == before
    reader.close()


def test_a_new_endpoint_shows_its_secret_once(service: Service, site: Site):
    form = site.get("/endpoints/new")
    page = site.submit(
        form, "/endpoints/new", url=f"{service.target.url}/new", events="new.*, new", account="news"
    )
    assert page.status == 200
    assert page.h1 == "The endpoint is created"
    [created] = service.call("GET", "/v1/endpoints?account=news")["data"]
    secret = service.call("GET", f"/v1/endpoints/{created['id']}/secret")["secret"]
    assert secret in page.text
    assert secret not in page.url
    assert page.headers["cache-control"] == "no-store"
    assert (f"/endpoints/{created['id']}", "Open the endpoint") in page.links
    plain = service.create("/plain", events=["new.*", "new"], account="news")
    same = {"id", "url", "created_at", "updated_at"}
    for name in set(created) - same:  # what was not touched has its default
        assert created[name] == service.call("GET", f"/v1/endpoints/{plain['id']}")[name], name


def test_the_folded_fields_count_too(service: Service, site: Site):
    page = site.submit(
        site.get("/endpoints/new"),
        "/endpoints/new",
        url=f"{service.target.url}/folded",
        events="*",
        account="folded",
        signature="v1a",
        timeout_ms="3000",
        metadata='{"a": 1}',
        **{
            "headers.name": ["x-team", ""],
            "headers.value": ["a", ""],
            "rate_limit.per_second": "3",
            "retry.kind": "preset",
            "retry.preset": "standard",
            "circuit.kind": "none",
        },
    )
    assert page.h1 == "The endpoint is created"
    assert "Public key" in page.text
    [created] = service.call("GET", "/v1/endpoints?account=folded")["data"]
    assert created["headers"] == {"x-team": "***"}
    assert created["rate_limit"] == {"per_second": 3.0, "burst": 3}
    assert created["retry"] == {"preset": "standard"}
    assert (created["circuit"], created["timeout_ms"], created["metadata"]) == (None, 3_000, {"a": 1})


@pytest.mark.parametrize(
    ("fields", "pointer", "is_folded"),
    [
        ({"url": ""}, "/url", False),
        ({"url": "http://x.example/#f"}, "/url", False),
        ({"events": ""}, "/events", False),
        ({"events": f"a, {HOSTILE}"}, "/events/1", False),
        ({"account": "a b"}, "/account", False),
        ({"timeout_ms": "1"}, "/timeout_ms", True),
        ({"secret": "x"}, "/secret", True),
        ({"metadata": "{"}, "/metadata", True),
        ({"retry.kind": "growing", "retry.base": "", "retry.attempts": "3"}, "/retry/base", True),
    ],
)
def test_a_new_endpoint_that_cannot_be_says_why_beside_the_field(
    service: Service, site: Site, fields, pointer, is_folded
):
    filled = {"url": f"{service.target.url}/bad", "events": "*", "account": "bad", **fields}
    page = site.submit(site.get("/endpoints/new"), "/endpoints/new", **filled)
    assert page.status == 422
    assert page.html.count('class="err"') == 1
    assert pointer in page.text
    assert ('<details class="rest" open>' in page.html) == is_folded
    assert "<script>alert" not in page.html
    for name, value in filled.items():
        assert (name, value) in page.form("/endpoints/new").fields
    assert service.call("GET", "/v1/endpoints?account=bad")["data"] == []


def test_an_account_creates_for_itself_alone(service: Service, own: Site):
    form = own.get("/endpoints/new")
    assert "account" not in [name for name, _ in form.form("/endpoints/new").fields]
    page = own.submit(
        form, "/endpoints/new", url=f"{service.target.url}/own-new", events="*", account="foreign"
    )
    assert page.h1 == "The endpoint is created"
    urls = [each["url"] for each in service.call("GET", "/v1/endpoints?account=own")["data"]]
    assert f"{service.target.url}/own-new" in urls
