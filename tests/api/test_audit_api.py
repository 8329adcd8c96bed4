"""Who changed what, when and from where: every call that changes something leaves one entry, and a refused one none.

The table below has a row for every call that changes something or shows a secret. A call without one fails the first
test: whoever adds a call decides here what is told of it.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from answering import Receiver, eventually, receiving
from hookline.api.routes import table
from hookline.app import Hookline
from hookline.config import Settings
from hookline.model import AuditAction
from refused_rows import add_refused_row
from tests.api.conftest import Service

NOT_TOLD = "it publishes, and changes nothing that somebody manages"
BY_CALL = {
    "POST /v1/events": NOT_TOLD,
    "POST /v1/events/batch": NOT_TOLD,
    "POST /v1/endpoints/{endpoint_id}/test": NOT_TOLD,
    "POST /v1/accounts/{account}/test-alert": NOT_TOLD,
    "POST /v1/events/{event_id}/replay": "event.replayed",
    "POST /v1/endpoints": "endpoint.created",
    "PATCH /v1/endpoints/{endpoint_id}": "endpoint.updated",
    "DELETE /v1/endpoints/{endpoint_id}": "endpoint.deleted",
    "POST /v1/endpoints/{endpoint_id}/disable": "endpoint.disabled",
    "POST /v1/endpoints/{endpoint_id}/enable": "endpoint.enabled",
    "POST /v1/endpoints/{endpoint_id}/pause": "endpoint.paused",
    "POST /v1/endpoints/{endpoint_id}/resume": "endpoint.resumed",
    "POST /v1/endpoints/{endpoint_id}/circuit/reset": "circuit.reset",
    "GET /v1/endpoints/{endpoint_id}/secret": "secret.revealed",
    "POST /v1/endpoints/{endpoint_id}/secret/rotate": "secret.rotated",
    "POST /v1/deliveries/{delivery_id}/retry": "delivery.retried",
    "POST /v1/deliveries/{delivery_id}/cancel": "delivery.cancelled",
    "POST /v1/dead-letters/{delivery_id}/replay": "delivery.replayed",
    "POST /v1/dead-letters/{delivery_id}/discard": "delivery.discarded",
    "POST /v1/replays": "dead_letters.replayed",
    "POST /v1/discards": "dead_letters.discarded",
    "POST /v1/outbox/refused/{row_id}/retry": "outbox_row.retried",
    "POST /v1/outbox/refused/{row_id}/discard": "outbox_row.discarded",
    "PUT /v1/event-types/{name}": "event_type.put",
    "DELETE /v1/event-types/{name}": "event_type.deleted",
    "PUT /v1/accounts/{account}": "account.updated",
    "POST /v1/accounts/{account}/portal-link": "portal_link.created",
    "POST /v1/keys": "key.created",
    "DELETE /v1/keys/{key_id}": "key.revoked",
}
ELSEWHERE = {
    "secrets.sealed",
    "secrets.unsealed",
    "events.pruned",
    "outbox.forgotten",
}  # by commands: tests/cli/test_audit_command.py
SECRET = "s3cret-of-somebody"
UNKNOWN = {
    "account": "x" * 65,
    "delivery_id": "dlv_" + "0" * 26,
    "endpoint_id": "ep_" + "0" * 26,
    "event_id": "evt_" + "0" * 26,
    "key_id": "key_" + "0" * 26,
    "name": "no-such-type",
    "row_id": "evt_" + "0" * 26,
}


def test_every_call_that_changes_something_is_in_the_table_above():
    calls = table(Hookline("sqlite:///unused.db", settings=Settings(dev=True)))
    assert BY_CALL.keys() == {
        f"{call.method} {call.path}"
        for call in calls
        if call.method != "GET" or call.path.endswith("/secret")
    }
    assert {action for action in BY_CALL.values() if action != NOT_TOLD} | ELSEWHERE == set(AuditAction)


class Setting:
    """A server, and a receiver that refuses."""

    def __init__(self, service: Service, receiver: Receiver) -> None:
        self.service = service
        self.receiver = receiver

    def trail(self, **query: str) -> list[dict[str, Any]]:
        """The newest entries."""
        given = "&".join(f"{name}={value}" for name, value in query.items())
        answer = self.service.call("GET", f"/v1/audit?limit=200&{given}")
        assert answer.status_code == 200, answer.text
        entries: list[dict[str, Any]] = answer.json()["data"]
        return entries

    def since(self, last: str | None) -> list[dict[str, Any]]:
        """What was written after the entry with this id."""
        entries = self.trail()
        ids = [entry["id"] for entry in entries]
        return entries[: ids.index(last)] if last is not None else entries

    def last(self) -> str | None:
        return next((entry["id"] for entry in self.trail()), None)

    def told(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Make a call, which must succeed; the one entry that tells of it."""
        before = self.last()
        answer = self.service.call(method, path, body)
        assert answer.is_success, answer.text
        [entry] = self.since(before)
        assert entry["request_id"] == answer.headers["request-id"]
        return entry

    def endpoint(self, **fields: Any) -> str:
        id: str = self.service.create(account="acme", **{"events": ["no.such"], **fields})["id"]
        return id

    def delivery(self, state: str) -> tuple[str, str]:
        """A delivery in this state, and its event."""
        endpoint = self.endpoint(url=self.receiver.url + "/404", events=["of.audit"])
        if state == "pending":
            self.service.call("POST", f"/v1/endpoints/{endpoint}/pause")
        event = self.service.publish("of.audit", account="acme")["id"]
        path = f"/v1/deliveries?event_id={event}&endpoint_id={endpoint}&state={state}"
        [delivery] = eventually(lambda: self.service.call("GET", path).json()["data"] or None)
        self.service.call("PATCH", f"/v1/endpoints/{endpoint}", {"events": ["no.such"]})
        return delivery["id"], event


