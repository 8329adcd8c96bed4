"""Keys are created, shown once and revoked over HTTP, and every process soon knows."""

import hashlib
import json
import time
from typing import Any

import httpx
import psycopg
import pytest

from server_process import ServerProcess, run

ADMIN = "hlk_the_key_of_these_tests"
UNKNOWN = "key_" + "0" * 26
EVENT = {"type": "no.such", "payload": 1}
CEILING_S = 60  # ends a test that hangs; that it takes at most 5 s is judged in tests/admin/test_key_cache.py


class Caller:
    """A server as seen with one key."""

    def __init__(self, process: ServerProcess, key: str | None = ADMIN) -> None:
        self._process = process
        self._headers = {} if key is None else {"authorization": f"Bearer {key}"}

    def __call__(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return httpx.request(
            method,
            self._process.url + path,
            json=body,
            headers=self._headers,
            timeout=30,
            trust_env=False,
        )


def assert_soon_refused(call: Any) -> None:
    began = time.monotonic()
    while call("GET", "/v1/endpoints").status_code != 401:
        assert time.monotonic() - began < CEILING_S
        time.sleep(0.01)


def made(service: Any, **fields: Any) -> dict[str, Any]:
    answer = service.call("POST", "/v1/keys", {"scopes": ["admin"], **fields})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/v1/keys/{answer.json()['id']}"
    assert answer.headers["cache-control"] == "no-store"
    key: dict[str, Any] = answer.json()
    return key


def test_a_key_is_shown_once_and_nowhere_kept(service):
    created = made(service, name="shop", scopes=["read", "publish"], account="acme")
    key = created.pop("key")
    assert created == {
        "id": created["id"],
        "name": "shop",
        "hint": key[:8],
        "scopes": ["publish", "read"],
        "account": "acme",
        "created_at": created["created_at"],
        "revoked_at": None,
    }
    assert service.call("GET", f"/v1/keys/{created['id']}").json() == created
    listed = service.call("GET", "/v1/keys?limit=200")
    assert created in listed.json()["data"]
    digest = hashlib.sha256(key.encode()).hexdigest()
    assert key[8:] not in listed.text
    assert digest not in listed.text
    if service.database.startswith("postgres"):
        with psycopg.connect(service.database) as session:
            [[row]] = session.execute(
                "SELECT to_jsonb(k)::text FROM hookline.keys k WHERE name = 'shop'"
            ).fetchall()
        assert digest in row
        assert key[8:] not in row


def test_keys_are_listed_newest_first_page_by_page(service):
    created = [made(service)["id"] for _ in range(3)]
    seen, query = [], "?limit=2"
    while query:
        page = service.call("GET", f"/v1/keys{query}").json()
        seen += [key["id"] for key in page["data"]]
        query = page["next_cursor"] and f"?limit=2&cursor={page['next_cursor']}"
    assert seen[:3] == created[::-1]
    assert seen == sorted(seen, reverse=True)


def test_a_key_is_good_at_once_where_it_was_made_and_useless_at_once_where_it_was_revoked(service):
    created = made(service)
    own = Caller(service.process, created["key"])
    assert own("GET", "/v1/endpoints").status_code == 200
    assert own("POST", "/v1/events", EVENT).status_code == 202
    for _ in range(2):
        assert service.call("DELETE", f"/v1/keys/{created['id']}").status_code == 204
        assert own("GET", "/v1/endpoints").status_code == 401
        assert own("POST", "/v1/events", EVENT).status_code == 401
    assert service.call("GET", f"/v1/keys/{created['id']}").json()["revoked_at"] is not None


def test_a_key_may_end_itself(service):
    created = made(service)
    own = Caller(service.process, created["key"])
    assert own("DELETE", f"/v1/keys/{created['id']}").status_code == 204
    assert own("GET", "/v1/endpoints").status_code == 401


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({}, "invalid_field", "/scopes"),
        ({"scopes": []}, "invalid_field", "/scopes"),
        ({"scopes": ["write"]}, "invalid_field", "/scopes/0"),
        ({"scopes": ["read"], "name": 5}, "invalid_field", "/name"),
        ({"scopes": ["read"], "account": "a b"}, "invalid_field", "/account"),
        ({"scopes": ["read"], "scope": "read"}, "unknown_field", "/scope"),
        ({"scopes": ["read"], "key": "hlk_mine"}, "unknown_field", "/key"),
    ],
)
def test_what_will_not_do_makes_no_key(service, body, code, pointer):
    before = service.call("GET", "/v1/keys").json()
    answer = service.call("POST", "/v1/keys", body)
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["errors"][0]["pointer"]) == (422, code, pointer)
    assert service.call("GET", "/v1/keys").json() == before


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("id", [UNKNOWN, "key_x", "ep_" + "0" * 26])
def test_a_key_that_is_not_there_is_not_found(service, method, id):
    assert service.call(method, f"/v1/keys/{id}").status_code == 404


def test_unknown_keys_do_not_keep_others_waiting(service):
    """Each one waits for a read of the store, of which there are at most ten a second; good keys do not wait."""
    good = Caller(service.process, made(service)["key"])
    assert good("GET", "/v1/endpoints").status_code == 200
    for n in range(20):
        assert Caller(service.process, f"hlk_guess{n}")("GET", "/v1/endpoints").status_code == 401
        assert good("GET", "/v1/endpoints").status_code == 200


