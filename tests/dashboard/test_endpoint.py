"""The page of an endpoint says how it is and why, and does what is pressed."""

import json
import re
from typing import Any

from tests.dashboard.conftest import Service
from tests.dashboard.site import Page, Site

ONCE = {"schedule": [0], "jitter": "none"}
CIRCUIT = {
    "consecutive_failures": 2,
    "failure_rate": 1.0,
    "window_s": 600,
    "min_attempts": 50,
    "cooldown_s": 600,
    "max_cooldown_s": 3600,
}


def page_of(endpoint: dict[str, Any], more: str = "") -> str:
    return f"/endpoints/{endpoint['id']}{more}"


def down(service: Service, site: Site, name: str) -> dict[str, Any]:
    """An endpoint whose circuit is open, with two dead letters."""
    service.target.answers[f"/{name}"] = (503, b"no")
    endpoint = service.create(f"/{name}", events=[f"{name}.*"], retry=ONCE, circuit=CIRCUIT)
    for _ in range(2):
        service.publish(f"{name}.paid")
    site.until(
        page_of(endpoint), lambda page: "The circuit is open" in page.text and "Replay 2…" in page.text
    )
    return endpoint


def without_ids(page: Page) -> str:
    return re.sub(r"(req|ep)_\w+", "", page.text)


def test_a_healthy_one_says_so_with_its_figures(service: Service, site: Site):
    endpoint = service.create("/healthy", events=["healthy.*"], description="Order sync")
    assert "Idle: nothing was sent to it in 24 h" in site.get(page_of(endpoint)).text
    for _ in range(3):
        service.publish("healthy.paid")
    page = site.until(
        page_of(endpoint), lambda page: "Takes what it is sent: 100 % of 3 attempts in 24 h" in page.text
    )
    assert page.h1 == endpoint["url"]
    assert page.title.startswith(f"Healthy: {endpoint['url']}")
    assert "200 OK" in page.text
    assert "Order sync" in page.text
    assert (f"/deliveries?endpoint_id={endpoint['id']}", "All its deliveries") in page.links
    assert not [form for form in page.forms if form.action.endswith("/recover")]
    assert "uPlot" in page.html
    drawn = re.search(r'data-plot="([^"]*)"', page.html)
    assert drawn is not None
    given = json.loads(drawn[1].replace("&#34;", '"'))
    assert sorted(given["lines"]) == ["p50", "p95", "p99"]
    assert len(given["times"]) == len(given["lines"]["p50"])


def test_a_window_that_is_none_is_a_day(service: Service, site: Site):
    endpoint = service.create("/windows", events=["windows.*"])
    for window, shown in (("7d", "7 d"), ("1h", "1 h"), ("nonsense", "24 h"), ("", "24 h")):
        page = site.get(page_of(endpoint, f"?window={window}"))
        assert f'aria-current="true">{shown}<' in page.html


def test_a_failing_one_is_tested_recovered_and_replayed(service: Service, site: Site):
    endpoint = down(service, site, "recovers")
    page = site.until(page_of(endpoint), lambda page: "it answers 503 Service Unavailable" in page.text)
    assert page.title.startswith("Failing:")
    assert "Looks like an outage at the receiver." in page.text

    page = site.submit(page, page_of(endpoint, "/recover"))
    assert "Not yet: 503 Service Unavailable in" in page.text
    assert "The test was taken back." in page.text
    dead = service.call("GET", f"/v1/dead-letters?endpoint_id={endpoint['id']}")["data"]
    assert len(dead) == 2

    service.target.answers["/recovers"] = (200, b"ok")
    page = site.submit(page, page_of(endpoint, "/recover"))
    assert "It is back: 200 OK in" in page.text
    assert "It answers again" in page.text
    assert "2 deliveries died since it last accepted something." in page.text
    assert service.call("GET", f"/v1/endpoints/{endpoint['id']}")["circuit_state"]["state"] == "closed"

    # The question is that of the page of dead letters, with and without a time.
    [since, whole] = sorted(
        (href for href, text in page.links if text == "Replay 2…"), key=lambda href: "since" not in href
    )
    assert whole == f"/dead-letters/replay?endpoint_id={endpoint['id']}"
    assert since.startswith(f"{whole}&since=")
    [page, other] = [site.get(since), site.get(whole)]
    assert page.h1 == other.h1 == f"Replay 2 dead letters to {endpoint['url']}?"
    assert "They go out now." in page.text
    page = site.submit(page, "/dead-letters/replay")
    assert "/replays/" in page.path
    listed = f"/v1/deliveries?endpoint_id={endpoint['id']}&state=delivered"
    site.until(page_of(endpoint), lambda _: len(service.call("GET", listed)["data"]) == 3)


