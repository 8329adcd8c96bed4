"""The page of a delivery says what became of it, and does what can be done to it."""

from typing import Any

import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Page, Site

ONCE = {"schedule": [], "jitter": "none"}
LONG = {"schedule": [3_600, 3_600], "jitter": "none"}


def published(service: Service, type: str, payload: Any = None, **fields: Any) -> str:
    """The id of the one delivery of a new event."""
    event = service.publish(type, payload, **fields)
    (delivery,) = service.call("GET", f"/v1/events/{event['id']}/deliveries")["data"]
    id: str = delivery["id"]
    return id


def has_ended(page: Page) -> bool:
    return "waits for" not in page.h1 and "is being sent" not in page.h1


@pytest.fixture(scope="module")
def waiting(service: Service, site: Site) -> str:
    """A delivery that was refused once and is tried again in an hour."""
    service.target.answers["/waits"] = (503, b"<script>alert(1)</script> busy")
    service.create(
        "/waits", events=["one.waits"], retry=LONG, circuit=None, headers={"authorization": "secret"}
    )
    id = published(service, "one.waits", {"note": "<script>alert(2)</script>", "n": 1.5})
    site.until(f"/deliveries/{id}", lambda page: page.h1 == "one.waits waits for attempt 2")
    return id


@pytest.fixture(scope="module")
def dead(service: Service, site: Site) -> str:
    service.target.answers["/dies"] = (401, b"no")
    service.create("/dies", events=["one.dies"], circuit=None)
    id = published(service, "one.dies")
    site.until(f"/deliveries/{id}", has_ended)
    return id


def test_a_delivered_one(service: Service, site: Site):
    service.create("/fine", events=["one.fine"])
    id = published(service, "one.fine")
    page = site.until(f"/deliveries/{id}", has_ended)
    assert page.h1 == "one.fine was delivered"
    assert page.title.startswith(page.h1)
    assert "at the first attempt, with 200 OK" in page.text
    assert "Attempt 1: 200 OK" in page.text
    assert "Headers are kept only of attempts that were not accepted." in page.text
    assert "Retry now" not in page.text


def test_one_that_waits_tells_when_it_goes_on_and_what_was_said(site: Site, waiting: str):
    page = site.get(f"/deliveries/{waiting}")
    assert "It is tried again in" in page.text
    assert "1 of 3 attempts are used." in page.text
    assert "If it fails: attempt 3, the last, up to 1 h after that. Then it is dead." in page.text
    assert "Attempt 1: 503 Service Unavailable" in page.text
    assert "authorization: ***" in page.text
    assert "secret" not in page.text
    assert waiting in page.text


def test_what_receivers_and_publishers_write_is_text(site: Site, waiting: str):
    for view in ("", "?view=raw"):
        page = site.get(f"/deliveries/{waiting}{view}")
        assert "<script>alert" not in page.html
        assert "<script>alert(1)</script> busy" in page.text
        assert "<script>alert(2)</script>" in page.text


def test_the_payload_is_laid_out_or_as_sent_and_can_be_saved(site: Site, waiting: str):
    assert ": 1.5 }" in site.get(f"/deliveries/{waiting}").text
    assert '","n":1.5}' in site.get(f"/deliveries/{waiting}?view=raw").text
    answer = site.client.get(f"/deliveries/{waiting}/payload")
    assert answer.content == b'{"note":"<script>alert(2)</script>","n":1.5}'
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_its_request_is_there_as_a_command(site: Site, waiting: str):
    text = site.get(f"/deliveries/{waiting}").text
    assert "curl --globoff --path-as-is --request POST" in text
    assert "--header 'authorization: ***'" in text
    assert """--data-binary '{"note":"<script>alert(2)</script>","n":1.5}'""" in text


def test_behind_an_open_circuit_the_endpoint_is_tested_instead(service: Service, site: Site):
    service.target.answers["/open"] = (503, b"")
    circuit = {"consecutive_failures": 1, "cooldown_s": 3600, "max_cooldown_s": 3600}
    endpoint = service.create("/open", events=["one.open"], retry=LONG, circuit=circuit)
    id = published(service, "one.open")
    page = site.until(f"/deliveries/{id}", lambda page: "It waits for the endpoint’s circuit" in page.text)
    assert (f"/endpoints/{endpoint['id']}#recover", "Test and recover") in page.links
    assert "Retry now" not in page.text


def test_retry_now_makes_it_due(service: Service, site: Site):
    service.target.answers["/again"] = (500, b"")
    service.create("/again", events=["one.again"], retry=LONG, circuit=None)
    id = published(service, "one.again")
    page = site.until(f"/deliveries/{id}", lambda page: page.h1 == "one.again waits for attempt 2")
    service.target.answers["/again"] = (200, b"")
    page = site.submit(page, f"/deliveries/{id}/retry")
    assert page.path == f"/deliveries/{id}"
    assert "It is due now" in page.text
    page = site.until(f"/deliveries/{id}", has_ended)
    assert page.h1 == "one.again was delivered"
    assert "at attempt 2 of 3" in page.text


