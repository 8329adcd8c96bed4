"""What the API shows of events."""

from datetime import UTC, datetime, timedelta

from answering import eventually
from hookline.store.contract.events import SHOWN_PAYLOAD_BYTES
from tests.api.test_deliveries_api import receiver as receiver  # a fixture

LATER = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_an_event_is_shown_with_all_its_fields(service):
    service.create(account="shown")
    published = service.publish(
        account="shown", payload={"b": 1, "a": [None, 1.50]}, idempotency_key="k-1", deliver_at=LATER
    )
    answer = service.call("GET", f"/v1/events/{published['id']}")
    payload = b'{"b": 1, "a": [null, 1.5]}'
    assert payload in answer.content
    assert answer.json() == {
        "id": published["id"],
        "type": "order.paid",
        "account": "shown",
        "payload": {"b": 1, "a": [None, 1.5]},
        "payload_bytes": len(payload),
        "idempotency_key": "k-1",
        "deliver_at": LATER.replace("Z", ".000000Z"),
        "created_at": published["created_at"],
        "deliveries": {"pending": 1, "delivered": 0, "dead": 0, "cancelled": 0},
    }
    assert service.call("GET", "/v1/events?account=shown").json() == {
        "data": [answer.json()],
        "next_cursor": None,
    }


def test_events_are_listed_newest_first_and_filtered(service):
    first = service.publish("a", account="listed", idempotency_key="one")
    second = service.publish("b.c", account="listed", idempotency_key="two")
    third = service.publish("a", account="listed")
    elsewhere = service.publish("a", account="listed2", idempotency_key="one")

    def listed(query: str) -> list[str]:
        answer = service.call("GET", f"/v1/events?{query}")
        assert answer.status_code == 200, answer.text
        return [event["id"] for event in answer.json()["data"]]

    everything = [third["id"], second["id"], first["id"]]

    def made(*, since: str = "", until: str = "~") -> list[str]:
        """What the list must hold; the store's time is read at intervals, so it may step back by a little."""
        times = {each["id"]: each["created_at"] for each in (first, second, third)}
        return [id for id in everything if since <= times[id] < until]

    assert listed("account=listed") == everything
    assert listed("account=listed&type=a") == [third["id"], first["id"]]
    assert listed("account=listed&type=b") == []
    assert listed("idempotency_key=one&account=listed") == [first["id"]]
    assert listed("idempotency_key=one") == [elsewhere["id"], first["id"]]
    assert listed("idempotency_key=three") == []
    middle, end = second["created_at"], third["created_at"]
    assert second["id"] in made(since=middle)
    assert second["id"] not in made(until=middle)
    assert listed(f"account=listed&since={middle}") == made(since=middle)
    assert listed(f"account=listed&until={middle}") == made(until=middle)
    assert listed(f"account=listed&since={middle}&until={end}") == made(since=middle, until=end)
    assert listed("limit=1") == [elsewhere["id"]]
    page = service.call("GET", "/v1/events?account=listed&limit=2").json()
    rest = service.call("GET", f"/v1/events?account=listed&limit=2&cursor={page['next_cursor']}").json()
    assert [event["id"] for event in page["data"] + rest["data"]] == everything
    assert rest["next_cursor"] is None


def test_a_list_leaves_large_payloads_out_and_the_event_itself_does_not(service):
    payload = "x" * SHOWN_PAYLOAD_BYTES
    published = service.publish(account="large", payload=payload)
    (listed,) = service.call("GET", "/v1/events?account=large").json()["data"]
    assert (listed["payload"], listed["payload_bytes"]) == (None, SHOWN_PAYLOAD_BYTES + 2)
    shown = service.call("GET", f"/v1/events/{published['id']}").json()
    assert (shown["payload"], shown["payload_bytes"]) == (payload, SHOWN_PAYLOAD_BYTES + 2)


def test_the_attempts_of_an_event_are_those_of_all_its_deliveries(service, receiver):
    for status in (200, 400):
        service.create(account="tried", url=f"{receiver}/{status}")
    event = service.publish(account="tried")
    path = f"/v1/events/{event['id']}/attempts"
    attempts = eventually(
        lambda: data if len(data := service.call("GET", path).json()["data"]) == 2 else None
    )
    assert sorted(attempt["status"] for attempt in attempts) == [200, 400]
    deliveries = service.call("GET", f"/v1/events/{event['id']}/deliveries").json()["data"]
    assert {attempt["delivery_id"] for attempt in attempts} == {delivery["id"] for delivery in deliveries}
    for delivery in deliveries:
        (own,) = service.call("GET", f"/v1/deliveries/{delivery['id']}/attempts").json()["data"]
        assert own in attempts
    page = service.call("GET", f"{path}?limit=1").json()
    rest = service.call("GET", f"{path}?limit=1&cursor={page['next_cursor']}").json()
    assert page["data"] + rest["data"] == attempts
    assert [attempt["id"] for attempt in attempts] == sorted(
        (attempt["id"] for attempt in attempts), reverse=True
    )
    assert service.call("GET", f"/v1/events/evt_{'0' * 26}/attempts").status_code == 404


def test_get_of_the_batch_is_not_allowed_and_not_taken_for_an_event(service):
    answer = service.call("GET", "/v1/events/batch")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
