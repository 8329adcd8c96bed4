"""What `/v1/status` shows."""

import contextlib
import sqlite3

import psycopg

from answering import eventually, receiving


def status(service, query="", **headers):
    answer = service.call("GET", f"/v1/status{query}", **headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


@contextlib.contextmanager
def endpoints(service, *created):
    """Endpoints that are deleted at the end."""
    made = [service.create(**fields) for fields in created]
    try:
        yield made
    finally:
        for each in made:
            service.call("DELETE", f"/v1/endpoints/{each['id']}")


def test_an_account_without_events_is_new_and_healthy(service):
    shown = eventually(
        lambda: status(service, "?account=empty") if status(service)["health"]["as_of"] else None
    )
    assert (shown["headline"], shown["level"], shown["healthy"]) == (
        "Nothing was published yet.",
        "new",
        True,
    )
    assert (shown["troubles"], shown["worst"], shown["alerts"]) == ([], [], [])
    assert [each["state"] for each in shown["workers"]] == ["running"]
    assert shown["database"]["latency_ms"] >= 0
    assert shown["database"]["not_ready"] is None


def test_an_endpoint_whose_circuit_opened_is_named_with_what_to_know(service):
    with receiving() as receiver:
        fields = {
            "account": "broken",
            "url": f"{receiver.url}/500",
            "events": ["s.*"],
            "retry": {"schedule": [0, 3_600], "jitter": "none"},
            "circuit": {"consecutive_failures": 2},
        }
        with endpoints(service, fields) as [endpoint]:
            for _ in range(3):
                service.publish("s.t", account="broken")

            def failing():
                shown = status(service, "?account=broken")
                named = [one for each in shown["troubles"] for one in each["endpoints"]]
                return shown if named and named[0]["answer"] == "500" and named[0]["waiting"] == 3 else None

            shown = eventually(failing)
            assert (shown["healthy"], shown["level"]) == (False, "bad")
            assert shown["headline"] == "1 endpoint is failing. Everything else flows."
            [trouble] = shown["troubles"]
            [named] = trouble["endpoints"]
            assert (named["endpoint_id"], named["url"]) == (endpoint["id"], fields["url"])
            assert (named["circuit"], named["cause"]) == ("open", "Looks like an outage at the receiver.")
            assert None not in (named["opened_at"], named["next_probe_at"])
            assert trouble["sentence"].startswith("Answers 500 since ")
            [worst] = shown["worst"]
            assert (worst["endpoint_id"], worst["pending"] + worst["awaiting_retry"]) == (endpoint["id"], 3)
            assert status(service, "?account=empty")["troubles"] == []


def test_a_key_of_one_account_sees_its_own_and_nothing_of_the_server(service):
    key = service.call("POST", "/v1/keys", {"scopes": ["read"], "account": "mine"}).json()["key"]
    bearer = {"authorization": f"Bearer {key}"}
    with endpoints(
        service,
        {"account": "mine", "events": ["t.*"], "paused": True},
        {"account": "theirs", "events": ["t.*"], "paused": True},
    ) as [mine, _]:
        for account in ("mine", "theirs"):
            service.publish("t.u", account=account)
        shown = eventually(lambda: found if (found := status(service, **bearer))["worst"] else None)
        assert [each["endpoint_id"] for each in shown["worst"]] == [mine["id"]]
        assert (shown["workers"], shown["database"]) == (None, None)
        refused = service.call("GET", "/v1/status?account=theirs", **bearer)
        assert (refused.status_code, refused.json()["code"]) == (422, "account_mismatch")


@contextlib.contextmanager
def locked(database):
    """Nobody else can read the health samples of PostgreSQL, or write to the file of SQLite."""
    if database.startswith("sqlite"):
        path = database.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield "Nothing is accepted: the database does not take writes."
            other.execute("ROLLBACK")
        return
    with psycopg.connect(database) as session:
        session.execute("LOCK TABLE hookline.health_samples IN ACCESS EXCLUSIVE MODE")
        yield "Nothing is known: the database does not answer."
        session.rollback()


def test_a_database_that_is_locked_is_an_answer_not_a_wait(service):
    eventually(lambda: status(service)["health"] or None)
    with locked(service.database) as headline:
        shown = eventually(lambda: found if (found := status(service))["headline"] == headline else None)
        assert (shown["healthy"], shown["level"]) == (False, "bad")
    assert eventually(lambda: status(service)["health"] or None)
