"""The pages of accounts list those that are known, say where each is told of trouble, and make portal links."""

from urllib.parse import urlsplit

import pytest

from tests.dashboard.conftest import Service
from tests.dashboard.site import Site


def test_accounts_with_endpoints_or_channels_are_listed(service: Service, site: Site):
    service.create("/ac", account="ac-has-endpoint")
    service.call("PUT", "/v1/accounts/ac-is-told", {"notify": {"email": "ops@example.com"}})
    page = site.get("/accounts")
    assert ("/accounts/ac-has-endpoint", "ac-has-endpoint") in page.links
    assert ("/endpoints?account=ac-has-endpoint", "1") in page.links
    assert ("/accounts/ac-is-told", "ac-is-told") in page.links
    some = site.get("/accounts?name=IS-TOLD")
    assert ("/accounts/ac-is-told", "ac-is-told") in some.links
    assert ("/accounts/ac-has-endpoint", "ac-has-endpoint") not in some.links
    assert "No account with endpoints" in site.get("/accounts?name=ac-nobody").text


def test_channels_are_changed_and_a_masked_url_stays(service: Service, site: Site):
    notify = {"email": "a@example.com", "webhook": f"{service.target.url}/ac-alert"}
    service.call("PUT", "/v1/accounts/ac-told", {"notify": notify})
    page = site.get("/accounts/ac-told")
    assert page.h1 == "ac-told has no endpoint and is told of trouble by mail and webhook"
    assert "/ac-alert" not in page.html
    form = site.get("/accounts/ac-told/notify")
    saved = site.submit(form, "/accounts/ac-told/notify", email="")
    assert saved.h1 == "ac-told has no endpoint and is told of trouble by webhook"
    tested = site.submit(saved, "/accounts/ac-told/test-alert")
    assert "Arrived" in tested.text
    assert any(path == "/ac-alert" for path, _, _ in service.target.received)
    again = site.submit(tested, "/accounts/ac-told/test-alert")
    assert again.status == 429
    assert "were tested a moment ago" in again.text


def test_a_test_without_channels_says_so(site: Site):
    page = site.submit(site.get("/accounts/ac-silent"), "/accounts/ac-silent/test-alert")
    assert "Nothing was sent: no channel is set." in page.text


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"email": "nobody"}, "/notify/email"),
        ({"webhook": "nowhere"}, "/notify/webhook"),
        ({"slack": "x/***"}, "/notify/slack"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    service: Service, site: Site, fields: dict[str, str], pointer: str
):
    page = site.submit(site.get("/accounts/ac-bad/notify"), "/accounts/ac-bad/notify", **fields)
    assert page.status == 422
    assert page.text.count(pointer) == 1
    assert service.call("GET", "/v1/accounts/ac-bad")["updated_at"] is None


def test_a_portal_link_is_shown_once_and_opens_the_account(service: Service, site: Site):
    page = site.submit(site.get("/accounts/ac-portal"), "/accounts/ac-portal/portal-link", visit_s="900")
    [link] = [word for word in page.text.split() if "/portal/enter?token=" in word]
    assert link.startswith(f"{service.url}/portal/enter?token=")
    assert "/portal/enter" not in page.url
    assert "15 min" in page.text
    assert link not in site.get("/accounts/ac-portal").html
    visitor = Site(service.url)
    path = f"{urlsplit(link).path}?{urlsplit(link).query}"
    entrance = visitor.get(path)
    visitor.submit(entrance, "/portal/enter")
    assert "Nothing was published to you yet." in visitor.get("/events").text
    assert visitor.get("/events/new").status == 404
    assert visitor.get("/accounts/ac-portal").status == 404
    visitor.close()


def test_a_portal_link_with_a_bad_length_is_not_made(site: Site):
    for given in ("1", "x"):
        page = site.submit(site.get("/accounts/ac-portal"), "/accounts/ac-portal/portal-link", visit_s=given)
        assert page.status == 422
        assert page.text.count("visit_s is a whole number") == 1
        assert "/portal/enter" not in page.html


def test_accounts_are_for_operators(service: Service):
    tenant = Site(service.url, key=service.new_key("read", "admin", account="ac-tenant"))
    for path in ("/accounts", "/accounts/ac-tenant", "/accounts/ac-told", "/accounts/ac-tenant/notify"):
        assert tenant.get(path).status == 404
    tenant.close()


def test_a_key_that_may_read_changes_nothing(service: Service):
    reader = Site(service.url, key=service.new_key("read"))
    page = reader.get("/accounts/ac-read")
    assert page.form("/accounts/ac-read/test-alert").is_disabled
    assert page.form("/accounts/ac-read/portal-link").is_disabled
    assert reader.submit(page, "/accounts/ac-read/portal-link").status == 403
    form = reader.get("/accounts/ac-read/notify")
    assert reader.submit(form, "/accounts/ac-read/notify", email="a@example.com").status == 403
    assert service.call("GET", "/v1/accounts/ac-read")["updated_at"] is None
    reader.close()
