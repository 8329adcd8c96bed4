"""Requests that no browser of ours sends get one clear answer, and leave no trace in the log."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from hookline.dashboard import live
from server_process import ServerProcess
from tests.dashboard.conftest import KEY, Service
from tests.dashboard.site import Site

FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def stranger(service: Service) -> Iterator[Site]:
    site = Site(service.url)
    yield site
    site.close()


def raw(service: Service, *lines: str, body: bytes = b"", end: bool = True) -> bytes:
    """The answer to these bytes."""
    parts = urlsplit(service.url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, parts.port or 80), timeout=60) as connection:
        head = "\r\n".join([*lines, f"Host: {parts.netloc}", "Connection: close", "", ""])
        connection.sendall(head.encode() + body)
        if not end:
            return b""
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
        return answer


def test_a_request_for_the_whole_server_is_no_page(service: Service):
    answer = raw(service, "OPTIONS * HTTP/1.1")
    assert answer.startswith(b"HTTP/1.1 4")
    assert b"500" not in answer.partition(b"\r\n")[0]


@pytest.mark.parametrize("origin", ["http://[", "http://x]", "://", "", "x", "http://[::1", "\u00e9"])
def test_an_origin_that_is_none_is_foreign(service: Service, origin: str):
    answer = raw(
        service,
        "POST /login HTTP/1.1",
        f"Origin: {origin}",
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 5",
        body=b"key=a",
    )
    assert answer.startswith(b"HTTP/1.1 403")


def test_who_leaves_before_the_end_of_a_form_is_not_an_error(service: Service):
    for _ in range(3):
        raw(
            service,
            "POST /login HTTP/1.1",
            f"Origin: {service.url}",
            "Content-Type: application/x-www-form-urlencoded",
            "Content-Length: 500",
            body=b"key=a",
            end=False,
        )
    assert httpx.get(f"{service.url}/login", trust_env=False).status_code == 200
    # The fixture looks for tracebacks when the server has stopped.


def test_strangers_send_small_forms_only(stranger: Site):
    answer = stranger.client.post(
        "/login", content=b"key=" + b"a" * 20_000, headers={**stranger.origin, **FORM}
    )
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"key=\xff", 400), (b"key=%00%ff", 401), (b"a=1&" * 4_000, 401), (b"", 401), (b"key=%zz&key", 401)],
)
def test_an_odd_form_logs_nobody_in(stranger: Site, content: bytes, status: int):
    answer = stranger.client.post("/login", content=content, headers={**stranger.origin, **FORM})
    assert answer.status_code in (status, 429)
    assert "set-cookie" not in answer.headers


def test_a_method_that_is_not_allowed_says_which_are(site: Site):
    for method in ("PUT", "OPTIONS", "DELETE", "PATCH", "TRACE"):
        answer = site.client.request(method, "/")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, POST"


def test_behind_a_proxy_with_a_name_of_its_own_forms_are_still_ours(tmp_path: Path):
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_PUBLIC_URL": "https://hooks.example.com"}
    with ServerProcess(cwd=tmp_path, env=env) as process:

        def log_in(**headers: str) -> int:
            answer = httpx.post(f"{process.url}/login", data={"key": KEY}, headers=headers, trust_env=False)
            return answer.status_code

        ours = {"origin": "https://hooks.example.com"}
        assert log_in(**ours) == 303
        assert log_in(**ours, **{"sec-fetch-site": "same-origin"}) == 303
        assert log_in(**ours, **{"sec-fetch-site": "cross-site"}) == 403
        assert log_in(origin="https://hooks.example.com.evil.example") == 403
        assert log_in(origin="https://evil.example") == 403
        assert process.stop() == 0


def test_only_the_portal_is_framed(tmp_path: Path):
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_PORTAL_FRAME_ANCESTORS": "https://app.alder.example"}
    with ServerProcess(cwd=tmp_path, env=env) as process:
        operator = Site(process.url, key=KEY)
        bearer = {"authorization": f"Bearer {KEY}"}
        made = operator.client.post("/v1/accounts/acme/portal-link", json={}, headers=bearer).json()
        link = made["path"].partition("token=")[2]
        visitor = Site(process.url)
        entered = visitor.client.post(
            "/portal/enter", data={"link": link}, headers=visitor.origin, follow_redirects=False
        )
        cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}  # it is for TLS only
        framed = "frame-ancestors https://app.alder.example"

        def policy(path: str, site: Site, **headers: str) -> str:
            answer = site.client.get(path, headers=headers, follow_redirects=False)
            return str(answer.headers["content-security-policy"])

        for path in ("/", "/keyboard", "/endpoints/ep_x"):
            assert framed in policy(path, visitor, **cookie)
            assert "frame-ancestors 'none'" in policy(path, operator)
        assert framed in policy("/portal/enter?token=x", operator)
        assert "frame-ancestors 'none'" in policy("/login", visitor)
        # Who is in a frame without a visit is told so there, where the login is not shown.
        ended = visitor.client.get("/", headers={"sec-fetch-dest": "iframe"}, follow_redirects=False)
        assert ended.headers["location"] == "/portal/enter?left=1"
        for each in (operator, visitor):
            each.close()
        assert process.stop() == 0


def test_one_account_leaves_streams_for_others(service: Service):
    key = service.new_key("read", account="greedy")
    visitor, other = (
        Site(service.url, key=key),
        Site(service.url, key=service.new_key("read", account="modest")),
    )
    many = httpx.Client(
        base_url=service.url,
        cookies=visitor.client.cookies,
        timeout=60,
        trust_env=False,
        limits=httpx.Limits(max_connections=None),
    )
    opened: list[Iterator[str]] = []
    with many, ExitStack() as stack:
        for _ in range(live.MOST_OF_ONE):
            answer = stack.enter_context(many.stream("GET", "/live?page=overview"))
            assert answer.status_code == 200
            opened.append(answer.iter_lines())  # without it the stream is closed
            next(opened[-1])
        refused = stack.enter_context(many.stream("GET", "/live?page=overview"))
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "30"
        answer = stack.enter_context(other.client.stream("GET", "/live?page=overview"))
        assert answer.status_code == 200
    visitor.close()
    other.close()
