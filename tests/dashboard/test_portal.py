"""Customers see their own webhooks through a link that works once."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from server_process import ServerProcess, run
from tests.dashboard.conftest import KEY, Service
from tests.dashboard.site import Page, Site

OTHERS = "account-of-others"


def a_link(service: Service, account: str = "acme", **fields: object) -> str:
    made = service.call("POST", f"/v1/accounts/{account}/portal-link", fields)
    parts = urlsplit(made["url"])
    return f"{parts.path}?{parts.query}"


@pytest.fixture
def visitors(service: Service):
    """Browsers of their own, closed at the end."""
    made: list[Site] = []

    def new() -> Site:
        made.append(Site(service.url))
        return made[-1]

    yield new
    for each in made:
        each.close()


def enter(visitor: Site, link: str) -> tuple[Site, Page]:
    page = visitor.get(link)
    return visitor, visitor.submit(page, "/portal/enter")


def test_a_link_opens_one_visit_and_no_second(service: Service, visitors):
    link = a_link(service)
    visitor, page = enter(visitors(), link)
    assert page.status == 200
    assert page.path == "/"
    second, page = enter(visitors(), link)
    assert page.status == 403
    assert page.h1 == "This link cannot be used"
    assert second.get("/").h1 == "Log in"
    assert visitor.get("/").path == "/"


def test_looking_at_a_link_does_not_use_it_up(service: Service, visitors):
    link = a_link(service)
    for _ in range(3):
        assert httpx.get(service.url + link, trust_env=False).status_code == 200
    _, page = enter(visitors(), link)
    assert page.status == 200


@pytest.mark.parametrize("token", ["", "x", "a" * 43, "%00", "' OR 1=1 --"])
def test_a_forged_link_opens_nothing(visitors, token: str):
    visitor = visitors()
    page = visitor.post("/portal/enter", link=token)
    assert page.status == 403
    assert page.h1 == "This link cannot be used"
    assert visitor.get("/").h1 == "Log in"


def test_a_link_ends_with_the_key_that_made_it(service: Service, visitors):
    key = service.call("POST", "/v1/keys", {"name": "portal", "scopes": ["admin"]})
    made = httpx.post(
        f"{service.url}/v1/accounts/acme/portal-link",
        json={},
        headers={"authorization": f"Bearer {key['key']}"},
        trust_env=False,
    ).json()
    link = f"/portal/enter?{urlsplit(made['url']).query}"
    visitor, page = enter(visitors(), link)
    assert page.path == "/"
    service.call("DELETE", f"/v1/keys/{key['id']}")
    assert visitor.until("/", lambda page: page.h1 == "Log in")


def test_a_token_of_a_link_is_no_cookie(service: Service, visitors):
    [token] = parse_qs(urlsplit(a_link(service)).query)["token"]
    answer = httpx.get(f"{service.url}/", cookies={"hookline_visit": token}, trust_env=False)
    assert answer.status_code == 303


def test_a_visit_sees_its_own_account_and_nothing_of_others(service: Service, visitors):
    mine = service.create("/ok", account="acme", description="of acme")
    theirs = service.create("/ok", account=OTHERS, description="of others")
    event = service.publish(account=OTHERS)
    service.publish(account="acme")
    visitor, page = enter(visitors(), a_link(service))
    for path in ("/", "/endpoints", "/deliveries", "/dead-letters", "/events", "/event-types"):
        page = visitor.get(path)
        assert page.status == 200, path
        for told in (OTHERS, "of others", theirs["id"], event["id"], "Workers", "Settings in force"):
            assert told not in page.html, (path, told)
    unknown = visitor.get("/endpoints/ep_01aaaaaaaaaaaaaaaaaaaaaaaa")
    for path in (
        f"/endpoints/{theirs['id']}",
        f"/endpoints/{theirs['id']}/settings",
        f"/events/{event['id']}",
    ):
        page = visitor.get(path)
        assert page.status == unknown.status == 404
        assert (page.h1, page.title) == (unknown.h1, unknown.title)
    for path in ("/accounts", "/keys", "/workers", "/settings", "/accounts/acme"):
        assert visitor.get(path).status == 404, path
    assert visitor.get(f"/endpoints/{mine['id']}").status == 200


def test_a_visit_that_may_not_act_cannot(service: Service, visitors):
    mine = service.create("/ok", account="acme")
    visitor, page = enter(visitors(), a_link(service, may_act=False))
    assert "You may look at everything here and change nothing." in page.text
    token = dict(page.form("/times").fields)["token"]
    page = visitor.post(f"/endpoints/{mine['id']}/pause", token=token)
    assert page.status == 403
    assert service.call("GET", f"/v1/endpoints/{mine['id']}")["paused"] is False


def test_the_portal_has_the_name_the_logo_and_the_colour_of_the_team(tmp_path: Path):
    (tmp_path / "logo.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>')
    env = {
        "HOOKLINE_API_KEY": KEY,
        "HOOKLINE_PORTAL_NAME": "Alder",
        "HOOKLINE_PORTAL_LOGO": str(tmp_path / "logo.svg"),
        "HOOKLINE_PORTAL_ACCENT": "#7a3b12",
        "HOOKLINE_PORTAL_FRAME_ANCESTORS": "https://app.alder.example",
    }
    with ServerProcess(cwd=tmp_path, env=env) as process:
        made = httpx.post(
            f"{process.url}/v1/accounts/acme/portal-link",
            json={},
            headers={"authorization": f"Bearer {KEY}"},
            trust_env=False,
        ).json()
        entered = httpx.post(
            f"{process.url}/portal/enter",
            data={"link": parse_qs(urlsplit(made["url"]).query)["token"][0]},
            headers={"origin": process.url},
            trust_env=False,
        )
        cookie = entered.headers["set-cookie"]
        assert "SameSite=None; Partitioned; Secure" in cookie
        cookies = {"hookline_visit": cookie.partition("=")[2].partition(";")[0]}
        page = Page(httpx.get(f"{process.url}/", cookies=cookies, trust_env=False))
        assert "Alder" in page.title
        assert "Webhooks of Alder, sent by hookline" in page.text
        assert "frame-ancestors https://app.alder.example" in page.headers["content-security-policy"]
        logo = httpx.get(f"{process.url}/portal/logo", trust_env=False)
        assert logo.headers["content-type"] == "image/svg+xml"
        assert logo.headers["content-security-policy"].endswith("; sandbox"), (
            "opened as a page it runs nothing"
        )
        theme = httpx.get(f"{process.url}/portal/theme.css", trust_env=False).text
        assert "--accent: light-dark(#7a3b12, #" in theme
        assert process.stop() == 0


@pytest.mark.parametrize("content", [None, b"GIF89a", b"x" * (65 << 10)])
def test_a_logo_that_cannot_be_used_keeps_the_server_from_starting(tmp_path: Path, content: bytes | None):
    if content is not None:
        (tmp_path / "logo").write_bytes(content)
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_PORTAL_LOGO": str(tmp_path / "logo")}
    done = run("serve", "--port", "0", cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert "portal_logo" in done.stderr
    assert "Traceback" not in done.stderr
