"""A portal link is created over HTTP, for one account, and only its digest is kept."""

import json
import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from typing import Any

import httpx
import psycopg
import pytest

from hookline import rfc3339
from server_process import ServerProcess

KEY = "hlk_the_key_of_these_tests"
PATH = re.compile(r"/portal/enter\?token=([A-Za-z0-9_-]{43})")
COLUMNS = "kind, key_digest, account, scopes, visit_s"


def created(service: Any, account: str, body: Any = None, **headers: str) -> dict[str, Any]:
    answer = service.call("POST", f"/v1/accounts/{account}/portal-link", body, **headers)
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    link: dict[str, Any] = answer.json()
    return link


def digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def token(link: dict[str, Any]) -> str:
    found = PATH.fullmatch(link["path"])
    assert found is not None
    return found[1]


def stored(database: str, link: dict[str, Any]) -> tuple[Any, ...]:
    """What the database has of the link, and how long it lasts."""
    key = digest(token(link))
    if database.startswith("sqlite"):
        with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as connection:
            row = connection.execute(
                f"SELECT {COLUMNS}, expires_at - created_at FROM sessions WHERE digest = ?", [key]
            ).fetchone()
        return row[0], row[1], row[2], json.loads(row[3]), row[4], round(row[5], 3)
    with psycopg.connect(database) as session:
        row = session.execute(
            f"SELECT {COLUMNS}, extract(epoch FROM expires_at - created_at) FROM hookline.sessions WHERE digest = %s",  # type: ignore[arg-type]
            [key],
        ).fetchone()
    return (*row[:5], round(float(row[5]), 3))


@pytest.mark.parametrize("body", [None, {}, {"expires_in_s": None, "visit_s": None, "may_act": None}])
def test_a_link_is_good_for_one_account_for_a_while(service, body):
    link = created(service, "acme", body)
    assert link == {
        "url": f"{service.process.url}{link['path']}",
        "path": link["path"],
        "account": "acme",
        "expires_at": link["expires_at"],
        "visit_s": 3_600,
    }
    expected = ("link", digest(KEY), "acme", ["read", "admin"], 3_600.0, 300.0)
    assert stored(service.database, link) == expected


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ({"expires_in_s": 10, "visit_s": 60, "may_act": False}, (["read"], 60.0, 10.0)),
        ({"expires_in_s": 3_600, "visit_s": 86_400, "may_act": True}, (["read", "admin"], 86_400.0, 3_600.0)),
    ],
)
def test_a_link_lasts_and_allows_what_was_asked_for(service, body, kept):
    link = created(service, "acme", body)
    assert link["visit_s"] == body["visit_s"]
    assert stored(service.database, link)[3:] == kept


def test_a_link_says_when_it_expires(service):
    first, last = (created(service, "acme", {"expires_in_s": seconds}) for seconds in (10, 3_600))
    between = rfc3339.read(last["expires_at"]) - rfc3339.read(first["expires_at"])
    assert 3_590 <= between < 3_590 + 180


