"""What `/v1/health` shows, and the counts of endpoints."""

from datetime import datetime

from answering import eventually, receiving

FIELDS = {
    *("pending", "awaiting_retry", "in_flight", "dead", "delivered_last_hour", "failed_last_hour"),
    *("oldest_pending_age_s", "oldest_due_age_s", "mean_response_ms_last_hour", "delivery_rate"),
    *("end_to_end_ms", "circuits_open", "outbox_refused", "workers", "as_of"),
}
COUNTS = ("pending", "awaiting_retry", "in_flight", "dead", "failed_last_hour")


def health(service, query="", **headers):
    answer = service.call("GET", f"/v1/health{query}", **headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def once_counted(service, query, **expected):
    """Wait for the next look."""

    def look():
        shown = health(service, query)
        return shown if expected.items() <= shown.items() else None

    return eventually(look)


def counts_of(service, endpoint):
    return service.call("GET", f"/v1/endpoints/{endpoint['id']}").json()["counts"]


def test_an_idle_server_is_healthy(service):
    eventually(lambda: health(service)["as_of"])
    shown = once_counted(service, "?account=idle", workers=1)  # on a busy machine it is silent at times
    assert shown.keys() == FIELDS
    assert shown["end_to_end_ms"] == {"p50": None, "p95": None, "p99": None}
    assert {name: shown[name] for name in COUNTS} == dict.fromkeys(COUNTS, 0)
    for name in ("oldest_pending_age_s", "oldest_due_age_s", "mean_response_ms_last_hour", "delivery_rate"):
        assert shown[name] is None
    assert datetime.fromisoformat(shown["as_of"]).tzinfo is not None


def test_what_waits_and_what_is_dead_is_counted_for_an_account_and_its_endpoints(service):
    with receiving() as receiver:
        rejects = service.create(account="sick", url=f"{receiver.url}/404", events=["a.*"])
        fails = service.create(
            account="sick",
            url=f"{receiver.url}/500",
            events=["a.*"],
            retry={"schedule": [0, 3_600], "jitter": "none"},  # not while this test looks
        )
        paused = service.create(account="sick", url=f"{receiver.url}/200", events=["a.*"], paused=True)
        service.publish("a.b", account="sick")
        service.publish("a.b", account="sick")
        shown = once_counted(
            service, "?account=sick", pending=2, awaiting_retry=2, dead=2, failed_last_hour=4
        )
        assert shown["oldest_pending_age_s"] > 0
        assert shown["circuits_open"] == 0
        once_counted(service, "?account=sick", in_flight=0)
        assert counts_of(service, rejects) == {"pending": 0, "awaiting_retry": 0, "in_flight": 0, "dead": 2}
        assert counts_of(service, fails) == {"pending": 0, "awaiting_retry": 2, "in_flight": 0, "dead": 0}
        assert counts_of(service, paused) == {"pending": 2, "awaiting_retry": 0, "in_flight": 0, "dead": 0}
        listed = service.call("GET", "/v1/endpoints?account=sick").json()["data"]
        assert sum(each["counts"]["pending"] for each in listed) == 2
        total = health(service)
        assert all(total[name] >= shown[name] for name in ("pending", "awaiting_retry", "dead"))
        assert once_counted(service, "?account=idle", pending=0, dead=0)
        for each in (rejects, fails, paused):
            service.call("DELETE", f"/v1/endpoints/{each['id']}")
        once_counted(service, "?account=sick", pending=0, awaiting_retry=0, dead=0)


def test_a_key_of_one_account_sees_its_own_health_alone(service):
    key = service.call("POST", "/v1/keys", {"scopes": ["read"], "account": "green"}).json()["key"]
    bearer = {"authorization": f"Bearer {key}"}
    endpoint = service.create(account="green", events=["g.*"], paused=True)
    other = service.create(account="blue", events=["g.*"], paused=True)
    service.publish("g.h", account="green")
    for _ in range(3):
        service.publish("g.h", account="blue")
    once_counted(service, "?account=blue", pending=3)
    assert eventually(lambda: health(service, **bearer)["pending"] or None) == 1
    assert counts_of(service, endpoint)["pending"] == 1
    refused = service.call("GET", "/v1/health?account=blue", **bearer)
    assert (refused.status_code, refused.json()["code"]) == (422, "account_mismatch")
    for each in (endpoint, other):
        service.call("DELETE", f"/v1/endpoints/{each['id']}")


def test_a_parameter_that_is_none_is_refused(service):
    answer = service.call("GET", "/v1/health?acount=red")
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_parameter")


def test_the_time_from_publish_to_delivery_is_shown_when_something_was_delivered(service):
    with receiving() as receiver:
        endpoint = service.create(account="timely", url=f"{receiver.url}/200", events=["t.*"])
        for _ in range(3):
            service.publish("t.u", account="timely")
        shown = eventually(
            lambda: (
                found if (found := health(service, "?account=timely"))["delivered_last_hour"] == 3 else None
            )
        )
        for each in (shown, health(service)):
            assert set(each["end_to_end_ms"]) == {"p50", "p95", "p99"}
            assert all(number > 0 for number in each["end_to_end_ms"].values())
        service.call("DELETE", f"/v1/endpoints/{endpoint['id']}")
