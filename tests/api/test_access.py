"""Which key may make which call, and whose data the call reaches.

The table below has a row for every call. A call without one fails the first test: whoever adds a call decides here
who may make it.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from answering import eventually, receiving
from hookline.api.calls.docs import SAMPLES, VIEWER
from hookline.api.routes import table
from hookline.app import Hookline
from hookline.config import Settings
from refused_rows import add_refused_row

# What a key that is bound to an account gets:
ALIKE = "what everybody gets: nothing in it is any account's"
REFUSED = "403: the call is about all accounts"
LISTED = "a list of what is its own; naming another account is refused"
BY_ID = "what is its own; another account's id is not found, like one that is not there"
GIVEN = "what it says becomes its own; naming another account is refused"
NAMED = "its own account; naming another is refused"
MINDED = "its own; tested one by one below"

CALLS = {
    "GET /healthz": ("open", ALIKE),
    "GET /readyz": ("open", ALIKE),
    "POST /v1/events": ("publish", GIVEN),
    "POST /v1/events/batch": ("publish", MINDED),
    "GET /v1/events": ("read", LISTED),
    "GET /v1/events/{event_id}": ("read", BY_ID),
    "GET /v1/events/{event_id}/deliveries": ("read", BY_ID),
    "GET /v1/events/{event_id}/attempts": ("read", BY_ID),
    "POST /v1/events/{event_id}/replay": ("admin", BY_ID),
    "GET /v1/endpoints": ("read", LISTED),
    "POST /v1/endpoints": ("admin", GIVEN),
    "GET /v1/endpoints/{endpoint_id}": ("read", BY_ID),
    "PATCH /v1/endpoints/{endpoint_id}": ("admin", BY_ID),
    "DELETE /v1/endpoints/{endpoint_id}": ("admin", BY_ID),
    "POST /v1/endpoints/{endpoint_id}/enable": ("admin", BY_ID),
    "POST /v1/endpoints/{endpoint_id}/disable": ("admin", BY_ID),
    "POST /v1/endpoints/{endpoint_id}/pause": ("admin", BY_ID),
    "POST /v1/endpoints/{endpoint_id}/resume": ("admin", BY_ID),
    "POST /v1/endpoints/{endpoint_id}/circuit/reset": ("admin", BY_ID),
    "GET /v1/endpoints/{endpoint_id}/stats": ("read", BY_ID),
    "GET /v1/endpoints/{endpoint_id}/deliveries": ("read", BY_ID),
    "GET /v1/endpoints/{endpoint_id}/secret": ("admin", BY_ID),
    "POST /v1/endpoints/{endpoint_id}/secret/rotate": ("admin", BY_ID),
    "POST /v1/endpoints/{endpoint_id}/test": ("admin", BY_ID),
    "GET /v1/deliveries": ("read", LISTED),
    "GET /v1/deliveries/{delivery_id}": ("read", BY_ID),
    "GET /v1/deliveries/{delivery_id}/attempts": ("read", BY_ID),
    "POST /v1/deliveries/{delivery_id}/retry": ("admin", BY_ID),
    "POST /v1/deliveries/{delivery_id}/cancel": ("admin", BY_ID),
    "GET /v1/dead-letters": ("read", LISTED),
    "GET /v1/dead-letters/analysis": ("read", MINDED),
    "POST /v1/dead-letters/{delivery_id}/replay": ("admin", BY_ID),
    "POST /v1/dead-letters/{delivery_id}/discard": ("admin", BY_ID),
    "GET /v1/replays": ("read", MINDED),
    "POST /v1/replays": ("admin", MINDED),
    "GET /v1/replays/{replay_id}": ("read", BY_ID),
    "GET /v1/discards": ("read", MINDED),
    "POST /v1/discards": ("admin", MINDED),
    "GET /v1/discards/{discard_id}": ("read", BY_ID),
    "GET /v1/event-types": ("read", ALIKE),
    "GET /v1/event-types/{name}": ("read", ALIKE),
    "PUT /v1/event-types/{name}": ("admin", REFUSED),
    "DELETE /v1/event-types/{name}": ("admin", REFUSED),
    "GET /v1/accounts/{account}": ("read", NAMED),
    "PUT /v1/accounts/{account}": ("admin", NAMED),
    "POST /v1/accounts/{account}/test-alert": ("admin", NAMED),
    "POST /v1/accounts/{account}/portal-link": ("admin", NAMED),
    "GET /openapi.json": ("read", ALIKE),
    "GET /docs": ("read", ALIKE),
    f"GET /docs/{VIEWER}": ("read", ALIKE),
    f"GET /docs/{SAMPLES}": ("read", ALIKE),
    "GET /v1/alerts": ("read", MINDED),
    "GET /v1/workers": ("read", REFUSED),
    "GET /v1/audit": ("admin", LISTED),
    "GET /v1/outbox": ("read", REFUSED),
    "GET /v1/outbox/refused": ("read", LISTED),
    "GET /v1/outbox/refused/{row_id}": ("read", BY_ID),
    "POST /v1/outbox/refused/{row_id}/retry": ("admin", BY_ID),
    "POST /v1/outbox/refused/{row_id}/discard": ("admin", BY_ID),
    "GET /v1/ids/{prefix}": ("read", MINDED),
    "GET /v1/health": ("read", MINDED),
    "GET /v1/status": ("read", MINDED),
    "GET /v1/conservation": ("read", MINDED),
    "GET /metrics": ("read", REFUSED),
    "GET /v1/keys": ("admin", REFUSED),
    "POST /v1/keys": ("admin", REFUSED),
    "GET /v1/keys/{key_id}": ("admin", REFUSED),
    "DELETE /v1/keys/{key_id}": ("admin", REFUSED),
}
PREFIXES = {
    "event": "evt_",
    "endpoint": "ep_",
    "delivery": "dlv_",
    "replay": "rpl_",
    "discard": "dsc_",
    "key": "key_",
    "row": "evt_",
}
UNKNOWN = {noun: prefix + "0" * 26 for noun, prefix in PREFIXES.items()}
INCLUDED = {"publish": {"publish"}, "read": {"read"}, "admin": {"publish", "read", "admin"}}

REAL = {
    f"{call.method} {call.path}": call
    for call in table(Hookline("sqlite:///unused.db", settings=Settings(dev=True)))
}


def of(*kinds: str) -> list[str]:
    return [call for call, (_, kind) in CALLS.items() if kind in kinds]


def test_every_call_is_in_the_table_above_with_its_scope():
    assert {call: scope for call, (scope, _) in CALLS.items()} == {
        name: call.scope.value for name, call in REAL.items()
    }


class Things(NamedTuple):
    """One of each thing that an account may own."""

    account: str
    ids: dict[str, str]  # by noun


class Setting:
    """A server with two accounts, and keys of all kinds."""

    def __init__(self, service: Any, receiver: Any) -> None:
        self.service = service
        self.receiver = receiver
        self.keys = {scope: self.key([scope]) for scope in INCLUDED}
        self.mine = self.things("mine")
        self.other = self.things("other")
        self.bound = self.key(["admin"], account="mine")
        revoked = service.call("POST", "/v1/keys", {"scopes": ["admin"]}).json()
        assert service.call("DELETE", f"/v1/keys/{revoked['id']}").status_code == 204
        self.revoked = revoked["key"]

    def key(self, scopes: list[str], **fields: str) -> str:
        answer = self.service.call("POST", "/v1/keys", {"scopes": scopes, **fields})
        assert answer.status_code == 201, answer.text
        key: str = answer.json()["key"]
        return key

    def things(self, account: str) -> Things:
        endpoint = self.service.create(account=account, url=self.receiver.url + "/404", events=["*"])["id"]
        event = self.service.publish(account=account)["id"]
        delivery = "dlv_" + event.removeprefix("evt_")
        eventually(lambda: self.state(delivery) == "dead" or None)
        ids = {"endpoint": endpoint, "event": event, "delivery": delivery}
        for noun in ("replay", "discard"):
            key = self.key(["admin"], account=account)
            order = {"filter": {"event_type": "no.such"}}
            id = ids[noun] = self.call(f"POST /v1/{noun}s", key, order).json()["id"]
            eventually(
                lambda call=f"/v1/{noun}s/{id}": self.is_done(call) or None
            )  # what is shown of it stays the same
        ids["row"] = add_refused_row(self.service.database, account=account)
        return Things(account, ids)

    def is_done(self, job: str) -> bool:
        return bool(self.service.call("GET", job).json()["state"] == "done")

    def state(self, delivery: str) -> str:
        state: str = self.service.call("GET", f"/v1/deliveries/{delivery}").json()["state"]
        return state

    def call(
        self,
        call: str,
        key: str | None,
        body: Any = None,
        *,
        query: str = "",
        account: str = "mine",
        **ids: str,
    ) -> Any:
        """Make a call; ids that are not given are those of nothing."""
        method, path = call.split(" ")
        known = {f"{noun}_id": id for noun, id in {**UNKNOWN, **ids}.items()}
        path = path.format(name="no.such", prefix="ep_00000000", account=account, **known)
        given = "" if key is None else f"Bearer {key}"
        return self.service.call(method, path + query, body, authorization=given)

    def shown(self, things: Things) -> list[Any]:
        """Everything that an operator sees of them."""
        nouns = {"endpoint": "endpoints", "event": "events", "delivery": "deliveries", "replay": "replays"}
        nouns["row"] = "outbox/refused"
        return [
            self.service.call("GET", f"/v1/{path}/{things.ids[noun]}").json() for noun, path in nouns.items()
        ]


@pytest.fixture(scope="module")
def setting(service: Any) -> Iterator[Setting]:
    with receiving() as receiver:
        yield Setting(service, receiver)


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("call", CALLS)
def test_without_a_good_key_only_open_calls_are_answered(setting, call):
    method, path = call.split(" ")
    for key in (None, "hlk_wrong", setting.revoked, setting.keys["admin"][:-1]):
        for name in [call, f"HEAD {path}"] if method == "GET" else [call]:
            answer = setting.call(name, key)
            if CALLS[call][0] == "open":
                assert answer.status_code == 200
            elif name == call:
                assert refusal(answer) == (401, "unauthenticated")
                assert answer.json()["detail"] == "Send the API key as 'Authorization: Bearer <key>'."
            else:
                assert answer.status_code == 401


@pytest.mark.parametrize("call", [call for call, (scope, _) in CALLS.items() if scope != "open"])
@pytest.mark.parametrize("scope", INCLUDED)
def test_a_key_does_what_its_scopes_include_and_nothing_else(setting, call, scope):
    needed = CALLS[call][0]
    answer = setting.call(call, setting.keys[scope])
    if needed in INCLUDED[scope]:
        assert answer.status_code not in (401, 403), answer.text
    else:
        assert refusal(answer) == (403, "forbidden")
        assert answer.json()["detail"] == f"This key lacks the scope {needed}."
    if call.startswith("GET "):
        head = setting.call(call.replace("GET", "HEAD"), setting.keys[scope])
        assert (head.status_code == 403) == (needed not in INCLUDED[scope])


@pytest.mark.parametrize("call", [call for call, (scope, _) in CALLS.items() if scope == "read"])
def test_scopes_add_up(setting, call):
    key = setting.key(["publish", "read"])
    assert setting.call(call, key).status_code not in (401, 403)
    assert setting.call("POST /v1/events", key).status_code == 415
    assert refusal(setting.call("POST /v1/endpoints", key)) == (403, "forbidden")


@pytest.mark.parametrize("call", of(REFUSED))
def test_what_is_about_all_accounts_is_not_for_a_key_that_is_bound_to_one(setting, call):
    body = {"scopes": ["read"], "account": "mine"} if call == "POST /v1/keys" else None
    answer = setting.call(call, setting.bound, body)
    assert refusal(answer) == (403, "forbidden")
    assert "bound to an account" in answer.json()["detail"]


@pytest.mark.parametrize("call", of(BY_ID))
def test_the_ids_of_another_account_are_not_found_word_for_word_as_unknown_ones(setting, call):
    before = setting.shown(setting.other)
    noun = re.findall(r"\{(\w+)_id\}", call)[0]
    foreign, unknown = setting.other.ids[noun], UNKNOWN[noun]
    answers = []
    for id in (foreign, unknown):
        for body in (None, {}, {"no_such": 1}, {"account": "other"}):
            answer = setting.call(call, setting.bound, body, query="", **{noun: id})
            assert refusal(answer) == (404, "not_found")
            answers.append(json.loads(answer.text.replace(id, "<id>")) | {"request_id": None})
    assert all(answer == answers[0] for answer in answers)
    assert setting.shown(setting.other) == before
    if call.startswith("GET "):
        assert setting.call(call, setting.bound, **{noun: setting.mine.ids[noun]}).status_code == 200
        # What an unbound key is told about an id that does not exist is the same, too.
        unbound = setting.call(call, setting.keys["admin"])
        assert json.loads(unbound.text.replace(unknown, "<id>")) | {"request_id": None} == answers[0]


@pytest.mark.parametrize("call", of(LISTED))
def test_lists_show_what_is_the_account_s_own(setting, call):
    shown = setting.call(call, setting.bound, query="?limit=200").json()["data"]
    assert {each["account"] for each in shown} <= {"mine"}
    reader = "admin" if CALLS[call][0] == "admin" else "read"
    everything = setting.call(call, setting.keys[reader], query="?limit=200").json()["data"]
    assert {"mine", "other"} <= {each["account"] for each in everything}
    assert setting.call(call, setting.bound, query="?account=mine&limit=200").json()["data"] == shown
    for named in ("other", "nobodys"):
        answer = setting.call(call, setting.bound, query=f"?account={named}")
        assert refusal(answer) == (422, "account_mismatch")
        assert [error["pointer"] for error in answer.json()["errors"]] == ["account"]


@pytest.mark.parametrize("call", of(GIVEN))
def test_what_is_said_without_an_account_becomes_the_key_s_own(setting, call):
    bodies = {
        "POST /v1/events": {"type": "no.such", "payload": 1},
        "POST /v1/endpoints": {"url": "https://hooks.example.com/", "events": ["no.such"]},
    }
    body = bodies[call]
    for given in ({}, {"account": None}, {"account": "mine"}):
        answer = setting.call(call, setting.bound, {**body, **given})
        assert answer.is_success, answer.text
        assert answer.json()["account"] == "mine"
    before = setting.service.counts()
    answer = setting.call(call, setting.bound, {**body, "account": "other"})
    assert refusal(answer) == (422, "account_mismatch")
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/account"]
    wrong = setting.call(call, setting.bound, {**body, "account": 5})
    assert refusal(wrong) == (422, "invalid_field")
    assert setting.service.counts() == before
    unbound = setting.call(call, setting.keys["admin"], body)
    assert unbound.json()["account"] == "default"


@pytest.mark.parametrize("call", of(NAMED))
def test_another_account_cannot_be_named_in_the_path(setting, call):
    body = {} if call.startswith("PUT") else None
    assert setting.call(call, setting.bound, body).status_code == REAL[call].status
    for named in ("other", "nobodys", "hookline"):
        answer = setting.call(call, setting.bound, body, account=named)
        assert refusal(answer) == (422, "account_mismatch")
        assert [error["pointer"] for error in answer.json()["errors"]] == ["account"]
        assert setting.call(call, setting.keys["admin"], body, account=named).status_code == REAL[call].status


@pytest.mark.parametrize("call", of(ALIKE))
def test_what_is_no_account_s_is_shown_to_a_key_that_is_bound_to_one_as_to_any(setting, call):
    def answers():
        found = [setting.call(call, key) for key in (setting.bound, setting.keys["admin"])]
        is_busy = call == "GET /readyz" and 503 in {each.status_code for each in found}
        return None if is_busy else found

    bound, unbound = eventually(answers)
    assert bound.status_code == unbound.status_code
    assert bound.is_success == unbound.is_success
    if bound.is_success:
        assert bound.content == unbound.content


# --- what handlers check by themselves ---


def test_a_batch_keeps_to_the_key_s_account_event_by_event(setting):
    events = [
        {"type": "no.such", "payload": 1, **given}
        for given in ({}, {"account": "other"}, {"account": "mine"})
    ]
    answer = setting.call("POST /v1/events/batch", setting.bound, {"events": events})
    first, second, third = answer.json()["results"]
    assert (answer.status_code, first["account"], third["account"]) == (202, "mine", "mine")
    assert (second["error"]["code"], second["error"]["errors"][0]["pointer"]) == (
        "account_mismatch",
        "/events/1/account",
    )


def test_an_idempotency_key_of_another_account_is_no_conflict(setting):
    published = [
        setting.call(
            "POST /v1/events", key, {"type": f"no.such{n}", "payload": n, "idempotency_key": "shared"}
        )
        for n, key in enumerate([setting.bound, setting.key(["publish"], account="other")])
    ]
    assert [answer.status_code for answer in published] == [202, 202]
    assert [answer.json()["duplicate"] for answer in published] == [False, False]


@pytest.mark.parametrize("noun", ["endpoint", "event", "delivery", "replay", "discard"])
def test_a_prefix_finds_what_is_the_account_s_own(setting, noun):
    mine, other = setting.mine.ids[noun], setting.other.ids[noun]
    for key, id, expected in (
        (setting.bound, mine, [mine]),
        (setting.bound, other, []),
        (setting.keys["read"], other, [other]),
    ):
        prefix = id[:-2]
        answer = setting.service.call("GET", f"/v1/ids/{prefix}", authorization=f"Bearer {key}")
        assert answer.json() == {"data": expected, "has_more": False}


def test_a_key_of_an_account_that_may_read_is_shown_its_own_part_of_the_audit_trail(setting):
    reader = setting.key(["read"], account="mine")
    shown = setting.call("GET /v1/audit", reader).json()["data"]
    assert {each["account"] for each in shown} == {"mine"}
    publisher = setting.key(["publish"], account="mine")
    assert refusal(setting.call("GET /v1/audit", publisher)) == (403, "forbidden")


def test_workers_are_no_account_s_and_keys_are_not_found_by_prefix(setting):
    [worker] = setting.service.call("GET", "/v1/workers").json()["data"]
    found = [
        setting.service.call("GET", f"/v1/ids/{worker['id'][:15]}", authorization=f"Bearer {key}").json()
        for key in (setting.keys["read"], setting.bound)
    ]
    assert [each["data"] for each in found] == [[worker["id"]], []]
    for unlisted in (UNKNOWN["key"], "aud_" + "0" * 26):
        assert refusal(setting.service.call("GET", f"/v1/ids/{unlisted}")) == (422, "invalid_parameter")


def test_an_endpoint_cannot_be_moved_to_another_account(setting):
    endpoint = setting.mine.ids["endpoint"]
    call = "PATCH /v1/endpoints/{endpoint_id}"
    answer = setting.call(call, setting.bound, {"account": "other"}, endpoint=endpoint)
    assert refusal(answer) == (422, "account_mismatch")
    assert setting.call(call, setting.bound, {"account": "mine"}, endpoint=endpoint).status_code == 200


@pytest.mark.parametrize(
    ("call", "noun"),
    [
        ("GET /v1/deliveries", "endpoint"),
        ("GET /v1/deliveries", "event"),
        ("GET /v1/dead-letters", "endpoint"),
    ],
)
def test_a_filter_by_another_account_s_id_finds_what_one_by_an_unknown_id_does(setting, call, noun):
    pages = [
        setting.call(call, setting.bound, query=f"?{noun}_id={id}").json()
        for id in (setting.other.ids[noun], UNKNOWN[noun])
    ]
    assert pages == [{"data": [], "next_cursor": None}] * 2
    assert setting.call(call, setting.bound, query=f"?{noun}_id={setting.mine.ids[noun]}").json()["data"]


def test_an_event_is_not_replayed_to_another_account_s_endpoint(setting):
    answers = [
        setting.call(
            "POST /v1/events/{event_id}/replay",
            setting.bound,
            {"endpoint_id": id},
            event=setting.mine.ids["event"],
        )
        for id in (setting.other.ids["endpoint"], UNKNOWN["endpoint"])
    ]
    assert [refusal(answer) for answer in answers] == [(404, "not_found")] * 2


@pytest.mark.parametrize("noun", ["replay", "discard"])
def test_a_job_does_what_is_the_account_s_own(setting, noun):
    call, show = f"POST /v1/{noun}s", f"GET /v1/{noun}s/{{{noun}_id}}"
    mine, other = setting.things(f"{noun}s.one"), setting.things(f"{noun}s.two")
    bound = setting.key(["admin"], account=mine.account)

    def matched(filter: dict[str, Any], key: str = bound) -> int:
        number: int = setting.call(call, key, {"filter": filter, "dry_run": True}).json()["matched"]
        return number

    def done(filter: dict[str, Any]) -> tuple[int, int]:
        started = setting.call(call, bound, {"filter": filter}).json()

        def look() -> tuple[int, int] | None:
            job = setting.call(show, bound, **{noun: started["id"]}).json()
            return (job["done"], job["failed"]) if job["state"] == "done" else None

        return eventually(look)

    until = {"until": "2100-01-01T00:00:00Z"}
    assert matched(until) < matched(until, setting.keys["admin"])
    ids = [mine.ids["delivery"], other.ids["delivery"], UNKNOWN["delivery"]]
    assert matched({"ids": ids[:1]}) == 1
    # What is not the account's counts as not there, and then nothing is done, not even to the account's own.
    for named in ({"ids": ids}, {"ids": ids[1:2]}, {"ids": ids[2:]}, {"endpoint_id": other.ids["endpoint"]}):
        for order in ({"filter": named}, {"filter": named, "dry_run": True}):
            assert refusal(setting.call(call, bound, order)) == (404, "not_found")
    assert [setting.state(id) for id in ids[:2]] == ["dead", "dead"]
    assert done({"ids": ids[:1]}) == (1, 0)
    done(until)
    assert setting.state(other.ids["delivery"]) == "dead"
    answer = setting.call(call, bound, {"filter": {"account": other.account}})
    assert refusal(answer) == (422, "account_mismatch")
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/filter/account"]


@pytest.mark.parametrize("noun", ["replay", "discard"])
def test_jobs_are_shown_to_the_account_that_asked_for_them_and_to_operators(setting, noun):
    call, order = f"GET /v1/{noun}s", {"filter": {"event_type": "no.such"}}
    operators = setting.call(f"POST /v1/{noun}s", setting.keys["admin"], order).json()["id"]

    def listed(key: str) -> set[str]:
        return {job["id"] for job in setting.call(call, key, query="?limit=200").json()["data"]}

    assert listed(setting.bound) & {setting.mine.ids[noun], setting.other.ids[noun], operators} == {
        setting.mine.ids[noun]
    }
    assert {setting.mine.ids[noun], setting.other.ids[noun], operators} <= listed(setting.keys["read"])
    assert setting.call(f"{call}/{{{noun}_id}}", setting.bound, **{noun: operators}).status_code == 404


def test_an_idempotency_key_of_another_account_s_job_gives_another_job(setting):
    order = {"filter": {"event_type": "no.such"}}
    keys = [setting.bound, setting.key(["admin"], account="other"), setting.keys["admin"]]
    jobs = [
        setting.service.call(
            "POST", "/v1/replays", order, authorization=f"Bearer {key}", idempotency_key="one-key"
        ).json()["id"]
        for key in [*keys, *keys]
    ]
    assert len(set(jobs)) == 3
    assert jobs[:3] == jobs[3:]


def test_a_cursor_of_one_account_s_list_is_not_good_for_another_s(setting):
    for _ in range(2):
        setting.service.create(account="mine", events=["no.such"])
        setting.service.create(account="other", events=["no.such"])
    call, other = "GET /v1/endpoints", setting.key(["read"], account="other")
    cursor = setting.call(call, setting.bound, query="?limit=1").json()["next_cursor"]
    assert setting.call(call, setting.bound, query=f"?limit=1&cursor={cursor}").status_code == 200
    for key in (other, setting.keys["read"]):
        answer = setting.call(call, key, query=f"?limit=1&cursor={cursor}")
        assert refusal(answer) == (422, "invalid_cursor")