def test_every_link_has_a_token_of_its_own_that_is_nowhere_kept(service):
    links = [created(service, "acme") for _ in range(3)]
    assert len({token(link) for link in links}) == 3
    for link in links:
        assert token(link) not in service.process.stderr
        if service.database.startswith("postgres"):
            with psycopg.connect(service.database) as session:
                rows = session.execute("SELECT to_jsonb(s)::text FROM hookline.sessions s").fetchall()
            assert token(link) not in str(rows)


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"expires_in_s": 9}, "invalid_field", "/expires_in_s"),
        ({"expires_in_s": 3_601}, "invalid_field", "/expires_in_s"),
        ({"expires_in_s": "300"}, "invalid_field", "/expires_in_s"),
        ({"expires_in_s": 60.5}, "invalid_field", "/expires_in_s"),
        ({"expires_in_s": True}, "invalid_field", "/expires_in_s"),
        ({"visit_s": 59}, "invalid_field", "/visit_s"),
        ({"visit_s": 86_401}, "invalid_field", "/visit_s"),
        ({"visit_s": [60]}, "invalid_field", "/visit_s"),
        ({"may_act": "no"}, "invalid_field", "/may_act"),
        ({"may_act": 0}, "invalid_field", "/may_act"),
        ({"may_acts": True}, "unknown_field", "/may_acts"),
        ({"scopes": ["publish"]}, "unknown_field", "/scopes"),
        ({"account": "other"}, "unknown_field", "/account"),
    ],
)
def test_an_invalid_order_is_refused(service, body, code, pointer):
    answer = service.call("POST", "/v1/accounts/acme/portal-link", body)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_what_is_no_account_s_name_gets_no_link(service):
    answer = service.call("POST", "/v1/accounts/a+b/portal-link")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_field")
    assert answer.json()["errors"][0]["pointer"] == "/account"


def test_a_key_of_an_account_creates_links_to_its_own_alone(service):
    made = service.call("POST", "/v1/keys", {"scopes": ["admin"], "account": "mine"}).json()["key"]
    bound = {"authorization": f"Bearer {made}"}
    link = created(service, "mine", **bound)
    assert stored(service.database, link)[1:3] == (digest(made), "mine")
    refused = service.call("POST", "/v1/accounts/other/portal-link", **bound)
    assert (refused.status_code, refused.json()["code"]) == (422, "account_mismatch")


@pytest.mark.parametrize("scope", ["publish", "read"])
def test_who_may_not_change_things_gives_nobody_the_right_to(service, scope):
    made = service.call("POST", "/v1/keys", {"scopes": [scope]}).json()["key"]
    refused = service.call(
        "POST", "/v1/accounts/acme/portal-link", {"may_act": False}, authorization=f"Bearer {made}"
    )
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("host", "begins"),
    [
        ("hooks.example.com", "http://hooks.example.com/portal/"),
        ("hooks.example.com:8443", "http://hooks.example.com:8443/portal/"),
        ("[::1]:8080", "http://[::1]:8080/portal/"),
        ("evil.example/x?", None),
        ("me@evil.example", None),
        ('a"b', None),
        ("", None),
    ],
)
def test_the_url_begins_with_the_server_as_the_request_reached_it(service, host, begins):
    link = created(service, "acme", host=host)
    assert link["url"].startswith(begins or f"{service.process.url}/portal/")
    assert link["url"].endswith(link["path"])


def test_the_setting_says_where_people_reach_the_server(tmp_path):
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_PUBLIC_URL": "https://hooks.example.com/base/"}
    with ServerProcess("--database", "sqlite:///x.db", cwd=tmp_path, env=env) as process:
        answer = httpx.post(
            f"{process.url}/v1/accounts/acme/portal-link",
            headers={"authorization": f"Bearer {KEY}"},
            trust_env=False,
        )
        assert answer.json()["url"] == f"https://hooks.example.com/base{answer.json()['path']}"
        assert process.stop() == 0


def test_in_development_mode_a_link_belongs_to_no_key(tmp_path):
    database = f"sqlite:///{tmp_path}/x.db"
    with ServerProcess("--dev", "--database", database, cwd=tmp_path) as process:
        answer = httpx.post(f"{process.url}/v1/accounts/acme/portal-link", trust_env=False)
        assert answer.status_code == 201, answer.text
        assert stored(database, answer.json())[1] == b""
        made = httpx.post(f"{process.url}/v1/keys", json={"scopes": ["admin"]}, trust_env=False).json()["key"]
        answer = httpx.post(
            f"{process.url}/v1/accounts/acme/portal-link",
            headers={"authorization": f"Bearer {made}"},
            trust_env=False,
        )
        assert stored(database, answer.json())[1] == digest(made)
        assert process.stop() == 0
