"""The pages of events say what was published and where it went, replay it, and publish by hand."""

import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Page, Site

UNKNOWN = "evt_01m7kmg308b4fxkpaba0g00000"


@pytest.fixture(scope="module")
def settled(service: Service, site: Site) -> dict[str, str]:
    """An event of the account `fern` that one endpoint took and another refused; its id, and its endpoints'."""
    service.target.answers["/ev-down"] = (400, b"no")
    good = service.create("/ev-ok", events=["ev.*"], account="fern")
    bad = service.create("/ev-down", events=["ev.*"], account="fern")
    event = service.publish(
        "ev.paid", {"id": 7, "note": "<script>x</script>"}, account="fern", idempotency_key="ev-key-1"
    )
    site.until(f"/events/{event['id']}", lambda page: "1 delivered, 1 dead" in page.h1)
    return {"event": event["id"], "good": good["id"], "bad": bad["id"]}


def test_an_empty_list_shows_the_first_command(service: Service):
    tenant = Site(service.url, key=service.new_key("read", account="ev-nobody"))
    assert "Nothing was published to you yet." in tenant.get("/events").text
    tenant.close()


def test_the_list_is_filtered_and_leads_to_each_event(site: Site, settled: dict[str, str]):
    for query in (
        "type=ev.paid",
        "account=fern",
        "idempotency_key=ev-key-1",
        "type=ev.paid&since=1h",
        "since=2026-01-01T00:00:00Z&type=ev.paid",
    ):
        page = site.get(f"/events?{query}")
        assert page.status == 200
        assert (f"/events/{settled['event']}", "ev.paid") in page.links
        assert (f"/events/{settled['event']}?state=dead#where", "Dead 1") in page.links
    assert "No event of type ev.none was found." in site.get("/events?type=ev.none").text


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("type=no+type", "The parameter type is invalid"),
        ("since=yesterday", "since is an RFC 3339 time with a zone"),
        ("cursor=nonsense", "cursor"),
    ],
)
def test_a_filter_that_cannot_be_read_is_said_once(site: Site, query: str, message: str):
    page = site.get(f"/events?{query}")
    assert page.status == 422
    assert page.text.count(message) == 1


def test_a_list_goes_on_where_its_first_page_ended(service: Service, site: Site):
    for n in range(51):
        service.publish("evmany.made", n)
    first = site.get("/events?type=evmany.made&since=1h")
    [more] = [href for href, text in first.links if text == "Next page"]
    second = site.get(more)
    shown = {href for page in (first, second) for href, text in page.links if text == "evmany.made"}
    assert len(shown) == 51
    assert [text for _, text in second.links if text == "First page"] == ["First page"]


def test_an_event_shows_where_it_went_and_its_payload_as_text(site: Site, settled: dict[str, str]):
    page = site.get(f"/events/{settled['event']}")
    assert page.title.startswith("ev.paid went to 2 endpoints: 1 delivered, 1 dead")
    assert "ev-key-1" in page.text
    assert "<script>x" not in page.html
    assert "<script>x</script>" in page.text
    dead = site.get(f"/events/{settled['event']}?state=dead")
    assert "/ev-down" in dead.text
    assert "/ev-ok" not in dead.text


def test_the_payload_is_downloaded_byte_for_byte(site: Site, service: Service):
    content = b'{"type": "evraw.made", "payload": { "b":1.50,\t"a":[ 1 ] }}'
    made = service.client.post("/v1/events", content=content, headers={"content-type": "application/json"})
    answer = site.client.get(f"/events/{made.json()['id']}/payload")
    assert answer.content == b'{ "b":1.50,\t"a":[ 1 ] }'
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "nosniff" in answer.headers["x-content-type-options"]


def test_an_event_that_nobody_asked_for_says_so(site: Site, service: Service):
    event = service.publish("evlonely.made")
    page = site.get(f"/events/{event['id']}")
    assert page.h1 == "evlonely.made went to no endpoint"
    assert not any(text == "Replay…" for _, text in page.links)


def test_a_replay_asks_first_and_takes_the_chosen_ones(service: Service, site: Site, settled: dict[str, str]):
    page = site.get(f"/events/{settled['event']}/replay")
    assert ("states", "dead") in page.form(f"/events/{settled['event']}/replay").fields
    assert ("states", "delivered") not in page.form(f"/events/{settled['event']}/replay").fields
    before = [path for path, _, _ in service.target.received]
    done = site.submit(page, f"/events/{settled['event']}/replay", endpoint_id=settled["bad"])
    assert "Replayed 1 delivery: on the way again." in done.text
    site.until(f"/events/{settled['event']}", lambda page: "1 delivered, 1 dead" in page.h1)
    after = [path for path, _, _ in service.target.received]
    assert after.count("/ev-down") == before.count("/ev-down") + 1
    assert after.count("/ev-ok") == before.count("/ev-ok")


