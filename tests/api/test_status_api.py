"""What `/v1/status` shows."""

import contextlib
from pathlib import Path

import psycopg

from answering import eventually, receiving
from file_holder import holding


def status(service, query="", **headers):
    answer = service.call("GET", f"/v1/status{query}", **headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def known(service, query="", *, until=lambda found: True, **headers):
    """The situation, when it is what is waited for, and nothing is wrong with the server itself.

    On a busy machine the database can be too slow for an answer, a commit late or a worker silent, for some seconds.
    """

    def look():
        found = status(service, query, **headers)
        if found["health"] is None or not until(found):
            return None
        if found["database"] is None:  # a key of one account: nothing is said about the server
            return found
        is_well = found["database"]["not_ready"] is None and all(
            each["state"] == "running" for each in found["workers"]
        )
        return found if is_well and found["health"]["workers"] else None

    return eventually(look)


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
    shown = known(
        service, "?account=empty", until=lambda found: found["health"]["as_of"] and found["level"] == "new"
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

            def is_failing(shown):
                named = [one for each in shown["troubles"] for one in each["endpoints"]]
                is_counted = named and named[0]["answer"] == "500" and named[0]["waiting"] == 3
                return is_counted and shown["headline"] == "1 endpoint is failing. Everything else flows."

            shown = known(service, "?account=broken", until=is_failing)
            assert (shown["healthy"], shown["level"]) == (False, "bad")
            [trouble] = shown["troubles"]
            [named] = trouble["endpoints"]
            assert (named["endpoint_id"], named["url"]) == (endpoint["id"], fields["url"])
            assert (named["circuit"], named["cause"]) == ("open", "Looks like an outage at the receiver.")
            assert None not in (named["opened_at"], named["next_probe_at"])
            assert trouble["sentence"].startswith("Answers 500 since ")
            [worst] = shown["worst"]
            assert (worst["endpoint_id"], worst["pending"] + worst["awaiting_retry"]) == (endpoint["id"], 3)
            assert known(service, "?account=empty")["troubles"] == []


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
        shown = known(service, until=lambda found: found["worst"], **bearer)
        assert [each["endpoint_id"] for each in shown["worst"]] == [mine["id"]]
        assert (shown["workers"], shown["database"]) == (None, None)
        refused = service.call("GET", "/v1/status?account=theirs", **bearer)
        assert (refused.status_code, refused.json()["code"]) == (422, "account_mismatch")


@contextlib.contextmanager
def locked(database):
    """Nobody else can read the health samples of PostgreSQL, or write to the file of SQLite."""
    if database.startswith("sqlite"):
        with holding(Path(database.removeprefix("sqlite:///"))):
            yield "Nothing is accepted: the database does not take writes."
        return
    with psycopg.connect(database) as session:
        session.execute("LOCK TABLE hookline.health_samples IN ACCESS EXCLUSIVE MODE")
        yield "Nothing is known: the database does not answer."
        session.rollback()


def test_a_database_that_is_locked_is_an_answer_not_a_wait(service):
    known(service)
    with locked(service.database) as headline:
        shown = eventually(lambda: found if (found := status(service))["headline"] == headline else None)
        assert (shown["healthy"], shown["level"]) == (False, "bad")
    assert known(service)["health"]