def test_cancelling_asks_first(service: Service, site: Site):
    endpoint = service.create("/held", events=["one.held"])
    service.call("POST", f"/v1/endpoints/{endpoint['id']}/pause", {})
    id = published(service, "one.held")
    page = site.until(f"/deliveries/{id}", lambda page: "The endpoint is paused" in page.text)
    assert (f"/endpoints/{endpoint['id']}", "Resume the endpoint") in page.links
    assert (f"/deliveries/{id}/cancel", "Cancel…") in page.links
    page = site.get(f"/deliveries/{id}/cancel")
    assert page.h1 == "Cancel one.held?"
    assert service.call("GET", f"/v1/deliveries/{id}")["state"] == "pending"
    page = site.submit(page, f"/deliveries/{id}/cancel")
    assert page.h1 == "one.held was cancelled by a person"
    assert "It is cancelled" in page.text
    assert "so there is nothing to cancel" in site.get(f"/deliveries/{id}/cancel").text
    page = site.submit(site.get(f"/deliveries/{id}/replay"), f"/deliveries/{id}/replay")
    assert "its endpoint is paused" in page.text
    assert page.h1 == "one.held waits for its first attempt"


def test_a_dead_one_is_replayed_and_its_death_remembered(service: Service, site: Site):
    service.target.answers["/dead"] = (401, b"no")
    service.create("/dead", events=["one.dead"], circuit=None)
    id = published(service, "one.dead")
    page = site.until(f"/deliveries/{id}", has_ended)
    assert page.h1 == "one.dead is dead: the answer was final"
    assert (f"/deliveries/{id}/replay", "Replay…") in page.links
    service.target.answers["/dead"] = (200, b"")
    page = site.submit(site.get(f"/deliveries/{id}/replay"), f"/deliveries/{id}/replay")
    assert "once more" in page.text
    page = site.until(f"/deliveries/{id}", lambda page: page.h1 == "one.dead was delivered")
    assert "answer was final after 1 attempt" in page.text
    page = site.submit(site.get(f"/deliveries/{id}/replay"), f"/deliveries/{id}/replay")
    site.until(f"/deliveries/{id}", lambda page: "2 times" in page.text and has_ended(page))


def test_a_dead_one_is_discarded_after_asking(service: Service, site: Site):
    service.target.answers["/gone"] = (401, b"no")
    service.create("/gone", events=["one.gone"], circuit=None)
    id = published(service, "one.gone")
    site.until(f"/deliveries/{id}", has_ended)
    page = site.submit(site.get(f"/deliveries/{id}/discard"), f"/deliveries/{id}/discard")
    assert page.h1 == "one.gone was discarded by a person"


def test_what_its_state_does_not_allow_changes_nothing(service: Service, site: Site, dead: str):
    token = dict(site.get(f"/deliveries/{dead}").form("/theme").fields)["token"]
    for verb, said in (("retry", "cannot be retried"), ("cancel", "cannot be cancelled")):
        page = site.post(f"/deliveries/{dead}/{verb}", token=token)
        assert page.path == f"/deliveries/{dead}"
        assert said in page.text
        assert "Nothing was changed." in page.text
    assert service.call("GET", f"/v1/deliveries/{dead}")["state"] == "dead"


def test_of_a_deleted_endpoint_nothing_is_replayed(service: Service, site: Site):
    endpoint = service.create("/left", events=["one.left"])
    service.call("POST", f"/v1/endpoints/{endpoint['id']}/pause", {})
    id = published(service, "one.left")
    service.call("DELETE", f"/v1/endpoints/{endpoint['id']}")
    page = site.until(f"/deliveries/{id}", has_ended)
    assert page.h1 == "one.left was cancelled: its endpoint was deleted"
    assert "a deleted endpoint" in page.text
    assert (f"/deliveries/{id}/replay", "Replay…") not in page.links
    assert "Its endpoint was deleted" in site.get(f"/deliveries/{id}/replay").text


def test_who_may_read_changes_nothing(service: Service, waiting: str):
    reader = Site(service.url, key=service.new_key("read"))
    page = reader.get(f"/deliveries/{waiting}")
    assert page.h1 == "one.waits waits for attempt 2"
    assert page.form(f"/deliveries/{waiting}/retry").is_disabled
    assert (f"/deliveries/{waiting}/cancel", "Cancel…") not in page.links
    assert reader.submit(page, f"/deliveries/{waiting}/retry").status == 403
    assert service.call("GET", f"/v1/deliveries/{waiting}")["attempts"] == 1
    reader.close()


def test_another_accounts_delivery_is_as_unknown_as_one_that_never_was(
    service: Service, waiting: str, site: Site
):
    service.create("/mine", events=["*"], account="mine")
    own = published(service, "one.mine", account="mine")
    visitor = Site(service.url, key=service.new_key("admin", "read", account="mine"))
    assert visitor.get(f"/deliveries/{own}").status == 200
    never = waiting[:-1] + ("1" if waiting[-1] == "0" else "0")
    for path in ("", "/payload", "/retry", "/cancel", "/replay", "/discard"):
        others, nothing = (visitor.get(f"/deliveries/{id}{path}") for id in (waiting, never))
        assert others.status == nothing.status == 404
        assert others.text.replace(waiting, "ID") == nothing.text.replace(never, "ID")
        assert "one.waits" not in others.html
    token = dict(visitor.get(f"/deliveries/{own}").form("/theme").fields)["token"]
    assert visitor.post(f"/deliveries/{waiting}/cancel", token=token).status == 404
    assert service.call("GET", f"/v1/deliveries/{waiting}")["state"] == "pending"
    assert site.get("/deliveries/nonsense").h1 == "There is no delivery nonsense."
    visitor.close()
