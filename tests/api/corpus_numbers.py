"""The rows about numbers, ids, cursors, and who may ask."""

import json
import re
import secrets
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import httpx

from tests.api.conftest import KEY, Service
from tests.api.corpus import Recorder, assert_problem, covers, refused, refused_endpoint

UNKNOWN = "0" * 26


def _raw(service: Service, text: str, code: str, status: int = 422) -> None:
    """A body that Python's own encoder would not write."""
    body = b'{"url":"https://hooks.example.com/","events":["*"],%b}' % text.encode()
    refused(service, status, code, path="/v1/endpoints", body=body)


@covers("N01")
def a_base(service: Service, recorder: Recorder) -> None:
    for wrong in (0, -1, "5", True, 10**30):
        refused_endpoint(service, {"retry": {"base": wrong, "attempts": 3}}, "/retry/base")
    _raw(service, '"retry":{"base":1e309,"attempts":3}', "invalid_field")
    _raw(service, '"retry":{"base":NaN,"attempts":3}', "invalid_json", 400)


@covers("N02")
def attempts(service: Service, recorder: Recorder) -> None:
    for wrong in (0, -1, 1.5, 51, 10**9):
        refused_endpoint(service, {"retry": {"base": 1, "attempts": wrong}}, "/retry/attempts")
    for good in (1, 50):
        made = service.create(account="corpus", retry={"base": 1, "attempts": good})
        assert made["retry"]["attempts"] == good


@covers("N03")
def a_timeout(service: Service, recorder: Recorder) -> None:
    for wrong in (0, -1, 0.1, 999, 60_001):
        refused_endpoint(service, {"timeout_ms": wrong}, "/timeout_ms")
    for good in (1_000, 60_000):
        assert service.create(account="corpus", timeout_ms=good)["timeout_ms"] == good


@covers("N04")
def a_rate(service: Service, recorder: Recorder) -> None:
    for wrong in (0, -1, 1e-9, 10**18):
        refused_endpoint(service, {"rate_limit": {"per_second": wrong}}, "/rate_limit/per_second")
    refused_endpoint(service, {"rate_limit": {"per_second": 1, "burst": 0}}, "/rate_limit/burst")


@covers("N05")
def requests_in_flight(service: Service, recorder: Recorder) -> None:
    for wrong in (0, -1, 1_001, 10**9):
        refused_endpoint(service, {"max_in_flight": wrong}, "/max_in_flight")
    for good in (1, 1_000):
        assert service.create(account="corpus", max_in_flight=good)["max_in_flight"] == good


