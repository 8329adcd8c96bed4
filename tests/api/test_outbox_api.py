"""Outboxes and the rows of theirs that were refused, through the API of a real server."""

import base64
import time
from uuid import uuid4

import pytest

from answering import eventually
from hookline import rfc3339
from refused_rows import add_refused_row, note_source

PATH = "/v1/outbox/refused"


@pytest.fixture
def account() -> str:
    """Nobody else's."""
    return f"ob{uuid4().hex[:10]}"


def listed(service, **query):
    given = "&".join(f"{name}={value}" for name, value in query.items())
    answer = service.call("GET", f"{PATH}?limit=200&{given}")
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["data"]]


def test_a_refused_row_is_shown_as_the_application_wrote_it(service, account):
    id = add_refused_row(
        service.database,
        account=account,
        payload={"id": 1},
        idempotency_key="k",
        hops=2,
        deliver_at=1_800_000_000.0,
        detail="It says why.",
    )
    row = service.call("GET", f"{PATH}/{id}").json()
    assert rfc3339.read(row.pop("published_at")) == pytest.approx(rfc3339.read(row.pop("refused_at")), abs=1)
    assert row == {
        "id": id,
        "source": "own",
        "account": account,
        "type": "order.paid",
        "idempotency_key": "k",
        "deliver_at": "2027-01-15T08:00:00.000000Z",
        "hops": 2,
        "code": "schema_mismatch",
        "detail": "It says why.",
        "payload": {"id": 1},
        "payload_bytes": 9,
        "payload_base64": None,
    }
    [short] = service.call("GET", f"{PATH}?account={account}").json()["data"]
    assert (short["id"], short["payload"], short["payload_bytes"]) == (id, None, 9)


@pytest.mark.parametrize("payload", [b"\xff\x00", b'{"id":', b"", b'"\xff"', b"[" * 10_000])
def test_a_payload_that_is_not_json_is_shown_as_its_bytes(service, account, payload):
    id = add_refused_row(service.database, account=account, payload=payload, code="invalid_json")
    row = service.call("GET", f"{PATH}/{id}").json()
    assert (row["payload"], base64.b64decode(row["payload_base64"])) == (None, payload)
    assert row["payload_bytes"] == len(payload)


def test_texts_that_break_every_rule_can_be_shown_and_discarded(service):
    account = "no account \N{SNOWMAN} <b>" * 20
    id = add_refused_row(
        service.database, account=account, type="no type\n" * 40, idempotency_key="\t", code="invalid_field"
    )
    row = service.call("GET", f"{PATH}/{id}").json()
    assert (row["account"], row["type"], row["idempotency_key"]) == (account, "no type\n" * 40, "\t")
    assert id in listed(service)
    assert service.call("POST", f"{PATH}/{id}/discard").json()["account"] == account
    assert id not in listed(service)


def test_the_list_is_newest_first_and_has_pages(service, account):
    ids = [add_refused_row(service.database, account=account) for _ in range(5)][::-1]
    assert listed(service, account=account) == ids
    found, cursor = [], ""
    while cursor is not None:
        page = service.call("GET", f"{PATH}?account={account}&limit=2{cursor and f'&cursor={cursor}'}").json()
        found += [each["id"] for each in page["data"]]
        cursor = page["next_cursor"]
    assert found == ids


def test_the_filters_choose(service, account):
    database = service.database
    old = add_refused_row(database, account=account, age=7_200.0)
    other = add_refused_row(database, account=account, type="a.b", code="too_large", source="shop")
    assert listed(service, account=account, event_type="a.b") == [other]
    assert listed(service, account=account, code="too_large") == [other]
    assert listed(service, account=account, source="shop") == [other]
    hour_ago = rfc3339.show(time.time() - 3_600)
    assert listed(service, account=account, since=hour_ago) == [other]
    assert listed(service, account=account, until=hour_ago) == [old]
    assert listed(service, account=account, code="no_such") == []


@pytest.mark.parametrize(
    ("query", "name"), [("code=A-B", "code"), ("source=", "source"), ("event_type=%20", "event_type")]
)
def test_a_bad_filter_is_refused(service, query, name):
    answer = service.call("GET", f"{PATH}?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_parameter")
    assert answer.json()["errors"][0]["pointer"] == name


def test_a_retry_publishes_the_row_under_its_id(service, account):
    id = add_refused_row(service.database, account=account, payload=b'{"id": 7}', idempotency_key=account)
    answer = service.call("POST", f"{PATH}/{id}/retry")
    assert answer.status_code == 202
    done = answer.json()
    assert (done["id"], done["account"], done["duplicate"]) == (id, account, False)
    event = service.call("GET", f"/v1/events/{id}").json()
    assert (event["payload"], event["idempotency_key"]) == ({"id": 7}, account)
    assert listed(service, account=account) == []
    assert service.call("POST", f"{PATH}/{id}/retry").status_code == 404


def test_a_row_that_is_refused_again_stays_with_the_new_reason(service, account):
    type = f"{account}.paid"
    service.call("PUT", f"/v1/event-types/{type}", {"schema": {"type": "object", "required": ["total"]}})
    id = add_refused_row(service.database, account=account, type=type, code="fanout_limit", detail="Old.")
    answer = service.call("POST", f"{PATH}/{id}/retry")
    assert (answer.status_code, answer.json()["code"]) == (422, "schema_mismatch")
    row = service.call("GET", f"{PATH}/{id}").json()
    assert row["code"] == "schema_mismatch"
    assert row["detail"].startswith(f"The payload does not match the schema of {type}. /")
    assert "total" in row["detail"], "it says which field is wrong"
    assert service.call("GET", f"/v1/events/{id}").status_code == 404
    service.call("PUT", f"/v1/event-types/{type}", {"schema": None})
    assert service.call("POST", f"{PATH}/{id}/retry").status_code == 202


