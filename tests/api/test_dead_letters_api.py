"""Dead letters and pending deliveries over HTTP."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from answering import Receiver, eventually, receiving

UNKNOWN = "0" * 26


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


class Place:
    """An account with one endpoint and the events sent to it."""

    def __init__(self, service: Any, receiver: Receiver, account: str, path: str, **fields: Any) -> None:
        self._service = service
        self._receiver = receiver
        self.account = account
        self.endpoint = service.create(account=account, url=receiver.url + path, events=["*"], **fields)["id"]

    def send(self, number: int = 1, type: str = "order.paid") -> list[str]:
        """Publish events; returns the ids of their deliveries, oldest first."""
        events = [self._service.publish(type, {"n": n}, account=self.account)["id"] for n in range(number)]
        return ["dlv_" + event.removeprefix("evt_") for event in events]

    def die(self, number: int = 1, type: str = "order.paid") -> list[str]:
        deliveries = self.send(number, type)
        for delivery in deliveries:
            self.wait(delivery, state="dead")
        return deliveries

    def move(self, path: str) -> None:
        answer = self._service.call(
            "PATCH", f"/v1/endpoints/{self.endpoint}", {"url": self._receiver.url + path}
        )
        assert answer.status_code == 200

    def delivery(self, id: str) -> dict[str, Any]:
        shown: dict[str, Any] = self._service.call("GET", f"/v1/deliveries/{id}").json()
        return shown

    def wait(self, id: str, **fields: Any) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            shown = self.delivery(id)
            return shown if all(shown[name] == value for name, value in fields.items()) else None

        return eventually(look)

    def dead(self, query: str = "") -> list[str]:
        page = self._service.call("GET", f"/v1/dead-letters?account={self.account}{query}").json()
        return [each["id"] for each in page["data"]]

    def job(self, path: str, filter: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Start a job and wait for its end."""
        answer = self._service.call("POST", f"/v1/{path}", {"filter": filter, **fields})
        assert answer.status_code == 202, answer.text
        started = answer.json()
        assert answer.headers["location"] == f"/v1/{path}/{started['id']}"

        def look() -> dict[str, Any] | None:
            shown: dict[str, Any] = self._service.call("GET", f"/v1/{path}/{started['id']}").json()
            return shown if shown["state"] == "done" else None

        return eventually(look)


def later() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_dead_letters_are_listed_newest_first_and_filtered(service, receiver):
    place = Place(service, receiver, "list", "/404/list")
    (a,), (b,), (other,) = place.die(), place.die(), place.die(type="user.created")
    assert place.dead() == [other, b, a]
    assert place.dead("&event_type=order.paid") == [b, a]
    assert place.dead("&reason=rejected") == [other, b, a]
    assert place.dead("&reason=exhausted") == []
    assert place.dead(f"&endpoint_id={place.endpoint}") == [other, b, a]
    assert place.dead(f"&endpoint_id=ep_{UNKNOWN}") == []
    # The store's time is read at intervals, so it may step back by a little between the two.
    died = {id: place.delivery(id)["dead_at"] for id in (other, b, a)}
    assert place.dead(f"&since={died[b]}") == [id for id in died if died[id] >= died[b]]
    assert place.dead(f"&until={died[b]}") == [id for id in died if died[id] < died[b]]
    assert place.dead("&replayed=true") == []
    page = service.call("GET", "/v1/dead-letters?account=list&limit=2").json()
    rest = service.call("GET", f"/v1/dead-letters?account=list&limit=2&cursor={page['next_cursor']}").json()
    assert [each["id"] for each in page["data"] + rest["data"]] == [other, b, a]
    shown = service.call("GET", f"/v1/endpoints/{place.endpoint}/deliveries?state=dead&limit=1").json()
    assert [each["id"] for each in shown["data"]] == [other]


def test_a_replay_sends_the_same_bytes_under_the_same_id_from_the_beginning(service, receiver):
    place = Place(service, receiver, "replay", "/404/replay")
    (id,) = place.die()
    died = place.delivery(id)
    place.move("/200/replay")
    answer = service.call("POST", f"/v1/dead-letters/{id}/replay")
    assert answer.status_code == 202
    delivered = place.wait(id, state="delivered")
    assert (delivered["attempts"], delivered["replays"]) == (1, 1)
    assert delivered["last_death"] == {"reason": "rejected", "at": died["dead_at"], "attempts": 1}
    [first], [second] = receiver.at("/404/replay"), receiver.at("/200/replay")
    assert (first.event_id, first.body) == (second.event_id, second.body)
    assert (first.attempt, second.attempt) == (1, 1)
    numbers = [
        (each["number"], each["status"])
        for each in service.call("GET", f"/v1/deliveries/{id}/attempts").json()["data"]
    ]
    assert numbers == [(1, 200), (1, 404)]
    assert place.dead() == []