def test_a_replay_of_nothing_says_what_is_missing(site: Site, settled: dict[str, str]):
    page = site.get(f"/events/{settled['event']}/replay")
    refused = site.submit(page, f"/events/{settled['event']}/replay", states=None)
    assert refused.status == 422
    assert refused.text.count("states is a list of") == 1
    none = site.submit(page, f"/events/{settled['event']}/replay", states="cancelled")
    assert "Nothing was replayed" in none.text


def test_a_form_that_is_sent_twice_publishes_once(service: Service, site: Site):
    page = site.get("/events/new")
    given = {"type": "evform.made", "payload": '{\r\n  "n": 1.0\r\n}', "account": "fern"}
    first = site.submit(page, "/events/new", **given)
    assert "Published. No endpoint asks for it." in first.text
    second = site.submit(page, "/events/new", **given)
    assert "nothing was sent twice" in second.text
    assert first.path == second.path
    [event] = service.call("GET", "/v1/events?type=evform.made")["data"]
    assert event["account"] == "fern"
    assert site.client.get(f"/events/{event['id']}/payload").content == b'{\n  "n": 1.0\n}'


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "no type"}, "/type"),
        ({"payload": "{"}, "is not one JSON value"),
        ({"payload": '1,"account":"other"'}, "is not one JSON value"),
        ({"payload": ""}, "is not one JSON value"),
        ({"account": "no account"}, "/account"),
        ({"idempotency_key": "no key"}, "/idempotency_key"),
    ],
)
def test_what_cannot_be_published_is_said_beside_its_field(
    service: Service, site: Site, fields: dict[str, str], message: str
):
    page = site.submit(site.get("/events/new"), "/events/new", **{"type": "evbad.made", **fields})
    assert page.status == 422
    assert page.text.count(message) == 1
    assert page.form("/events/new").fields[1:][0] == ("type", fields.get("type", "evbad.made"))
    assert service.call("GET", "/v1/events?type=evbad.made")["data"] == []


def test_a_payload_that_does_not_match_is_refused(service: Service, site: Site):
    service.call("PUT", "/v1/event-types/evschema.made", {"schema": {"type": "object", "required": ["id"]}})
    page = site.submit(site.get("/events/new"), "/events/new", type="evschema.made", payload="{}")
    assert page.status == 422
    assert page.text.count("The payload does not match the schema of evschema.made.") == 1


def test_a_key_that_may_read_neither_publishes_nor_replays(service: Service, settled: dict[str, str]):
    reader = Site(service.url, key=service.new_key("read"))
    assert reader.get("/events/new").status == 403
    page = reader.get(f"/events/{settled['event']}/replay")
    assert page.form(f"/events/{settled['event']}/replay").is_disabled
    refused = reader.submit(page, f"/events/{settled['event']}/replay")
    assert refused.status == 403
    assert not any(href == "/events/new" for href, _ in reader.get("/events").links)
    reader.close()


def test_a_key_of_an_account_sees_and_publishes_nothing_of_others(service: Service, settled: dict[str, str]):
    tenant = Site(service.url, key=service.new_key("read", "publish", account="ev-other"))
    for path in ("", "/payload", "/replay"):
        theirs = tenant.get(f"/events/{settled['event']}{path}")
        unknown = tenant.get(f"/events/{UNKNOWN}{path}")
        assert (theirs.status, theirs.h1) == (unknown.status, unknown.h1) == (404, "There is nothing here.")
        assert _without_request(theirs) == _without_request(unknown)
    assert settled["event"] not in tenant.get("/events?idempotency_key=ev-key-1").html
    assert settled["event"] not in tenant.get("/events?account=fern").html
    page = tenant.get("/events/new")
    assert "account" not in dict(page.form("/events/new").fields)
    refused = tenant.submit(page, "/events/new", account="fern")
    assert refused.status == 422
    done = tenant.submit(page, "/events/new", type="evtenant.made")
    assert done.status == 200
    [event] = service.call("GET", "/v1/events?type=evtenant.made")["data"]
    assert event["account"] == "ev-other"
    tenant.close()


def _without_request(page: Page) -> str:
    return page.text.split("Request req_")[0]