@covers("N06")
def a_moment(service: Service, recorder: Recorder) -> None:
    ahead = datetime.now(UTC) + timedelta(days=366)
    for wrong in (
        *(
            "9999-12-31T23:59:59Z",
            "292277026596",
            "2026-02-30",
            "2026-02-30T00:00:00Z",
            "2026-06-01T12:00:00",
        ),
        *("2026-12-31T23:59:60Z", "2026-03-29T02:30:00", "2026-03-29T02:30:00 Europe/Berlin"),
        *(
            ahead.strftime("%Y-%m-%dT%H:%M:%SZ"),
            (ahead + timedelta(days=36_500)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        ),
    ):
        body = {"type": "a.b", "payload": 1, "deliver_at": wrong}
        refused(service, 422, "invalid_field", body=body, pointer="/deliver_at")
    service.create(account="corpus-past", url=f"{recorder.url}/corpus-past", events=["*"])
    event = service.publish("a.b", "past", account="corpus-past", deliver_at="1970-01-01T00:00:00Z")
    (delivery,) = service.call("GET", f"/v1/events/{event['id']}/deliveries").json()["data"]
    assert delivery["due_at"] <= event["created_at"] or delivery["state"] == "delivered"


@covers("N07")
def no_moment(service: Service, recorder: Recorder) -> None:
    for wrong in (5, "* * * * *", "@reboot", "tomorrow"):
        body = {"type": "a.b", "payload": 1, "deliver_at": wrong}
        refused(service, 422, "invalid_field", body=body, pointer="/deliver_at")


@covers("N08")
def a_limit(service: Service, recorder: Recorder) -> None:
    for wrong in ("-1", "0", "201", str(10**9), "abc", "1e3", "\uff15\uff10", "", " 5", "+5", "5.0"):
        for path in ("/v1/events", "/v1/endpoints", "/v1/deliveries", "/v1/dead-letters", "/v1/replays"):
            found = refused(
                service, 422, "invalid_parameter", method="GET", path=f"{path}?limit={quote(wrong)}"
            )
            assert found["errors"][0]["pointer"] == "limit"


@covers("N09")
def a_cursor(service: Service, recorder: Recorder) -> None:
    for _ in range(3):
        service.create(account="corpus-cursor")
        service.create(account="corpus-other")
    good = service.call("GET", "/v1/endpoints?account=corpus-cursor&limit=1").json()["next_cursor"]
    others = service.call("GET", "/v1/endpoints?account=corpus-other&limit=1").json()["next_cursor"]
    # As if made with another key: an older installation's, or a guessed one.
    old = urlsafe_b64encode(bytes(16) + secrets.token_bytes(16)).decode().rstrip("=")
    edited = ("B" if good[3] != "B" else "C").join((good[:3], good[4:]))
    for wrong in (
        secrets.token_urlsafe(32),
        good[:-1],
        good[:20],
        others,
        "' OR 1=1--",
        edited,
        old,
        "",
        "\u00e9",
    ):
        path = f"/v1/endpoints?account=corpus-cursor&cursor={quote(wrong)}"
        refused(service, 422, "invalid_cursor", method="GET", path=path)
    for path in ("/v1/events?account=corpus-cursor", "/v1/deliveries?account=corpus-cursor", "/v1/replays?"):
        refused(service, 422, "invalid_cursor", method="GET", path=f"{path}&cursor={good}")
    assert service.call("GET", f"/v1/endpoints?account=corpus-cursor&cursor={good}").status_code == 200


@covers("N10")
def a_list_that_changes(service: Service, recorder: Recorder) -> None:
    account = "corpus-changing"
    made = [service.create(account=account)["id"] for _ in range(8)]
    path = f"/v1/endpoints?account={account}&limit=3"
    page = service.call("GET", path).json()
    seen = [each["id"] for each in page["data"]]
    assert seen == made[:-4:-1]
    service.create(account=account)
    for gone in (made[7], made[5], made[2]):  # seen, the last one seen (the cursor's own), not seen yet
        service.call("DELETE", f"/v1/endpoints/{gone}")
    while page["next_cursor"] is not None:
        page = service.call("GET", f"{path}&cursor={page['next_cursor']}").json()
        seen += [each["id"] for each in page["data"]]
        service.create(account=account)
    assert seen == [each for each in reversed(made) if each != made[2]]


@covers("N11")
def an_id(service: Service, recorder: Recorder) -> None:
    def body(path: str) -> bytes:
        """Everything but the request's id, byte for byte."""
        answer = service.raw(
            f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\r\n".encode()
        )
        found = assert_problem(answer, 404, "not_found")
        return answer.body.replace(str(found["request_id"]).encode(), b"")

    unknown = body(f"/v1/events/evt_{UNKNOWN}")
    for wrong in (
        *("evt_1'%20OR%201=1--", "evt_1'OR1=1--", "evt_%00", "../../x", "evt_" + "x" * 10_240),
        *(
            f"ep_{UNKNOWN}",
            UNKNOWN,
            f"evt_{UNKNOWN}0",
            "evt_",
            f"EVT_{UNKNOWN}",
            f"evt_{UNKNOWN.replace('0', 'w')}",
        ),
    ):
        for rest in ("", "/deliveries", "/attempts"):
            assert body(f"/v1/events/{wrong}{rest}") == unknown


@covers("N14")
def parameters(service: Service, recorder: Recorder) -> None:
    for query, code in (
        ("filters[]=x", "unknown_parameter"),
        ("state=delivered&state=dead", "invalid_parameter"),
        ("sort=payload", "unknown_parameter"),
        ("order=asc;drop", "unknown_parameter"),
    ):
        refused(service, 422, code, method="GET", path=f"/v1/deliveries?{query}")


@covers("N15")
def fields(service: Service, recorder: Recorder) -> None:
    refused_endpoint(service, {"evnets": ["*"]}, "/evnets", "unknown_field")
    refused_endpoint(service, {"events": "order.*"}, "/events")
    refused_endpoint(service, {"url": None}, "/url")
    refused_endpoint(service, {"url": 5}, "/url")
    refused_endpoint(service, {"enabled": "yes"}, "/enabled")
    refused(service, 422, "invalid_field", body={"type": None, "payload": 1}, pointer="/type")
    refused(service, 422, "invalid_field", body={"type": "a"}, pointer="/payload")
    order = {"filter": {"account": "a"}, "dry_run": "yes"}
    refused(service, 422, "invalid_field", path="/v1/replays", body=order, pointer="/dry_run")
    refused(service, 422, "invalid_parameter", method="GET", path="/v1/events?type=a&type=b")
    for path, body in (
        ("/v1/events", {"type": "x" * 5_000, "payload": 1}),
        ("/v1/events", {"y" * 5_000: 1}),
        ("/v1/endpoints", {"url": "z" * 5_000, "events": ["*"]}),
        ("/v1/endpoints", {"url": "https://a.example/", "events": ["w" * 5_000]}),
        ("/v1/replays", {"filter": {"v" * 5_000: 1}}),
    ):
        answer = service.call("POST", path, body)
        assert answer.status_code == 422
        assert not re.search(r"([v-z])\1{200}", answer.text)


@covers("N16")
def methods(service: Service, recorder: Recorder) -> None:
    made = {
        "endpoint_id": service.create(account="corpus-methods")["id"],
        "event_id": service.publish(account="corpus-methods")["id"],
    }
    described = service.call("GET", "/openapi.json").json()["paths"]
    for template, operations in described.items():
        path = re.sub(r"\{(\w+)\}", lambda name: made.get(name[1], UNKNOWN), template)
        allowed = {method.upper() for method in operations} | ({"HEAD"} if "get" in operations else set())
        for method in ("OPTIONS", "TRACE", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
            if method not in allowed:
                answer = service.call(method, path)
                assert answer.status_code == 405, (method, path)
                assert answer.headers["allow"] == ", ".join(sorted(allowed))
                if method != "HEAD":
                    assert answer.json()["code"] == "method_not_allowed"
        if "get" in operations:
            get, head = service.call("GET", path), service.call("HEAD", path)
            assert (head.status_code, head.content) == (get.status_code, b"")
            assert head.headers["content-type"] == get.headers["content-type"]
    before = service.counts()
    for method in ("FOO", "get", "post", "Post", "M-SEARCH2"):
        for key, expected in ((KEY, (405, "method_not_allowed")), ("wrong", (401, "unauthenticated"))):
            answer = service.raw(
                f"{method} /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
                'content-type: application/json\r\ncontent-length: 24\r\n\r\n{"type":"a","payload":1}'.encode()
            )
            assert_problem(answer, *expected)
            assert answer.headers.get("allow") == ("GET, HEAD, POST" if key == KEY else None)
    path = f"/v1/endpoints/{made['endpoint_id']}"
    for header in ("x_http_method_override", "x_http_method", "x_method_override"):
        assert service.call("GET", path, **{header: "DELETE"}).status_code == 200
    assert service.counts() == before


@covers("N17")
def paths(service: Service, recorder: Recorder) -> None:
    for path in (
        "//v1//events",
        "/v1/events/%2e%2e/admin",
        "/v1/events/",
        "/V1/Events",
        "/v1/./events",
        "/v1//events",
    ):
        for key in (KEY, "wrong"):
            head = f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n"
            answer = service.raw(head.encode())
            assert_problem(answer, *((404, "not_found") if key == KEY else (401, "unauthenticated")))
            assert "location" not in answer.headers


@covers("N18")
def a_key(service: Service, recorder: Recorder) -> None:
    def body(*lines: str, path: str = "/v1/endpoints") -> dict[str, object]:
        head = "".join(f"{line}\r\n" for line in lines)
        found = assert_problem(
            service.raw(f"GET {path} HTTP/1.1\r\nhost: x\r\n{head}\r\n".encode()), 401, "unauthenticated"
        )
        del found["request_id"]
        return found

    without = body()
    for lines in (
        ("authorization:",),
        ("authorization: Bearer",),
        ("authorization: Bearer ",),
        (f"authorization: Bearer {KEY}", f"authorization: Bearer {KEY}"),
        (f"authorization: Bearer {KEY}x",),
        (f"authorization: Bearer {KEY[:-1]}",),
        (f"authorization: Basic {KEY}",),
        (f"authorization: {KEY}",),
        ("authorization: Bearer hlk_" + secrets.token_hex(24),),
        (f"authorization: Bearer {'x' * 32_768}",),
        (f"x-api-key: {KEY}",),
    ):
        assert body(*lines) == without
    made = service.call("POST", "/v1/keys", {"scopes": ["read"]}).json()
    revoked = f"authorization: Bearer {made['key']}"
    assert service.call("GET", "/v1/endpoints", authorization=f"Bearer {made['key']}").status_code == 200
    assert service.call("DELETE", f"/v1/keys/{made['id']}").status_code == 204
    assert body(revoked) == without
    for name in ("key", "api_key", "token", "access_token"):
        assert body(path=f"/v1/endpoints?{name}={KEY}") == without
    assert body(f"authorization: Bearer {'x' * (1 << 20)}") == without
    assert KEY not in service.process.stderr


@covers("N19")
def an_account(service: Service, recorder: Recorder) -> None:
    for wrong in ("e\u0301", "\u00e9", "a\u200db"):
        refused(
            service,
            422,
            "invalid_field",
            body={"type": "a", "payload": 1, "account": wrong},
            pointer="/account",
        )
        body = {"url": "https://a.example/", "events": ["*"], "account": wrong}
        refused(service, 422, "invalid_field", path="/v1/endpoints", body=body, pointer="/account")
        path = f"/v1/events?account={quote(wrong)}"
        refused(service, 422, "invalid_parameter", method="GET", path=path)


@covers("N20")
def a_batch(service: Service, recorder: Recorder) -> None:
    one = {"type": "a.b", "payload": 1, "account": "corpus-batch"}
    refused(service, 422, "too_many_events", path="/v1/events/batch", body={"events": [one] * 1_001})
    before = service.counts()["events"]
    events = [{**one, "type": "not a type" if n == 42 else "a.b"} for n in range(100)]
    answer = service.call("POST", "/v1/events/batch", {"events": events})
    assert answer.status_code == 202
    results = answer.json()["results"]
    assert [place for place, result in enumerate(results) if "error" in result] == [42]
    assert results[42]["error"]["errors"][0]["pointer"] == "/events/42/type"
    assert service.counts()["events"] == before + 99
    keyed = {**one, "idempotency_key": "corpus-twice"}
    first, second = service.call("POST", "/v1/events/batch", {"events": [keyed, keyed]}).json()["results"]
    assert (first["duplicate"], second["duplicate"], second["id"]) == (False, True, first["id"])
    assert (
        json.loads(service.call("GET", f"/v1/events/{first['id']}").content)["idempotency_key"]
        == "corpus-twice"
    )


class _Bound:
    """Calls with a key that is bound to an account, and things of another account."""

    def __init__(self, service: Service, recorder: Recorder, *, account: str) -> None:
        key = service.call("POST", "/v1/keys", {"scopes": ["admin"], "account": account})
        assert key.status_code == 201, key.text
        self._service = service
        self._headers = {"authorization": f"Bearer {key.json()['key']}"}
        theirs = f"{account}-theirs"
        self.theirs = theirs
        endpoint = service.create(account=theirs, url=f"{recorder.url}/{theirs}")["id"]
        event = service.publish(account=theirs)["id"]
        delivery = event.replace("evt_", "dlv_")
        job = service.call("POST", "/v1/replays", {"filter": {"account": theirs}}).json()["id"]
        self.ids = {"endpoint": endpoint, "event": event, "delivery": delivery, "replay": job}

    def __call__(self, method: str, path: str, body: object = None) -> httpx.Response:
        return self._service.call(method, path, body, **self._headers)

    def refused_alike(self, method: str, path: str, noun: str, body: object = None) -> None:
        """Check that another account's id is answered exactly like one that does not exist, and nothing is changed."""
        before = self._service.counts()
        unknown = re.sub(r"_.*", f"_{UNKNOWN}", self.ids[noun])
        said = []
        for id in (self.ids[noun], unknown):
            sent = json.loads(json.dumps(body).replace("ID", id)) if body is not None else None
            found = assert_problem(self(method, path.replace("ID", id), sent), 404, "not_found")
            said.append(json.dumps({**found, "request_id": ""}).replace(id, "ID"))
        assert said[0] == said[1]
        assert self._service.counts() == before


@covers("N12")
def an_id_of_another_account(service: Service, recorder: Recorder) -> None:
    call = _Bound(service, recorder, account="corpus-N12")
    before = service.call("GET", f"/v1/endpoints/{call.ids['endpoint']}").json()
    for method, path, noun, body in (
        ("GET", "/v1/endpoints/ID", "endpoint", None),
        ("PATCH", "/v1/endpoints/ID", "endpoint", {"description": "mine now"}),
        ("DELETE", "/v1/endpoints/ID", "endpoint", None),
        ("POST", "/v1/endpoints/ID/disable", "endpoint", None),
        ("POST", "/v1/endpoints/ID/test", "endpoint", None),
        ("POST", "/v1/endpoints/ID/circuit/reset", "endpoint", None),
        ("GET", "/v1/endpoints/ID/stats", "endpoint", None),
        ("GET", "/v1/endpoints/ID/secret", "endpoint", None),
        ("POST", "/v1/endpoints/ID/secret/rotate", "endpoint", None),
        ("GET", "/v1/endpoints/ID/deliveries", "endpoint", None),
        ("GET", "/v1/events/ID", "event", None),
        ("GET", "/v1/events/ID/deliveries", "event", None),
        ("GET", "/v1/events/ID/attempts", "event", None),
        ("POST", "/v1/events/ID/replay", "event", None),
        ("GET", "/v1/deliveries/ID", "delivery", None),
        ("GET", "/v1/deliveries/ID/attempts", "delivery", None),
        ("POST", "/v1/deliveries/ID/retry", "delivery", None),
        ("POST", "/v1/deliveries/ID/cancel", "delivery", None),
        ("POST", "/v1/dead-letters/ID/replay", "delivery", None),
        ("POST", "/v1/dead-letters/ID/discard", "delivery", None),
        ("GET", "/v1/replays/ID", "replay", None),
        ("POST", "/v1/replays", "delivery", {"filter": {"ids": ["ID"]}}),
        ("POST", "/v1/replays", "delivery", {"filter": {"ids": ["ID"]}, "dry_run": True}),
        ("POST", "/v1/discards", "delivery", {"filter": {"ids": ["ID"]}}),
        ("POST", "/v1/replays", "endpoint", {"filter": {"endpoint_id": "ID"}}),
    ):
        call.refused_alike(method, path, noun, body)
    for path in (
        f"/v1/deliveries?endpoint_id={call.ids['endpoint']}",
        f"/v1/deliveries?event_id={call.ids['event']}",
        f"/v1/dead-letters?endpoint_id={call.ids['endpoint']}",
        *("/v1/events", "/v1/endpoints", "/v1/deliveries", "/v1/replays"),
    ):
        assert call("GET", path).json() == {"data": [], "next_cursor": None}
    # One of another account's among one's own: none of them is done.
    made = call("POST", "/v1/endpoints", {"url": f"{recorder.url}/mine", "events": ["*"]}).json()
    own = call("POST", "/v1/events", {"type": "a", "payload": 1}).json()["id"].replace("evt_", "dlv_")
    jobs = service.counts()["jobs"]
    both = {"filter": {"ids": [own, call.ids["delivery"]]}}
    assert_problem(call("POST", "/v1/replays", both), 404, "not_found")
    assert service.counts()["jobs"] == jobs
    assert made["account"] == "corpus-N12"
    after = service.call("GET", f"/v1/endpoints/{call.ids['endpoint']}").json()
    assert {**after, "circuit_state": None} == {**before, "circuit_state": None}


@covers("N13")
def fields_that_name_another_account(service: Service, recorder: Recorder) -> None:
    call = _Bound(service, recorder, account="corpus-N13")
    event = {"type": "a", "payload": 1}
    new = {"url": "https://a.example/", "events": ["*"]}
    refused(service, 422, "unknown_field", body={**event, "tenant_id": "x"}, pointer="/tenant_id")
    refused_endpoint(service, {"tenant_id": "x"}, "/tenant_id", "unknown_field")
    before = service.counts()
    for method, path, body, pointer in (
        ("POST", "/v1/events", {**event, "account": call.theirs}, "/account"),
        ("POST", "/v1/endpoints", {**new, "account": call.theirs}, "/account"),
        ("POST", "/v1/replays", {"filter": {"account": call.theirs}}, "/filter/account"),
        ("GET", f"/v1/events?account={call.theirs}", None, "account"),
        ("GET", f"/v1/endpoints?account={call.theirs}", None, "account"),
        ("GET", f"/v1/deliveries?account={call.theirs}", None, "account"),
    ):
        found = assert_problem(call(method, path, body), 422, "account_mismatch")
        assert [each["pointer"] for each in found["errors"]] == [pointer]
    batch = call("POST", "/v1/events/batch", {"events": [{**event, "account": call.theirs}]}).json()
    assert [result["error"]["code"] for result in batch["results"]] == ["account_mismatch"]
    assert service.counts() == before
    own = call("POST", "/v1/events", event).json()
    assert own["account"] == "corpus-N13"
    call.refused_alike("POST", f"/v1/events/{own['id']}/replay", "endpoint", {"endpoint_id": "ID"})