def test_a_key_that_names_another_event_is_refused_again(service, account):
    service.publish("order.paid", {"id": 1}, account=account, idempotency_key="used")
    id = add_refused_row(service.database, account=account, payload={"id": 2}, idempotency_key="used")
    answer = service.call("POST", f"{PATH}/{id}/retry")
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_conflict")
    assert service.call("GET", f"{PATH}/{id}").json()["code"] == "idempotency_conflict"


def test_an_id_that_names_another_event_is_refused_again(service, account):
    event = service.publish("order.paid", {"id": 1}, account=account)
    add_refused_row(
        service.database, id=event["id"], account=account, payload={"id": 2}, idempotency_key="free"
    )
    answer = service.call("POST", f"{PATH}/{event['id']}/retry")
    assert (answer.status_code, answer.json()["code"]) == (422, "id_conflict")
    assert service.call("GET", f"{PATH}/{event['id']}").json()["code"] == "id_conflict"
    assert service.call("GET", f"/v1/events/{event['id']}").json()["payload"] == {"id": 1}
    other = service.publish("order.paid", {"id": 3}, account=account, idempotency_key="free")
    assert not other["duplicate"], "the refused row took the key"


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"type": "no type"}, 422, "invalid_type"),
        ({"payload": b"\xff"}, 400, "invalid_payload"),
        ({"hops": 99}, 422, "loop_detected"),
        ({"code": "invalid_row"}, 422, "invalid_row"),  # what is kept is not what was written
    ],
)
def test_what_the_api_would_not_take_is_refused_again(service, account, fields, status, code):
    id = add_refused_row(service.database, account=account, **fields)
    answer = service.call("POST", f"{PATH}/{id}/retry")
    assert answer.status_code == status, answer.text
    assert service.call("GET", f"{PATH}/{id}").json()["code"] == code
    assert service.call("GET", f"/v1/events/{id}").status_code == 404


def test_a_discarded_row_is_gone(service, account):
    id = add_refused_row(service.database, account=account)
    assert service.call("POST", f"{PATH}/{id}/discard").json()["id"] == id
    for method, path in (("GET", id), ("POST", f"{id}/discard"), ("POST", f"{id}/retry")):
        assert service.call(method, f"{PATH}/{path}").status_code == 404


def test_of_two_rows_with_one_id_the_newest_comes_first(service, account):
    id = add_refused_row(service.database, account=account, detail="first")
    add_refused_row(service.database, id=id, account=account, detail="second")
    assert service.call("POST", f"{PATH}/{id}/discard").json()["detail"] == "second"
    assert service.call("GET", f"{PATH}/{id}").json()["detail"] == "first"


def test_a_key_of_one_account_acts_on_rows_of_its_account_alone(service, account):
    key = service.call("POST", "/v1/keys", {"scopes": ["admin"], "account": account}).json()["key"]
    id = add_refused_row(service.database, account="somebody-else")
    add_refused_row(service.database, id=id, account=account)
    own = {"authorization": f"Bearer {key}"}
    assert service.call("POST", f"{PATH}/{id}/discard", **own).json()["account"] == account
    for verb in ("retry", "discard"):
        assert service.call("POST", f"{PATH}/{id}/{verb}", **own).status_code == 404
    assert service.call("GET", f"{PATH}/{id}").json()["account"] == "somebody-else"


def test_outboxes_are_shown_as_they_were_noted(service, account):
    now = time.time()
    note_source(
        service.database, account, waiting=12, oldest_at=now - 90, looked_at=now - 60, clear_at=now - 70
    )
    found = service.call("GET", "/v1/outbox").json()
    [shown] = [each for each in found["data"] if each["name"] == account]
    assert (shown["state"], shown["waiting"], shown["detail"]) == ("ok", 12, None)
    assert 90 <= shown["oldest_age_s"] < 400
    assert rfc3339.read(shown["looked_at"]) == pytest.approx(now - 60, abs=0.01)
    assert rfc3339.read(shown["clear_at"]) == pytest.approx(now - 70, abs=0.01)
    assert isinstance(found["refused"], int)


def test_an_outbox_that_nobody_reads_any_more_is_shown_with_the_command_that_forgets_it(service, account):
    note_source(service.database, account, looked_at=time.time() - 900)
    found = service.call("GET", "/v1/outbox").json()["data"]
    [shown] = [each for each in found if each["name"] == account]
    assert shown["state"] == "unread"
    assert shown["detail"].startswith("not read for 1")
    assert f"`hookline outbox forget {account}`" in shown["detail"]


def test_the_status_says_which_outbox_cannot_be_read(service, account):
    note_source(service.database, f"0{account}", trouble="It went away.")

    def said() -> bool | None:
        shown = service.call("GET", "/v1/status").json()
        is_said = "cannot be read: " in shown["headline"] and shown["step"] == "hookline outbox sources"
        return is_said or None

    eventually(said)
    assert service.call("GET", "/v1/status").json()["healthy"] is False


def test_the_status_counts_refused_rows(service, account):
    before = service.call("GET", "/v1/outbox").json()["refused"]
    add_refused_row(service.database, account=account)
    assert service.call("GET", "/v1/outbox").json()["refused"] == before + 1