@pytest.fixture(scope="module")
def setting(service: Service) -> Iterator[Setting]:
    with receiving() as receiver:
        yield Setting(service, receiver)


def on_endpoint(verb: str, *before: str) -> Callable[[Setting], tuple[str, Any]]:
    def prepared(setting: Setting) -> tuple[str, Any]:
        id = setting.endpoint()
        for each in before:
            setting.service.call("POST", f"/v1/endpoints/{id}/{each}")
        return f"/v1/endpoints/{id}{verb}", None

    return prepared


def on_delivery(path: str, state: str) -> Callable[[Setting], tuple[str, Any]]:
    return lambda setting: (path.format(setting.delivery(state)[0]), None)


def on_refused_row(verb: str) -> Callable[[Setting], tuple[str, Any]]:
    def prepared(setting: Setting) -> tuple[str, Any]:
        id = add_refused_row(setting.service.database, account="acme", type="of.audit")
        return f"/v1/outbox/refused/{id}/{verb}", None

    return prepared


def of_a_type(setting: Setting) -> tuple[str, Any]:
    setting.service.call("PUT", "/v1/event-types/audit.gone", {"description": "soon gone"})
    return "/v1/event-types/audit.gone", None


def of_a_key(setting: Setting) -> tuple[str, Any]:
    made = setting.service.call("POST", "/v1/keys", {"scopes": ["read"], "account": "acme"}).json()
    return f"/v1/keys/{made['id']}", None


# What each call is made with.
READY: dict[str, Callable[[Setting], tuple[str, Any]]] = {
    "POST /v1/events/{event_id}/replay": lambda s: (f"/v1/events/{s.delivery('dead')[1]}/replay", None),
    "POST /v1/endpoints": lambda _: (
        "/v1/endpoints",
        {"url": "https://new.example/", "events": ["a.b"], "account": "acme"},
    ),
    "PATCH /v1/endpoints/{endpoint_id}": lambda s: (f"/v1/endpoints/{s.endpoint()}", {"events": ["a.b"]}),
    "DELETE /v1/endpoints/{endpoint_id}": on_endpoint(""),
    "POST /v1/endpoints/{endpoint_id}/disable": on_endpoint("/disable"),
    "POST /v1/endpoints/{endpoint_id}/enable": on_endpoint("/enable", "disable"),
    "POST /v1/endpoints/{endpoint_id}/pause": on_endpoint("/pause"),
    "POST /v1/endpoints/{endpoint_id}/resume": on_endpoint("/resume", "pause"),
    "POST /v1/endpoints/{endpoint_id}/circuit/reset": on_endpoint("/circuit/reset"),
    "GET /v1/endpoints/{endpoint_id}/secret": on_endpoint("/secret"),
    "POST /v1/endpoints/{endpoint_id}/secret/rotate": on_endpoint("/secret/rotate"),
    "POST /v1/deliveries/{delivery_id}/retry": on_delivery("/v1/deliveries/{}/retry", "pending"),
    "POST /v1/deliveries/{delivery_id}/cancel": on_delivery("/v1/deliveries/{}/cancel", "pending"),
    "POST /v1/dead-letters/{delivery_id}/replay": on_delivery("/v1/dead-letters/{}/replay", "dead"),
    "POST /v1/dead-letters/{delivery_id}/discard": on_delivery("/v1/dead-letters/{}/discard", "dead"),
    "POST /v1/replays": lambda _: ("/v1/replays", {"filter": {"account": "acme", "event_type": "no.such"}}),
    "POST /v1/discards": lambda _: ("/v1/discards", {"filter": {"account": "acme", "event_type": "no.such"}}),
    "POST /v1/outbox/refused/{row_id}/retry": on_refused_row("retry"),
    "POST /v1/outbox/refused/{row_id}/discard": on_refused_row("discard"),
    "PUT /v1/event-types/{name}": lambda _: ("/v1/event-types/audit.new", {"description": "new"}),
    "DELETE /v1/event-types/{name}": of_a_type,
    "PUT /v1/accounts/{account}": lambda _: ("/v1/accounts/acme", {"notify": {"email": "a@b.example"}}),
    "POST /v1/accounts/{account}/portal-link": lambda _: ("/v1/accounts/acme/portal-link", None),
    "POST /v1/keys": lambda _: ("/v1/keys", {"scopes": ["read"], "account": "acme"}),
    "DELETE /v1/keys/{key_id}": of_a_key,
}


