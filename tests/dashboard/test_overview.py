"""The first page says whether all is well, and what is not."""

from tests.dashboard.conftest import Service
from tests.dashboard.site import Site


def test_an_empty_installation_shows_the_first_commands(site: Site):
    page = site.get("/")
    assert page.status == 200
    assert page.h1 == "hookline is running. Nothing has been published yet."
    assert page.title.startswith(page.h1)
    assert "hookline send order.paid" in page.text


def test_without_a_visit_every_page_leads_to_the_login(service: Service):
    stranger = Site(service.url)
    page = stranger.get("/")
    assert page.h1 == "Log in"
    assert page.path == "/login?next=%2F"
    stranger.close()
