"""Only who has a good key looks at pages, and only our own pages change anything."""

import re

import httpx
import pytest

from tests.dashboard.conftest import KEY, Service
from tests.dashboard.site import Page, Site

FOREIGN = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}


@pytest.fixture
def stranger(service: Service):
    site = Site(service.url)
    yield site
    site.close()


def test_a_wrong_key_is_refused_and_begins_no_visit(stranger: Site):
    page = stranger.post("/login", key="hlk_wrong")
    assert page.status == 401
    assert "This key is not known here" in page.text
    assert not stranger.client.cookies
    assert stranger.get("/").h1 == "Log in"


@pytest.mark.parametrize("key", ["", " ", "hlk_\u00e9", "x" * 5_000, "hlk_a\r\nx: y"])
def test_what_cannot_be_a_key_is_refused_likewise(stranger: Site, key: str):
    page = stranger.post("/login", key=key)
    assert page.status in (401, 429)
    assert stranger.get("/").h1 == "Log in"


def test_the_cookie_of_a_visit_is_out_of_reach_for_scripts_and_other_sites(service: Service):
    answer = httpx.post(
        f"{service.url}/login",
        data={"key": KEY},
        headers={"origin": service.url},
        trust_env=False,
    )
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert KEY not in cookie
    behind_tls = httpx.post(
        f"{service.url}/login",
        data={"key": KEY},
        headers={"origin": service.url, "x-forwarded-proto": "https"},
        trust_env=False,
    )
    assert "Secure" in behind_tls.headers["set-cookie"]


def test_after_the_login_one_is_where_one_wanted_to_be(stranger: Site):
    page = stranger.get("/keyboard")
    assert page.h1 == "Log in"
    page = stranger.submit(page, "/login", key=KEY)
    assert page.path == "/keyboard"


@pytest.mark.parametrize(
    "where",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/%2f/evil.example",
        "javascript:alert(1)",
    ],
)
def test_a_login_leads_to_no_other_site(service: Service, where: str):
    answer = httpx.post(
        f"{service.url}/login",
        data={"key": KEY, "next": where},
        headers={"origin": service.url},
        trust_env=False,
    )
    assert answer.headers["location"] in ("/", where if where.startswith("/%2f/") else "/")


def test_logging_out_ends_the_visit_for_good(service: Service, stranger: Site):
    page = stranger.post("/login", key=KEY)
    cookies = dict(stranger.client.cookies)
    page = stranger.submit(page, "/logout")
    assert page.h1 == "Log in"
    again = httpx.get(f"{service.url}/", cookies=cookies, trust_env=False)
    assert again.status_code == 303


def test_a_revoked_key_ends_its_visits(service: Service, stranger: Site):
    fields = {"name": "for a while", "scopes": ["admin"]}
    key = service.call("POST", "/v1/keys", fields)
    page = stranger.post("/login", key=key["key"])
    assert "for a while" in page.text
    service.call("DELETE", f"/v1/keys/{key['id']}")
    assert stranger.get("/").h1 == "Log in"
    assert stranger.submit(page, "/theme", theme="dark").h1 == "Log in"


@pytest.mark.parametrize("cookie", ["", "x", "a" * 43, "%00", "' OR 1=1 --"])
def test_a_forged_cookie_is_nobodys(service: Service, cookie: str):
    answer = httpx.get(f"{service.url}/", headers={"cookie": f"hookline_visit={cookie}"}, trust_env=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?next=%2F")


def test_a_form_of_another_site_is_refused(service: Service, site: Site):
    page = site.get("/")
    form = page.form("/theme")
    fields = dict(form.fields) | {"theme": "dark"}
    for headers in (FOREIGN, {"origin": "null"}, {}, {"sec-fetch-site": "cross-site"}):
        answer = site.client.post("/theme", data=fields, headers=headers, follow_redirects=False)
        assert answer.status_code == 403, headers
        assert "set-cookie" not in answer.headers
    ours = site.client.post("/theme", data=fields, headers=site.origin, follow_redirects=False)
    assert ours.status_code == 303
    site.client.cookies.delete("hookline_theme")


def test_a_form_needs_the_token_of_its_own_visit(service: Service, site: Site, stranger: Site):
    mine = site.get("/").form("/theme")
    theirs = stranger.post("/login", key=KEY).form("/theme")
    for token in ("", "x", dict(theirs.fields)["token"], dict(mine.fields)["token"][:-4] + "AAAA"):
        page = Page(
            site.client.post(
                "/theme", data={"token": token, "theme": "dark", "back": "/"}, headers=site.origin
            )
        )
        assert page.status == 403
        assert "out of date" in page.text


def test_the_token_is_written_differently_each_time(site: Site):
    tokens = {dict(site.get("/").form("/theme").fields)["token"] for _ in range(3)}
    assert len(tokens) == 3


def test_a_read_only_key_sees_and_cannot_act(service: Service, stranger: Site):
    page = stranger.post("/login", key=service.new_key("read"))
    assert page.status == 200
    assert "may read. To act, log in with one of scope admin." in page.text


def test_a_key_that_may_only_publish_sees_nothing(service: Service, stranger: Site):
    page = stranger.post("/login", key=service.new_key("publish"))
    assert page.status == 403


def test_every_answer_keeps_foreign_scripts_and_frames_out(site: Site, stranger: Site):
    for page in (
        site.get("/"),
        stranger.get("/login"),
        site.get("/keyboard/of-nobody"),
        site.get("/endpoints/ep_x"),
    ):
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "same-origin"
        assert " style=" not in page.html
        assert not re.search(r"<script(?![^>]* src=)", page.html)
        assert not re.search(r"\son[a-z]+=", page.html)


def test_files_keep_their_address_as_long_as_their_content(site: Site):
    page = site.get("/")
    addresses = set(re.findall(r'(?:href|src)="(/assets/[^"]+)"', page.html))
    assert any(each.endswith("/style.css") for each in addresses)
    for address in addresses:
        answer = site.client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert site.client.get("/assets/000000000000/style.css").status_code == 404
    assert site.client.get("/assets/%2e%2e/app.py").status_code == 404


def test_colours_and_times_are_kept_as_wanted(stranger: Site):
    page = stranger.post("/login", key=KEY)
    assert 'data-theme="dark"' not in page.html
    page = stranger.submit(page, "/theme", theme="dark")
    assert 'data-theme="dark"' in page.html
    page = stranger.submit(page, "/theme", "system", theme="system")
    assert "data-theme" not in page.html
    page = stranger.submit(page, "/times", times="utc")
    assert "Show relative times" in page.text