@pytest.mark.parametrize("call", [call for call, action in BY_CALL.items() if action != NOT_TOLD])
def test_a_call_that_changes_something_leaves_one_entry(setting, call):
    path, body = READY[call](setting)
    entry = setting.told(call.split()[0], path, body)
    assert entry["action"] == BY_CALL[call]
    assert entry["account"] == (None if "event-types" in call else "acme")
    assert entry["actor"] == {
        "kind": "settings_key",
        "key_id": None,
        "name": "HOOKLINE_API_KEY",
        "hint": None,
    }
    assert (entry["via"], entry["address"]) == ("api", "127.0.0.1")


@pytest.mark.parametrize("call", [call for call, action in BY_CALL.items() if action != NOT_TOLD])
def test_a_refused_call_leaves_none(setting, call):
    method, path = call.split()
    reader = setting.service.call("POST", "/v1/keys", {"scopes": ["read"]}).json()["key"]
    good, body = READY[call](setting)
    before = setting.last()
    assert setting.service.call(method, good, body, authorization=f"Bearer {reader}").status_code == 403
    if body is not None:
        assert setting.service.call(method, good, {**body, "no_such": 1}).status_code == 422
    if "{" in path:
        assert setting.service.call(method, path.format_map(UNKNOWN), body).status_code in (404, 422)
    assert setting.since(before) == []


def test_what_changes_nothing_is_not_told(setting):
    id = setting.endpoint()
    setting.service.call("PUT", "/v1/event-types/audit.same", {"description": "d", "schema": {"a": 1}})
    setting.service.call("PUT", "/v1/accounts/audit-same", {"notify": {"slack": "https://a.example/1"}})
    before = setting.last()
    for method, path, body in (
        ("PATCH", f"/v1/endpoints/{id}", {}),
        ("PATCH", f"/v1/endpoints/{id}", {"events": ["no.such"], "paused": False, "description": None}),
        ("POST", f"/v1/endpoints/{id}/enable", None),
        ("POST", f"/v1/endpoints/{id}/resume", None),
        ("PUT", "/v1/event-types/audit.same", {"description": "d", "schema": {"a": 1}}),
        ("PUT", "/v1/accounts/audit-same", {"notify": {"slack": "https://a.example/***"}}),
        ("POST", "/v1/replays", {"filter": {"event_type": "a.b"}, "dry_run": True}),
        ("GET", "/v1/keys", None),
        ("GET", f"/v1/endpoints/{id}", None),
        ("POST", "/v1/events", {"type": "no.such", "payload": 1}),
        ("POST", f"/v1/endpoints/{id}/test", None),
    ):
        assert setting.service.call(method, path, body).is_success, path
    assert setting.since(before) == []


def test_a_key_is_revoked_once(setting):
    path, _ = of_a_key(setting)
    setting.told("DELETE", path)
    before = setting.last()
    assert setting.service.call("DELETE", path).status_code == 204
    assert setting.since(before) == []