def test_until_it_is_delivered_what_was_replayed_is_listed_as_such(service, receiver):
    place = Place(service, receiver, "again", "/404/again")
    (id,) = place.die()
    service.call("POST", f"/v1/endpoints/{place.endpoint}/pause")
    replayed = service.call("POST", f"/v1/dead-letters/{id}/replay").json()
    assert (replayed["state"], replayed["waiting_for"], replayed["replays"]) == ("pending", "paused", 1)
    assert replayed["last_death"]["reason"] == "rejected"
    assert (place.dead(), place.dead("&replayed=true")) == ([], [id])
    assert place.dead("&replayed=true&reason=rejected") == [id]
    service.call("POST", f"/v1/endpoints/{place.endpoint}/resume")
    place.wait(id, state="dead", replays=1)
    assert (place.dead(), place.dead("&replayed=true")) == ([id], [])


def test_a_discarded_dead_letter_is_cancelled_and_says_so(service, receiver):
    place = Place(service, receiver, "discard", "/404/discard")
    (id,) = place.die()
    answer = service.call("POST", f"/v1/dead-letters/{id}/discard")
    assert (answer.status_code, answer.json()["state"], answer.json()["reason"]) == (
        200,
        "cancelled",
        "discarded",
    )
    assert place.dead() == []


def test_a_pending_delivery_is_retried_now_or_cancelled(service, receiver):
    place = Place(service, receiver, "pending", "/200/pending")
    first, second = (
        "dlv_" + service.publish(account="pending", deliver_at=later())["id"].removeprefix("evt_")
        for _ in range(2)
    )
    assert place.delivery(first)["waiting_for"] == "due"
    answer = service.call("POST", f"/v1/deliveries/{first}/retry")
    assert answer.status_code == 202
    place.wait(first, state="delivered")
    answer = service.call("POST", f"/v1/deliveries/{second}/cancel")
    assert (answer.status_code, answer.json()["state"], answer.json()["reason"]) == (
        200,
        "cancelled",
        "cancelled",
    )
    assert [each.event_id for each in receiver.at("/200/pending")] == ["evt_" + first.removeprefix("dlv_")]


def test_a_verb_that_the_state_does_not_allow_is_refused(service, receiver):
    place = Place(service, receiver, "states", "/404/states")
    (dead,) = place.die()
    service.call("POST", f"/v1/endpoints/{place.endpoint}/pause")
    (pending,) = place.send()
    for path in (
        f"/v1/deliveries/{dead}/retry",
        f"/v1/deliveries/{dead}/cancel",
        f"/v1/dead-letters/{pending}/replay",
        f"/v1/dead-letters/{pending}/discard",
    ):
        answer = service.call("POST", path)
        assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state"), path
    service.call("POST", f"/v1/deliveries/{pending}/cancel")
    for verb in ("replay", "discard"):
        answer = service.call("POST", f"/v1/dead-letters/{pending}/{verb}")
        assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    assert [place.delivery(id)["state"] for id in (dead, pending)] == ["dead", "cancelled"]


def test_a_dead_letter_without_an_endpoint_cannot_be_replayed(service, receiver):
    place = Place(service, receiver, "orphan", "/404/orphan")
    (id,) = place.die()
    service.call("DELETE", f"/v1/endpoints/{place.endpoint}")
    answer = service.call("POST", f"/v1/dead-letters/{id}/replay")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    assert "endpoint is deleted" in answer.json()["detail"]
    assert service.call("POST", f"/v1/dead-letters/{id}/discard").status_code == 200


