"""The first page says whether all is well, and what is not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server_process import ServerProcess
from tests.dashboard.conftest import KEY, Service
from tests.dashboard.site import Site, Target


def test_an_empty_installation_shows_the_first_commands(site: Site):
    page = site.get("/")
    assert page.status == 200
    assert page.h1 == "hookline is running. Nothing has been published yet."
    assert page.title.startswith(page.h1)
    assert "hookline send order.paid" in page.text
    assert (
        "Nothing was published yet. The first one: hookline send order.paid" in site.get("/deliveries").text
    )


def test_without_a_visit_every_page_leads_to_the_login(service: Service):
    stranger = Site(service.url)
    page = stranger.get("/")
    assert page.h1 == "Log in"
    assert page.path == "/login?next=%2F"
    stranger.close()


@pytest.fixture
def watched(tmp_path: Path, target: Target) -> Iterator[Service]:
    """A server that looks for alerts all the time."""
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8", "HOOKLINE_ALERT_EVERY_S": "0.2"}
    with ServerProcess("--database", "sqlite:///hooks.db", cwd=tmp_path, env=env) as process:
        service = Service(process.url, target, f"sqlite:///{tmp_path}/hooks.db")
        with service.client:
            yield service


def test_an_endpoint_that_is_gone_is_a_knot_while_something_waits_or_is_dead(watched: Service):
    watched.target.answers["/gone"] = (410, b"gone")
    endpoint = watched.create("/gone", events=["gone.*"])
    watched.publish("gone.paid")
    site = Site(watched.url, key=KEY)
    page = site.until("/", lambda page: "Answered 410, so it is disabled since" in page.text)
    assert "It said it will not come back." in page.text
    assert page.h1 == "All flows now. 1 dead letter is left."
    assert (f"/dead-letters?endpoint_id={endpoint['id']}", "List what died") in page.links
    assert "1 alert about the endpoints named above." in page.text  # it is not told twice
    [trouble] = watched.call("GET", "/v1/status")["troubles"]
    [named] = trouble["endpoints"]
    assert (named["endpoint_id"], named["enabled"], named["dead"]) == (endpoint["id"], False, 1)

    # Its own page offers what fits: nothing can be tested, and what died there is to be discarded.
    page = site.get(f"/endpoints/{endpoint['id']}")
    assert "1 died in 24 h with 410 Gone" in page.text
    assert not [form for form in page.forms if form.action.endswith("/test")]
    discard = f"/dead-letters/discard?endpoint_id={endpoint['id']}"
    assert (discard, "Discard 1…") in page.links
    site.submit(site.get(discard), "/dead-letters/discard")
    site.until("/", lambda page: "Answered 410" not in page.text)
    site.close()