def test_a_job_is_told_once_however_often_it_is_asked_for(setting):
    order = {"filter": {"account": "acme", "event_type": "no.such", "since": "2026-01-31T12:00:00Z"}}
    before = setting.last()
    jobs = [setting.service.call("POST", "/v1/replays", order, idempotency_key="once") for _ in range(3)]
    [entry] = setting.since(before)
    assert entry["subject"] == {"kind": "replay", "id": jobs[0].json()["id"]}
    assert entry["changes"] == {
        "account": [None, "acme"],
        "event_type": [None, "no.such"],
        "since": [None, "2026-01-31T12:00:00.000000Z"],
    }


def test_an_entry_names_what_changed(setting):
    id = setting.endpoint(description="old", timeout_ms=5_000)
    change = {"description": "new", "timeout_ms": 6_000, "rate_limit": {"per_second": 5, "burst": 2}}
    entry = setting.told("PATCH", f"/v1/endpoints/{id}", change)
    assert entry["subject"] == {"kind": "endpoint", "id": id}
    assert entry["changes"] == {
        "description": ["old", "new"],
        "timeout_ms": [5_000, 6_000],
        "rate_limit": [None, {"per_second": 5.0, "burst": 2}],
    }
    assert entry["truncated"] is False


def test_an_entry_of_many_large_changes_is_cut_and_says_so(setting):
    id = setting.endpoint()
    entry = setting.told(
        "PATCH", f"/v1/endpoints/{id}", {"metadata": {f"k{n}": "v" * 500 for n in range(20)}}
    )
    assert entry["truncated"] is True
    assert len(json.dumps(entry["changes"])) < 4_096


def stored(database: str) -> str:
    """The whole table as text, read from the database itself."""
    if database.startswith("sqlite"):
        with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
            found = str(connection.execute("SELECT * FROM audit").fetchall())
        connection.close()
        return found
    with psycopg.connect(database) as session:
        return str(session.execute("SELECT to_jsonb(a)::text FROM hookline.audit a").fetchall())


def test_no_secret_gets_into_the_trail(setting):
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    service = setting.service
    id = setting.endpoint(secret=secret, headers={"x-key": SECRET})
    new = service.call("POST", f"/v1/endpoints/{id}/secret/rotate").json()["secret"]
    service.call("GET", f"/v1/endpoints/{id}/secret")
    changed = setting.told("PATCH", f"/v1/endpoints/{id}", {"headers": {"x-key": SECRET + "2"}})
    assert changed["changes"] == {"headers": [{"x-key": "***"}, {"x-key": "***"}]}
    hook = {"webhook": f"https://a.example/{SECRET}", "slack": f"https://b.example/{SECRET}"}
    account = setting.told("PUT", "/v1/accounts/audit-secret", {"notify": hook})
    assert account["changes"] == {
        "webhook": [None, "https://a.example/***"],
        "slack": [None, "https://b.example/***"],
    }
    key = service.call("POST", "/v1/keys", {"scopes": ["read"], "name": "shop"}).json()["key"]
    link = service.call("POST", "/v1/accounts/acme/portal-link").json()
    service.call("DELETE", f"/v1/endpoints/{id}")
    trail = stored(service.database)
    for word in (SECRET, secret, new, key, link["path"].partition("=")[2]):
        assert word not in trail
    assert key[:8] in trail


def test_a_secret_is_not_shown_when_that_cannot_be_told(setting):
    """The trail is a table like the others: what keeps it from being written keeps the secret back."""
    id = setting.endpoint()
    secret = setting.service.call("GET", f"/v1/endpoints/{id}/secret").json()["secret"]
    with without_trail(setting.service.database):
        answer = setting.service.call("GET", f"/v1/endpoints/{id}/secret")
    assert answer.status_code >= 500
    assert secret not in answer.text


class without_trail:
    """The table of entries is away for a while."""

    def __init__(self, database: str) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._run("ALTER TABLE {}audit RENAME TO audit_away")

    def __exit__(self, *_: object) -> None:
        self._run("ALTER TABLE {}audit_away RENAME TO audit")

    def _run(self, statement: str) -> None:
        if self._database.startswith("sqlite"):
            with sqlite3.connect(self._database.removeprefix("sqlite:///"), timeout=60) as connection:
                connection.execute(statement.format(""))
            connection.close()
        else:
            with psycopg.connect(self._database) as session:
                session.execute(statement.format("hookline."))