# --- more than one process ---


def test_what_one_server_makes_and_revokes_another_knows(postgres_server, tmp_path):
    env = {"HOOKLINE_API_KEY": ADMIN, "HOOKLINE_DRAIN_S": "60"}
    with (
        postgres_server.fresh_database() as url,
        ServerProcess("--database", url, cwd=tmp_path, env=env) as one,
        ServerProcess("--database", url, cwd=tmp_path, env=env) as two,
    ):
        for _ in range(5):  # never a moment too early
            created = Caller(one)("POST", "/v1/keys", {"scopes": ["admin"]}).json()
            there = Caller(two, created["key"])
            assert there("GET", "/v1/endpoints").status_code == 200
        assert there("POST", "/v1/events", EVENT).status_code == 202
        cursor = Caller(one)("GET", "/v1/keys?limit=1").json()["next_cursor"]
        assert there("GET", f"/v1/keys?limit=1&cursor={cursor}").status_code == 200
        assert Caller(one)("DELETE", f"/v1/keys/{created['id']}").status_code == 204
        assert_soon_refused(there)
        assert there("POST", "/v1/events", EVENT).status_code == 401


def test_keys_made_and_revoked_from_a_shell_count_beside_a_running_server(tmp_path):
    with ServerProcess(
        "--database", "sqlite:///x.db", cwd=tmp_path, env={"HOOKLINE_DRAIN_S": "60"}
    ) as process:
        for _ in range(3):
            done = run(
                "keys", "create", "--scope", "read", "--json", "--database", "sqlite:///x.db", cwd=tmp_path
            )
            created = json.loads(done.stdout)
            call = Caller(process, created["key"])
            assert call("GET", "/v1/endpoints").status_code == 200
        assert call("POST", "/v1/events", EVENT).status_code == 403
        gone = run("keys", "revoke", created["id"], "--yes", "--database", "sqlite:///x.db", cwd=tmp_path)
        assert gone.returncode == 0, gone.stderr
        assert_soon_refused(call)
        assert process.stop() == 0


def test_a_stored_key_is_good_for_what_it_was_made_for_also_where_the_settings_name_it(tmp_path):
    done = run("keys", "create", "--scope", "publish", "--database", "sqlite:///x.db", cwd=tmp_path)
    key = done.stdout.strip()
    env = {"HOOKLINE_API_KEY": key, "HOOKLINE_DRAIN_S": "60"}
    with ServerProcess("--database", "sqlite:///x.db", cwd=tmp_path, env=env) as process:
        call = Caller(process, key)
        deadline = time.monotonic() + 120
        while call("GET", "/v1/endpoints").status_code != 403:
            assert time.monotonic() < deadline
        assert call("POST", "/v1/events", EVENT).status_code == 202
        [listed] = json.loads(
            run("keys", "list", "--json", "--database", "sqlite:///x.db", cwd=tmp_path).stdout
        )
        run("keys", "revoke", listed["id"], "--yes", "--database", "sqlite:///x.db", cwd=tmp_path)
        assert_soon_refused(call)
        assert process.stop() == 0


def test_while_the_database_is_away_nobody_is_told_that_a_good_key_is_not(mortal_server, tmp_path):
    env = {"HOOKLINE_API_KEY": ADMIN, "HOOKLINE_DRAIN_S": "60"}
    with (
        mortal_server.fresh_database() as database,
        ServerProcess("--database", database, cwd=tmp_path, env=env) as process,
    ):
        stored = Caller(process, Caller(process)("POST", "/v1/keys", {"scopes": ["admin"]}).json()["key"])
        assert stored("POST", "/v1/events", EVENT).status_code == 202
        mortal_server.kill()
        began = time.monotonic()
        while time.monotonic() - began < 6:  # past the time for which the copy is trusted
            for caller in (stored, Caller(process)):
                assert caller("POST", "/v1/events", EVENT).status_code == 503
        unknown = Caller(process, "hlk_unknown")("GET", "/v1/endpoints")
        assert (unknown.status_code, unknown.headers["retry-after"]) == (503, "1")
        assert Caller(process, None)("GET", "/v1/endpoints").status_code == 401
        mortal_server.start()
        deadline = time.monotonic() + 120
        while stored("POST", "/v1/events", EVENT).status_code != 202:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert process.stop() == 0


# --- development mode ---


def test_in_development_mode_a_key_that_is_given_counts(tmp_path):
    with ServerProcess("--dev", "--database", "sqlite:///x.db", cwd=tmp_path) as process:
        anybody = Caller(process, None)
        created = anybody("POST", "/v1/keys", {"scopes": ["read"], "account": "acme"}).json()
        assert Caller(process, created["key"])("POST", "/v1/events", EVENT).status_code == 403
        assert anybody("POST", "/v1/events", EVENT).status_code == 202
        assert Caller(process, "hlk_wrong")("GET", "/v1/endpoints").status_code == 401
        assert anybody("DELETE", f"/v1/keys/{created['id']}").status_code == 204
        assert Caller(process, created["key"])("GET", "/v1/endpoints").status_code == 401
        assert process.stop() == 0
