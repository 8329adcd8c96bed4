"""What the API shows of deliveries and their attempts."""

import http.server
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from answering import eventually
from hookline.rfc3339 import read

HELD, LET_GO = threading.Event(), threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/hold":
            HELD.set()
            LET_GO.wait(60)
        status = 200 if self.path == "/hold" else int(self.path.strip("/"))
        body = b"caf\xc3\xa9 \xff"
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-answer", "yes")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def receiver() -> Iterator[str]:
    """Answers with the status that the path names."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    LET_GO.set()
    server.shutdown()
    thread.join()
    server.server_close()


def delivery_of(service: Any, event: dict[str, Any], *, state: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        (delivery,) = service.call("GET", f"/v1/events/{event['id']}/deliveries").json()["data"]
        return delivery if delivery["state"] == state else None

    return eventually(look)


def test_a_delivered_delivery_and_its_attempt(service, receiver):
    endpoint = service.create(account="ok", url=f"{receiver}/200", headers={"x-token": "canary"})
    event = service.publish(account="ok", payload={"n": 1})
    delivery = delivery_of(service, event, state="delivered")
    assert delivery == {
        "id": "dlv_" + event["id"].removeprefix("evt_"),
        "event_id": event["id"],
        "endpoint_id": endpoint["id"],
        "account": "ok",
        "event_type": "order.paid",
        "state": "delivered",
        "attempts": 1,
        "max_attempts": 7,
        "due_at": delivery["due_at"],
        "in_flight": False,
        "waiting_for": None,
        "last_status": 200,
        "last_duration_ms": delivery["last_duration_ms"],
        "last_error": None,
        "reason": None,
        "created_at": event["created_at"],
        "delivered_at": delivery["delivered_at"],
        "dead_at": None,
        "replays": 0,
        "last_death": None,
    }
    # The store's time is read at intervals, so it may step back by a little between the two.
    assert abs(read(delivery["delivered_at"]) - read(event["created_at"])) < 60
    assert delivery["last_duration_ms"] > 0
    assert service.call("GET", f"/v1/deliveries/{delivery['id']}").json() == delivery
    page = service.call("GET", f"/v1/deliveries/{delivery['id']}/attempts").json()
    (attempt,) = page["data"]
    assert page["next_cursor"] is None
    assert attempt == {
        "id": attempt["id"],
        "delivery_id": delivery["id"],
        "number": 1,
        "at": attempt["at"],
        "status": 200,
        "duration_ms": attempt["duration_ms"],
        "phases_ms": attempt["phases_ms"],
        "error": None,
        "request": {"url": attempt["request"]["url"], "headers": None},
        "response_headers": None,
        "response_body": "café \ufffd",
        "response_truncated": False,
        "final_url": None,
        "late": False,
    }
    assert attempt["id"].startswith("att_")
    assert set(attempt["phases_ms"]) == {"dns", "connect", "tls", "first_byte"}
    counts = service.call("GET", f"/v1/events/{event['id']}").json()["deliveries"]
    assert counts == {"pending": 0, "delivered": 1, "dead": 0, "cancelled": 0}


def test_a_rejected_delivery_is_dead_and_says_why(service, receiver):
    service.create(account="bad", url=f"{receiver}/400", headers={"x-token": "canary"})
    event = service.publish(account="bad")
    delivery = delivery_of(service, event, state="dead")
    assert (delivery["reason"], delivery["last_status"]) == ("rejected", 400)
    assert delivery["last_error"]["kind"] == "http_4xx"
    assert delivery["dead_at"] is not None
    answer = service.call("GET", f"/v1/deliveries/{delivery['id']}/attempts")
    (attempt,) = answer.json()["data"]
    assert attempt["error"]["kind"] == "http_4xx"
    assert attempt["request"]["url"] == f"{receiver}/400"
    assert attempt["response_headers"]["x-answer"] == "yes"
    assert {name.lower() for name in attempt["request"]["headers"]} >= {
        "webhook-id",
        "webhook-signature",
        "x-token",
    }
    assert "canary" not in answer.text


def test_a_failed_delivery_waits_until_it_is_due_again(service, receiver):
    service.create(account="retry", url=f"{receiver}/500")
    event = service.publish(account="retry")

    def look() -> dict[str, Any] | None:
        (delivery,) = service.call("GET", f"/v1/events/{event['id']}/deliveries").json()["data"]
        return delivery if delivery["attempts"] else None

    delivery = eventually(look)
    assert (delivery["state"], delivery["waiting_for"]) == ("pending", "due")
    assert delivery["due_at"] > delivery["created_at"]


def test_a_scheduled_delivery_waits_until_it_is_due_and_a_disabled_endpoint_s_for_that(service):
    later = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    endpoint = service.create(account="waits")
    event = service.publish(account="waits", deliver_at=later)

    def waiting_for() -> str:
        (delivery,) = service.call("GET", "/v1/deliveries?account=waits").json()["data"]
        assert delivery["event_id"] == event["id"]
        return str(delivery["waiting_for"])

    assert waiting_for() == "due"
    service.call("PATCH", f"/v1/endpoints/{endpoint['id']}", {"enabled": False})
    assert waiting_for() == "disabled"


def test_what_is_being_sent_is_in_flight_and_what_is_behind_it_waits_for_a_slot(service, receiver):
    HELD.clear()
    LET_GO.clear()
    service.create(account="busy", url=f"{receiver}/hold", max_in_flight=1, timeout_ms=60_000)
    first, second = service.publish(account="busy"), service.publish(account="busy")
    assert HELD.wait(60)
    data = service.call("GET", "/v1/deliveries?account=busy").json()["data"]
    shown = {each["event_id"]: (each["in_flight"], each["waiting_for"]) for each in data}
    assert shown == {first["id"]: (True, None), second["id"]: (False, "slot")}
    LET_GO.set()
    for event in (first, second):
        assert delivery_of(service, event, state="delivered")["in_flight"] is False


def test_deliveries_are_listed_newest_first_and_filtered(service):
    later = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    first = service.create(account="lists", events=["*"])["id"]
    second = service.create(account="lists", events=["b.*"])["id"]
    a = service.publish("a", account="lists", deliver_at=later)
    b = service.publish("b.c", account="lists", deliver_at=later)

    def listed(query: str = "") -> list[tuple[str, str]]:
        data = service.call("GET", f"/v1/deliveries?account=lists{query}").json()["data"]
        return [(each["event_id"], each["endpoint_id"]) for each in data]

    all_three = listed()
    assert sorted(all_three) == sorted([(a["id"], first), (b["id"], first), (b["id"], second)])
    assert [event for event, _ in all_three] == [b["id"], b["id"], a["id"]]
    assert listed(f"&endpoint_id={second}") == [(b["id"], second)]
    assert listed(f"&event_id={a['id']}") == [(a["id"], first)]
    assert listed("&event_type=a") == [(a["id"], first)]
    assert listed("&state=pending") == all_three
    assert listed("&state=dead") == []
    assert listed(f"&endpoint_id=ep_{'0' * 26}") == []
    # The store's time is read at intervals, so it may step back by a little between the two.
    since_b = [each for each in all_three if each[0] == b["id"] or a["created_at"] >= b["created_at"]]
    assert listed(f"&since={b['created_at']}") == since_b
    assert listed(f"&until={b['created_at']}") == [each for each in all_three if each not in since_b]
    page = service.call("GET", "/v1/deliveries?account=lists&limit=2").json()
    rest = service.call("GET", f"/v1/deliveries?account=lists&limit=2&cursor={page['next_cursor']}").json()
    assert [(d["event_id"], d["endpoint_id"]) for d in page["data"] + rest["data"]] == all_three
    assert rest["next_cursor"] is None
    only_b = service.call("GET", f"/v1/events/{b['id']}/deliveries?limit=1&state=pending").json()
    assert (len(only_b["data"]), only_b["next_cursor"] is None) == (1, False)


def test_deleting_an_endpoint_cancels_what_waits_for_it(service):
    later = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    endpoint = service.create(account="deleted")
    event = service.publish(account="deleted", deliver_at=later)
    service.call("DELETE", f"/v1/endpoints/{endpoint['id']}")
    delivery = delivery_of(service, event, state="cancelled")
    assert delivery["reason"] == "endpoint_deleted"