def test_a_stored_key_is_named_and_a_proxy_s_word_is_not_taken(setting):
    made = setting.service.call("POST", "/v1/keys", {"scopes": ["admin"], "name": "night shift"}).json()
    id = setting.endpoint()
    before = setting.last()
    forged = {"x_forwarded_for": "203.0.113.9", "forwarded": "for=203.0.113.9"}
    answer = setting.service.call(
        "POST", f"/v1/endpoints/{id}/pause", authorization=f"Bearer {made['key']}", **forged
    )
    assert answer.status_code == 200
    [entry] = setting.since(before)
    assert entry["actor"] == {
        "kind": "key",
        "key_id": made["id"],
        "name": "night shift",
        "hint": made["hint"],
    }
    assert entry["address"] == "127.0.0.1"
    assert [each["id"] for each in setting.trail(actor=made["id"])] == [entry["id"]]


def test_an_account_sees_what_was_done_to_its_things_but_not_who_of_the_operators_did_it(setting):
    service = setting.service
    service.create(account="birch", events=["no.such"])
    own = service.call("POST", "/v1/keys", {"scopes": ["admin"], "account": "birch", "name": "ours"}).json()
    theirs = service.call("POST", "/v1/keys", {"scopes": ["admin"], "name": "of an operator"}).json()

    def call(method: str, path: str, body: Any = None, *, key: dict[str, Any]) -> Any:
        answer = service.call(method, path, body, authorization=f"Bearer {key['key']}")
        assert answer.is_success, answer.text
        return answer.json()

    call("PUT", "/v1/accounts/birch", {"notify": {"email": "a@b.example"}}, key=theirs)
    call("PUT", "/v1/accounts/birch", {"notify": {}}, key=own)
    shown = call("GET", "/v1/audit", key=own)["data"]
    assert [(entry["action"], entry["account"]) for entry in shown] == [
        ("account.updated", "birch"),
        ("account.updated", "birch"),
        ("key.created", "birch"),
        ("endpoint.created", "birch"),
    ]
    nobody = {"key_id": None, "name": None, "hint": None}
    assert shown[0]["actor"] == {"kind": "key", "key_id": own["id"], "name": "ours", "hint": own["hint"]}
    assert shown[0]["address"] == "127.0.0.1"
    assert [entry["actor"] | {"kind": ""} for entry in shown[1:]] == [{**nobody, "kind": ""}] * 3
    assert [entry["address"] for entry in shown[1:]] == [None] * 3
    # Nor can it be asked whose key it was.
    assert call("GET", f"/v1/audit?actor={theirs['id']}", key=own)["data"] == []
    assert len(call("GET", f"/v1/audit?actor={own['id']}", key=own)["data"]) == 1
    assert len(setting.trail(actor=theirs["id"], account="birch")) == 1


def test_entries_are_found_by_account_action_subject_and_time(setting):
    id = setting.endpoint()
    entry = setting.told("POST", f"/v1/endpoints/{id}/pause")
    assert [each["action"] for each in setting.trail(subject=id)] == ["endpoint.paused", "endpoint.created"]
    assert setting.trail(subject=id, action="endpoint.paused", account="acme") == [entry]
    assert setting.trail(subject=id, account="other") == []
    assert setting.trail(subject=id, since="2100-01-01T00:00:00Z") == []
    assert len(setting.trail(subject=id, until="2100-01-01T00:00:00Z")) == 2
    page = setting.service.call("GET", f"/v1/audit?subject={id}&limit=1").json()
    assert page["data"] == [entry]
    path = f"/v1/audit?subject={id}&limit=1&cursor={page['next_cursor']}"
    rest = setting.service.call("GET", path).json()
    assert ([each["action"] for each in rest["data"]], rest["next_cursor"]) == (["endpoint.created"], None)


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ("action=endpoint.eaten", "invalid_parameter", "action"),
        ("subject=%00", "invalid_parameter", "subject"),
        ("subject=", "invalid_parameter", "subject"),
        ("actor=ep_00000000000000000000000000", "invalid_parameter", "actor"),
        ("actor=night", "invalid_parameter", "actor"),
        ("since=yesterday", "invalid_parameter", "since"),
        ("account=no%20account", "invalid_parameter", "account"),
        ("limit=0", "invalid_parameter", "limit"),
        ("cursor=x", "invalid_cursor", "cursor"),
        ("actors=key_1", "unknown_parameter", "actors"),
    ],
)
def test_a_bad_filter_is_refused_by_its_name(setting, query, code, pointer):
    answer = setting.service.call("GET", f"/v1/audit?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