def test_a_result_that_is_loaded_again_tests_nothing(service: Service, site: Site):
    endpoint = service.create("/again", events=["again.*"])
    page = site.submit(site.get(page_of(endpoint)), page_of(endpoint, "/test"))
    assert "It accepted the test: 200 OK in" in page.text
    page = site.get(page_of(endpoint, "/test"))
    assert page.path == page_of(endpoint)
    assert len(service.call("GET", f"/v1/endpoints/{endpoint['id']}/deliveries")["data"]) == 1


def test_only_a_test_leaves_an_open_circuit_open(service: Service, site: Site):
    endpoint = down(service, site, "stays")
    page = site.submit(site.get(page_of(endpoint)), page_of(endpoint, "/test"), "Only test")
    assert "Not sent: the test waited for its circuit and was taken back." in page.text
    assert service.call("GET", f"/v1/endpoints/{endpoint['id']}")["circuit_state"]["state"] == "open"


def test_behind_an_open_circuit_a_retry_says_what_helps_instead(service: Service, site: Site):
    endpoint = down(service, site, "behind")
    event = service.publish("behind.paid")
    [delivery] = service.call("GET", f"/v1/events/{event['id']}/deliveries")["data"]
    page = site.get(f"/deliveries/{delivery['id']}/retry")
    assert "Its endpoint’s circuit is open, so a retry would only wait." in page.text
    assert (page_of(endpoint, "#recover"), "Test and recover") in page.links


def test_pausing_and_disabling_wait_until_they_are_undone(service: Service, site: Site):
    endpoint = service.create("/states", events=["states.*"])
    page = site.submit(site.get(page_of(endpoint)), page_of(endpoint, "/pause"))
    assert page.title.startswith("Paused:")
    assert "Paused: what is published for it waits until it is resumed." in page.text
    assert not [form for form in page.forms if form.action == page_of(endpoint, "/test")]
    token = dict(page.form(page_of(endpoint, "/resume")).fields)["token"]
    late = site.post(page_of(endpoint, "/test"), token=token)  # of a page that was loaded before
    assert "Not tested. The endpoint is paused; resume it first." in late.text
    page = site.submit(page, page_of(endpoint, "/resume"))
    assert page.title.startswith("Idle:")

    page = site.get(page_of(endpoint, "/disable"))
    assert page.h1 == "Disable this endpoint?"
    assert service.call("GET", f"/v1/endpoints/{endpoint['id']}")["enabled"] is True
    page = site.submit(page, page_of(endpoint, "/disable"))
    assert page.title.startswith("Disabled:")
    page = site.submit(page, page_of(endpoint, "/enable"))
    assert service.call("GET", f"/v1/endpoints/{endpoint['id']}")["enabled"] is True
    assert "Enabled: it gets new events" in page.text


def test_a_circuit_is_closed_without_a_test_after_a_question(service: Service, site: Site):
    endpoint = down(service, site, "closes")
    page = site.get(page_of(endpoint, "/circuit"))
    assert page.h1 == "Close the circuit without a test?"
    page = site.submit(page, page_of(endpoint, "/circuit"))
    assert "The circuit is closed: what waits is sent, one first." in page.text
    site.until(page_of(endpoint, "?window=1h"), lambda page: "The circuit is open" not in page.text)


def test_dead_letters_bring_their_diagnosis_with_commands(service: Service, site: Site):
    service.target.answers["/refuses"] = (401, b"no")
    endpoint = service.create("/refuses", events=["refuses.*"], retry=ONCE)
    for _ in range(5):
        service.publish("refuses.paid")
    page = site.until(page_of(endpoint), lambda page: "Credentials 5 died in 24 h" in page.text)
    assert f"hookline endpoints secret {endpoint['id']}" in page.text
    page = site.until(page_of(endpoint), lambda page: "Its credentials were refused." in page.text)
    assert (page_of(endpoint, "/settings#headers"), "Change the header") in page.links