def test_an_event_is_replayed_to_all_its_endpoints_or_to_one(service, receiver):
    good = Place(service, receiver, "event", "/200/event")
    bad = Place(service, receiver, "event", "/404/event")
    event = service.publish(account="event")["id"]

    def states() -> dict[str, str]:
        data = service.call("GET", f"/v1/events/{event}/deliveries").json()["data"]
        return {each["endpoint_id"]: each["state"] for each in data}

    settled = {good.endpoint: "delivered", bad.endpoint: "dead"}
    eventually(lambda: states() == settled or None)

    def replay(body: dict[str, Any] | None, requests: int) -> dict[str, Any]:
        answer = service.call("POST", f"/v1/events/{event}/replay", body)
        assert answer.status_code == 202, answer.text
        eventually(lambda: len(receiver.at("/200/event") + receiver.at("/404/event")) >= requests or None)
        eventually(lambda: states() == settled or None)
        found: dict[str, Any] = answer.json()
        assert found["replayed"] == len(found["deliveries"])
        return found

    assert replay(None, 4)["replayed"] == 2
    assert replay({"states": ["dead"]}, 5)["replayed"] == 1
    assert replay({"endpoint_id": good.endpoint}, 6)["replayed"] == 1
    assert replay({"endpoint_id": good.endpoint, "states": ["dead"]}, 6)["replayed"] == 0
    assert replay({"endpoint_id": f"ep_{UNKNOWN}"}, 6)["replayed"] == 0
    assert [len(receiver.at(path)) for path in ("/200/event", "/404/event")] == [3, 3]


def test_ten_dead_letters_come_back_with_one_bulk_replay(service, receiver):
    place = Place(service, receiver, "bulk", "/404/bulk")
    ids = place.die(10)
    place.move("/200/bulk")
    dry = service.call("POST", "/v1/replays", {"filter": {"account": "bulk"}, "dry_run": True})
    assert dry.status_code == 202
    assert (dry.json()["id"], dry.json()["state"], dry.json()["matched"], dry.json()["done"]) == (
        None,
        "done",
        10,
        0,
    )
    assert len(place.dead()) == 10
    job = place.job("replays", {"account": "bulk"})
    assert job == {
        "id": job["id"],
        "state": "done",
        "matched": 10,
        "done": 10,
        "failed": 0,
        "dry_run": False,
        "filter": {"account": "bulk"},
        "created_at": job["created_at"],
        "finished_at": job["finished_at"],
        "reason": None,
    }
    assert job["id"].startswith("rpl_")
    for id in ids:
        place.wait(id, state="delivered", replays=1)
    assert sorted(each.event_id for each in receiver.at("/200/bulk")) == sorted(
        "evt_" + id.removeprefix("dlv_") for id in ids
    )


def test_a_job_takes_what_its_filter_names_and_nothing_else(service, receiver):
    place = Place(service, receiver, "some", "/404/some")
    other = Place(service, receiver, "some", "/404/other")
    orders, users = place.send(2), place.send(2, "user.created")
    eventually(lambda: len(place.dead()) == 8 or None)
    discarded = place.job("discards", {"endpoint_id": place.endpoint, "event_type": "user.created"})
    assert (discarded["matched"], discarded["done"]) == (2, 2)
    assert discarded["id"].startswith("dsc_")
    assert len(place.dead()) == 6
    left = place.dead(f"&endpoint_id={place.endpoint}")
    assert len(left) == 2
    named = place.job("discards", {"ids": [left[0], f"dlv_{UNKNOWN}"]})
    assert (named["matched"], named["done"], named["failed"]) == (2, 1, 1)
    assert len(place.dead(f"&endpoint_id={place.endpoint}")) == 1
    assert len(place.dead(f"&endpoint_id={other.endpoint}")) == 4
    assert len(orders) == len(users) == 2


def test_a_dry_run_counts_by_filter_and_by_id_and_stores_nothing(service, receiver):
    place = Place(service, receiver, "dry", "/404/dry")
    ids = place.die(3)
    before = service.counts()
    for path in ("replays", "discards"):
        for filter, matched in [
            ({"account": "dry"}, 3),
            ({"account": "dry", "reason": "exhausted"}, 0),
            ({"ids": [*ids[:2], f"dlv_{UNKNOWN}"]}, 2),
        ]:
            tried = service.call("POST", f"/v1/{path}", {"filter": filter, "dry_run": True}).json()
            assert (tried["matched"], tried["done"], tried["dry_run"]) == (matched, 0, True)
    assert service.counts() == before
    assert sorted(place.dead()) == sorted(ids)


def test_a_repeated_job_is_the_first_one_and_the_key_is_good_for_that_only(service):
    body = {"filter": {"account": "nobody"}}
    first = service.call("POST", "/v1/replays", body, idempotency_key="one")
    again = service.call("POST", "/v1/replays", body, idempotency_key="one")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    other = service.call("POST", "/v1/replays", {"filter": {"account": "others"}}, idempotency_key="one")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_conflict")
    kind = service.call("POST", "/v1/discards", body, idempotency_key="one")
    assert kind.status_code == 202
    bad = service.call("POST", "/v1/replays", body, idempotency_key="a b")
    assert (bad.status_code, bad.json()["code"]) == (422, "invalid_field")


def test_jobs_are_listed_newest_first_each_kind_by_itself(service):
    def ids(query: str = "") -> list[str]:
        return [each["id"] for each in service.call("GET", f"/v1/replays{query}").json()["data"]]

    before = ids()
    started = [
        service.call("POST", "/v1/replays", {"filter": {"account": f"listed{n}"}}).json()["id"]
        for n in range(3)
    ]
    service.call("POST", "/v1/discards", {"filter": {"account": "listed"}})
    assert ids()[:3] == started[::-1]
    assert len(ids()) == len(before) + 3
    page = service.call("GET", "/v1/replays?limit=1").json()
    assert [each["id"] for each in page["data"]] == [started[2]]
    assert ids(f"?limit=1&cursor={page['next_cursor']}") == [started[1]]
    wrong = "dsc_" + started[0].removeprefix("rpl_")
    assert service.call("GET", f"/v1/discards/{wrong}").status_code == 404


def test_attempts_and_their_limit_come_from_the_endpoint_s_own_policy(service, receiver):
    place = Place(service, receiver, "policy", "/503/policy", retry={"schedule": [0, 0, 0], "jitter": "none"})
    (id,) = place.send()
    dead = place.wait(id, state="dead")
    assert (dead["reason"], dead["attempts"], dead["max_attempts"]) == ("exhausted", 3, 3)
    assert [each.attempt for each in receiver.at("/503/policy")] == [1, 2, 3]


def test_an_open_circuit_is_shown_and_a_reset_closes_it(service, receiver):
    place = Place(
        service,
        receiver,
        "circuit",
        "/500/circuit",
        retry={"schedule": [0] * 9, "jitter": "none"},
        circuit={"consecutive_failures": 3, "cooldown_s": 3_600},
    )
    (id,) = place.send()
    place.wait(id, waiting_for="circuit", attempts=3, in_flight=False)
    endpoint = service.call("GET", f"/v1/endpoints/{place.endpoint}").json()
    state = endpoint["circuit_state"]
    assert (state["state"], state["consecutive_failures"], state["cooldown_s"]) == ("open", 3, 3_600)
    assert state["next_probe_at"] > state["opened_at"]
    assert "3 failures in a row" in state["reason"]
    listed = service.call("GET", "/v1/endpoints?account=circuit&circuit=open").json()["data"]
    assert [each["id"] for each in listed] == [place.endpoint]
    place.move("/200/circuit")
    assert place.delivery(id)["waiting_for"] == "circuit"
    answer = service.call("POST", f"/v1/endpoints/{place.endpoint}/circuit/reset")
    assert answer.status_code == 200
    state = answer.json()["circuit_state"]
    assert (state["state"], state["consecutive_failures"], state["next_probe_at"]) == ("closed", 0, None)
    place.wait(id, state="delivered")

    def closed() -> bool | None:
        shown = service.call("GET", f"/v1/endpoints/{place.endpoint}").json()["circuit_state"]
        return shown["state"] == "closed" or None

    assert eventually(closed)


def test_a_paused_endpoint_gets_events_and_sends_them_when_it_is_resumed(service, receiver):
    place = Place(service, receiver, "paused", "/200/paused", paused=True)
    (id,) = place.send()
    assert place.delivery(id)["waiting_for"] == "paused"
    service.call("POST", f"/v1/endpoints/{place.endpoint}/resume")
    place.wait(id, state="delivered")
    service.call("POST", f"/v1/endpoints/{place.endpoint}/disable")
    assert json.loads(service.call("GET", f"/v1/endpoints/{place.endpoint}").content)["enabled"] is False
    assert service.publish(account="paused")["deliveries"] == 0


def test_a_rate_limit_and_a_strict_order_are_named_as_what_is_waited_for(service, receiver):
    place = Place(service, receiver, "rate", "/200/rate", rate_limit={"per_second": 0.001, "burst": 1})
    first, second = place.send(2)
    place.wait(first, state="delivered")
    place.wait(second, waiting_for="rate")
    strict = Place(
        service,
        receiver,
        "strict",
        "/500/strict",
        ordering="strict",
        retry={"schedule": [0, 3_600], "jitter": "none"},
    )
    head, behind = strict.send(2)
    strict.wait(head, attempts=1, waiting_for="due")
    strict.wait(behind, attempts=0, waiting_for="order")