def test_a_replay_since_no_time_says_what_is_wrong(service: Service, site: Site):
    endpoint = service.create("/since", events=["since.*"])
    page = site.get(f"/dead-letters/replay?endpoint_id={endpoint['id']}&since=yesterday")
    assert page.status == 422
    assert "RFC 3339" in page.text


def test_who_may_only_read_sees_everything_and_changes_nothing(service: Service, site: Site):
    endpoint = down(service, site, "readonly")
    reader = Site(service.url, key=service.new_key("read"))
    page = reader.get(page_of(endpoint))
    assert page.status == 200
    acting = [form for form in page.forms if form.action.startswith("/endpoints/")]
    assert acting
    assert all(form.is_disabled for form in acting)
    for verb in ("recover", "test", "pause", "circuit", "disable"):
        refused = reader.submit(page, "/theme", token=None)  # without a token nothing is done either
        assert refused.status == 403
        form = page.form(page_of(endpoint, "/pause"))
        [token] = [value for name, value in form.fields if name == "token"]
        assert reader.post(page_of(endpoint, f"/{verb}"), token=token).status == 403
    after = service.call("GET", f"/v1/endpoints/{endpoint['id']}")
    assert (after["paused"], after["enabled"], after["circuit_state"]["state"]) == (False, True, "open")
    reader.close()


def test_a_key_of_an_account_learns_nothing_of_others(service: Service, site: Site):
    theirs = service.create("/theirs", events=["theirs.*"], account="globex")
    own = service.create("/own", events=["own.*"], account="acme")
    tenant = Site(service.url, key=service.new_key("admin", account="acme"))
    page = tenant.get(page_of(own))
    assert page.status == 200
    assert "acme" not in [text for _, text in page.links]
    unknown = {"id": theirs["id"][:-1] + ("0" if theirs["id"][-1] != "0" else "g")}
    form = page.form(page_of(own, "/pause"))
    [token] = [value for name, value in form.fields if name == "token"]
    for more in ("", "/disable", "/circuit"):
        hidden, missing = tenant.get(page_of(theirs, more)), tenant.get(page_of(unknown, more))
        assert hidden.status == missing.status == 404
        assert without_ids(hidden) == without_ids(missing)
    for verb in ("recover", "test", "pause", "resume", "enable", "disable", "circuit"):
        assert tenant.post(page_of(theirs, f"/{verb}"), token=token).status == 404
    assert tenant.get(f"/live?page=endpoint:{theirs['id']}").status == 404
    after = service.call("GET", f"/v1/endpoints/{theirs['id']}")
    assert (after["paused"], after["enabled"]) == (False, True)
    tenant.close()


def test_what_others_wrote_is_shown_as_text(service: Service, site: Site):
    endpoint = service.create(
        "/hostile?a=1&lt=2",
        events=["hostile.*"],
        description="<img src=x onerror=alert(2)>",
        headers={"x-name": "<script>"},
    )
    page = site.get(page_of(endpoint))
    assert "a=1&amp;lt=2" in page.html
    assert "<script>" not in page.html
    assert "<img src=x" not in page.html
    assert "<img src=x onerror=alert(2)>" in page.text


def test_its_state_and_figures_are_live(service: Service, site: Site):
    endpoint = service.create("/live", events=["live.*"])
    assert f'data-live="endpoint:{endpoint["id"]}"' in site.get(page_of(endpoint)).html
    with site.client.stream("GET", f"/live?page=endpoint:{endpoint['id']}") as stream:
        assert stream.status_code == 200
        for line in stream.iter_lines():
            if line.startswith("data: "):
                regions = json.loads(line.removeprefix("data: "))["regions"]
                break
    assert sorted(regions) == ["now", "state"]
    assert "Idle: nothing was sent to it in 24 h" in regions["state"]
    assert site.get("/live?page=endpoint:").status == 404
    assert site.get("/live?page=endpoint").status == 404
