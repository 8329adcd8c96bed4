"""Invalid input is answered with a problem that has a stable code, and nothing is stored."""

import json

import pytest

GOOD = {"type": "order.paid", "payload": 1}
ENDPOINT = {"url": "https://hooks.example.com/", "events": ["*"]}
UNKNOWN = "0" * 26


def event(**fields: object) -> bytes:
    return json.dumps({**GOOD, **fields}).encode()


def endpoint(**fields: object) -> bytes:
    return json.dumps({**ENDPOINT, **fields}).encode()


BODIES = [
    # what cannot be parsed
    ("/v1/events", b"", 400, "invalid_json", None),
    ("/v1/events", b"{", 400, "invalid_json", None),
    ("/v1/events", b'{"type":"a.b","payload":1', 400, "invalid_json", None),
    ("/v1/events", b'{"type":"a.b","payload":1} x', 400, "invalid_json", None),
    ("/v1/events", b'{"type":"a.b","payload":NaN}', 400, "invalid_json", None),
    ("/v1/events", b'{"type":"a.b","payload":-Infinity}', 400, "invalid_json", None),
    ("/v1/events", b'{"type":"a.b","payload":{"s":"\\ud800"}}', 400, "invalid_json", None),
    ("/v1/events", b'{"type":"a.b","payload":{"s":"\\udc00\\ud800"}}', 400, "invalid_json", None),
    ("/v1/events", b'{"type":"a.b","payload":"\x01"}', 400, "invalid_json", None),
    ("/v1/events", b'{"type":"a.b","payload":"\xff\xfe"}', 400, "invalid_json", None),
    ("/v1/events", b'{"type":"\xff","payload":1}', 400, "invalid_json", None),
    ("/v1/events", b"\xef\xbb\xbf" + event(), 400, "invalid_json", None),
    ("/v1/events", event().decode().encode("utf-16-le"), 400, "invalid_json", None),
    ("/v1/events", b'{"unknown":1, nonsense', 400, "invalid_json", None),
    ("/v1/events", b'{"type":"a.b","type":"c.d","payload":1}', 400, "duplicate_key", None),
    ("/v1/events", b'{"type":"a.b","payload":1,"payload":1}', 400, "duplicate_key", None),
    ("/v1/events", b'{"payload":1,"type":"a.b","payload":2}', 400, "duplicate_key", None),
    ("/v1/events", b'{"type":"a.b","t\\u0079pe":"a.b","payload":1}', 400, "duplicate_key", None),
    ("/v1/events", b'{"type":"a.b","payload":1,"account":null,"account":null}', 400, "duplicate_key", None),
    ("/v1/events", b'{"x":1,"x":2}', 400, "duplicate_key", None),
    ("/v1/events", b'{"type":"a.b","payload":' + b"[" * 65 + b"]" * 65 + b"}", 400, "too_deep", None),
    ("/v1/events", b'{"type":"a.b","payload":' + b"[" * 1_000 + b"]" * 1_000 + b"}", 400, "too_deep", None),
    ("/v1/events", b'{"type":"a.b","payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "too_deep", None),
    ("/v1/events", b'{"x":' + b"[" * 900 + b"]" * 900 + b"}", 400, "too_deep", None),
    ("/v1/events/batch", b"", 400, "invalid_json", None),
    ("/v1/events/batch", b'{"events":[],"events":[]}', 400, "duplicate_key", None),
    ("/v1/events/batch", b'{"events":[' + b"[" * 2_000 + b"]" * 2_000 + b"]}", 400, "too_deep", None),
    ("/v1/endpoints", b"", 400, "invalid_json", None),
    ("/v1/endpoints", b'{"url":"https://a.example/","url":"https://b.example/","events":["*"]}', 400, "duplicate_key", None),
    ("/v1/endpoints", b'{"metadata":' + b"[" * 65 + b"]" * 65 + b"}", 400, "too_deep", None),
    ("/v1/endpoints", b'{"description":"\\ud800"}', 400, "invalid_json", None),
    # what can be parsed but is invalid
    ("/v1/events", b"[]", 422, "invalid_field", ""),
    ("/v1/events", b'"text"', 422, "invalid_field", ""),
    ("/v1/events", b"null", 422, "invalid_field", ""),
    ("/v1/events", b"5", 422, "invalid_field", ""),
    ("/v1/events", b"{}", 422, "invalid_field", "/type"),
    ("/v1/events", b'{"type":"a.b"}', 422, "invalid_field", "/payload"),
    ("/v1/events", b'{"payload":1}', 422, "invalid_field", "/type"),
    ("/v1/events", event(id="a.b"), 422, "unknown_field", "/id"),
    ("/v1/events", event(tenant_id="x"), 422, "unknown_field", "/tenant_id"),
    ("/v1/events", b'{"type":"a.b","payloda":1}', 422, "unknown_field", "/payloda"),
    ("/v1/events", event(**{"a/b~": 1}), 422, "unknown_field", "/a~1b~0"),
    *[
        ("/v1/events", event(type=wrong), 422, "invalid_field", "/type")
        for wrong in [5, None, "", "a b", "a\r\nX: y", ".", "a..b", "a.b.", "a-b", "A.\u0441", "\u0130", "ａ", "x" * 129]
    ],
    *[
        ("/v1/events", event(account=wrong), 422, "invalid_field", "/account")
        for wrong in [5, "", "a b", "e\u0301", "é", "a\u200d", "x" * 65, ["a"]]
    ],
    *[
        ("/v1/events", event(idempotency_key=wrong), 422, "invalid_field", "/idempotency_key")
        for wrong in [5, "", "a b", "é", "x" * 256, "a\n", {}]
    ],
    *[
        ("/v1/events", event(deliver_at=wrong), 422, "invalid_field", "/deliver_at")
        for wrong in [
            *(5, 1.5, "", "tomorrow", "@reboot", "* * * * *", "2026-02-30T00:00:00Z", "2026-02-30", "292277026596"),
            *("2026-01-01T00:00:00", "2026-01-01T00:00:60Z", "2126-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
        ]
    ],
    ("/v1/events/batch", b"[]", 422, "invalid_field", ""),
    ("/v1/events/batch", b"{}", 422, "invalid_field", "/events"),
    ("/v1/events/batch", b'{"events":[]}', 422, "invalid_field", "/events"),
    ("/v1/events/batch", b'{"events":{}}', 422, "invalid_field", "/events"),
    ("/v1/events/batch", b'{"evnets":[]}', 422, "unknown_field", "/evnets"),
    ("/v1/endpoints", b"[]", 422, "invalid_field", ""),
    ("/v1/endpoints", b"{}", 422, "invalid_field", "/url"),
    ("/v1/endpoints", b'{"url":"https://hooks.example.com/"}', 422, "invalid_field", "/events"),
    ("/v1/endpoints", endpoint(url="http://10.0.0.1/"), 422, "url_forbidden", "/url"),
    ("/v1/endpoints", endpoint(url="http://2130706433/"), 422, "url_invalid", "/url"),
    ("/v1/endpoints", endpoint(url="http://hooks.example.com/\r\nX-Evil: 1"), 422, "url_invalid", "/url"),
    ("/v1/endpoints", endpoint(headers={"Host": "x"}), 422, "reserved_header", "/headers/Host"),
    ("/v1/endpoints", endpoint(headers={"X-A": "a\r\nb"}), 422, "invalid_field", "/headers/X-A"),
    ("/v1/endpoints", endpoint(timeout_ms=0), 422, "invalid_field", "/timeout_ms"),
    ("/v1/endpoints", b'{"url":"https://a.example/","events":["*"],"timeout_ms":1e309}', 422, "invalid_field", ""),
    ("/v1/endpoints", b'{"url":"https://a.example/","events":["*"],"metadata":{"n":%b}}' % (b"9" * 5_000), 422, "invalid_field", ""),
    ("/v1/endpoints", endpoint(max_in_flight=True), 422, "invalid_field", "/max_in_flight"),
    ("/v1/endpoints", endpoint(event=["*"]), 422, "unknown_field", "/event"),
    ("/v1/endpoints", endpoint(secret="whsec_AAAA"), 422, "invalid_field", "/secret"),
    ("/v1/endpoints", endpoint(description="x" * 1_001), 422, "invalid_field", "/description"),
    *[
        ("/v1/endpoints", endpoint(retry=wrong), 422, "invalid_field", pointer)
        for wrong, pointer in [
            ({"schedule": []}, "/retry/schedule"),
            ({"schedule": [0, -1]}, "/retry/schedule/1"),
            ({"schedule": [0, 30 * 86_400 + 1]}, "/retry/schedule/1"),
            ({"schedule": [0] * 51}, "/retry/schedule"),
            ({"schedule": [0], "jitter": "wild"}, "/retry/jitter"),
            ({"base": 0, "attempts": 5}, "/retry/base"),
            ({"base": 1, "attempts": 51}, "/retry/attempts"),
            ({"base": 60, "attempts": 50, "cap": None}, "/retry/cap"),
            ({"preset": "impatient"}, "/retry/preset"),
            ({}, "/retry"),
            ("patient", "/retry"),
        ]
    ],
    ("/v1/endpoints", b'{"url":"https://a.example/","events":["*"],"retry":{"schedule":[0,NaN]}}', 400, "invalid_json", None),
    ("/v1/endpoints", b'{"url":"https://a.example/","events":["*"],"retry":{"schedule":[0,1e999]}}', 422, "invalid_field", ""),
    ("/v1/endpoints", endpoint(retry={"preset": "brisk", "tries": 3}), 422, "unknown_field", "/retry/tries"),
    ("/v1/endpoints", endpoint(retry_statuses=["9xx"]), 422, "invalid_field", "/retry_statuses/0"),
    ("/v1/endpoints", endpoint(retry_statuses=[99]), 422, "invalid_field", "/retry_statuses/0"),
    ("/v1/endpoints", endpoint(retry_statuses="5xx"), 422, "invalid_field", "/retry_statuses"),
    ("/v1/endpoints", endpoint(rate_limit={"per_second": 0}), 422, "invalid_field", "/rate_limit/per_second"),
    ("/v1/endpoints", endpoint(rate_limit={"per_second": 1e9}), 422, "invalid_field", "/rate_limit/per_second"),
    ("/v1/endpoints", b'{"url":"https://a.example/","events":["*"],"rate_limit":{"per_second":NaN}}', 400, "invalid_json", None),
    ("/v1/endpoints", endpoint(rate_limit=5), 422, "invalid_field", "/rate_limit"),
    ("/v1/endpoints", endpoint(circuit={"cooldown_s": 0}), 422, "invalid_field", "/circuit/cooldown_s"),
    ("/v1/endpoints", endpoint(circuit={"failure_rate": 50}), 422, "invalid_field", "/circuit/failure_rate"),
    ("/v1/endpoints", endpoint(ordering="fifo"), 422, "invalid_field", "/ordering"),
    ("/v1/endpoints", endpoint(max_redirects=4), 422, "invalid_field", "/max_redirects"),
    ("/v1/endpoints", endpoint(circuit_state={}), 422, "unknown_field", "/circuit_state"),
    *[
        (f"/v1/{path}", body, 422, code, pointer)
        for path in ("replays", "discards")
        for body, code, pointer in [
            (b"{}", "invalid_field", "/filter"),
            (b'{"filter":{}}', "invalid_field", "/filter"),
            (b'{"filter":null}', "invalid_field", "/filter"),
            (b'{"filter":{"account":"a"},"dry_run":"yes"}', "invalid_field", "/dry_run"),
            (b'{"filter":{"account":"a"},"dryrun":true}', "unknown_field", "/dryrun"),
            (b'{"filter":{"state":"dead"}}', "unknown_field", "/filter/state"),
            (b'{"filter":{"reason":"unlucky"}}', "invalid_field", "/filter/reason"),
            (b'{"filter":{"ids":[]}}', "invalid_field", "/filter/ids"),
            (b'{"ids":[]}', "unknown_field", "/ids"),
        ]
    ],
    # too much
    ("/v1/events", b'{"type":"a.b","payload":"' + b"x" * ((1 << 20) - 1) + b'"}', 413, "too_large", None),
    ("/v1/events", b'{"type":"a.b","payload":"' + b"x" * (2 << 20) + b'"}', 413, "too_large", None),
    ("/v1/events/batch", b" " * ((16 << 20) + 1), 413, "too_large", None),
    ("/v1/endpoints", b" " * ((1 << 20) + 1), 413, "too_large", None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "code", "pointer"), BODIES)
def test_a_bad_body_is_one_problem_and_stores_nothing(service, path, body, status, code, pointer):
    before = service.counts()
    answer = service.call("POST", path, body)
    assert_problem(answer, status, code)
    if pointer is not None:
        assert [culprit["pointer"] for culprit in answer.json()["errors"]] == [pointer]
    assert service.counts() == before


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"content-type": "text/plain"}, 415, "unsupported_media_type"),
        ({"content-type": "application/json; charset=latin-1"}, 415, "unsupported_media_type"),
        ({"content-type": "multipart/form-data; boundary=x"}, 415, "unsupported_media_type"),
        ({"content-type": "application/x-www-form-urlencoded"}, 415, "unsupported_media_type"),
        ({"content-type": "application/jsonp"}, 415, "unsupported_media_type"),
        ({"content-type": ""}, 415, "unsupported_media_type"),
        ({"content-encoding": "gzip"}, 415, "unsupported_media_type"),
        ({"content-encoding": "identity"}, 415, "unsupported_media_type"),
        ({"idempotency-key": "x" * 256}, 422, "invalid_field"),
        ({"idempotency-key": ""}, 422, "invalid_field"),
        ({"idempotency-key": "a b"}, 422, "invalid_field"),
        ({"idempotency-key": "other"}, 422, "invalid_field"),
    ],
)
def test_a_bad_header_is_one_problem_and_stores_nothing(service, headers, status, code):
    before = service.counts()
    body = event(idempotency_key="one") if headers.get("idempotency-key") == "other" else event()
    assert_problem(service.call("POST", "/v1/events", body, **headers), status, code)
    assert service.counts() == before


@pytest.mark.parametrize(
    "media", ["application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"', "application/json;"]
)
def test_json_in_utf_8_may_be_spelled_in_several_ways(service, media):
    assert service.call("POST", "/v1/events", event(), content_type=media).status_code == 202


@pytest.mark.parametrize(
    ("path", "code", "name"),
    [
        ("/v1/deliveries?stat=dead", "unknown_parameter", "stat"),
        ("/v1/deliveries?filters[]=x", "unknown_parameter", "filters[]"),
        ("/v1/deliveries?sort=payload", "unknown_parameter", "sort"),
        ("/v1/deliveries?state=delivered&state=dead", "invalid_parameter", "state"),
        ("/v1/deliveries?state=lost", "invalid_parameter", "state"),
        *[(f"/v1/deliveries?limit={limit}", "invalid_parameter", "limit") for limit in ("-1", "0", "201", "1000000000", "abc", "1e3", "", "%EF%BC%95%EF%BC%90")],
        ("/v1/deliveries?since=yesterday", "invalid_parameter", "since"),
        ("/v1/deliveries?until=2026-01-01T00:00:00", "invalid_parameter", "until"),
        ("/v1/deliveries?endpoint_id=x", "invalid_parameter", "endpoint_id"),
        ("/v1/deliveries?event_id=ep_" + UNKNOWN, "invalid_parameter", "event_id"),
        ("/v1/deliveries?account=a%20b", "invalid_parameter", "account"),
        ("/v1/deliveries?event_type=a..b", "invalid_parameter", "event_type"),
        ("/v1/deliveries?account=%FF", "invalid_parameter", ""),
        ("/v1/deliveries?cursor=", "invalid_cursor", "cursor"),
        ("/v1/deliveries?cursor=abc", "invalid_cursor", "cursor"),
        ("/v1/deliveries?cursor=%27%20OR%201%3D1--", "invalid_cursor", "cursor"),
        ("/v1/deliveries?cursor=%C3%A9", "invalid_cursor", "cursor"),
        ("/v1/endpoints?enabled=1", "invalid_parameter", "enabled"),
        ("/v1/endpoints?circuit=ajar", "invalid_parameter", "circuit"),
        ("/v1/endpoints?slow=maybe", "invalid_parameter", "slow"),
        ("/v1/endpoints?event_type=a.*", "invalid_parameter", "event_type"),
        ("/v1/dead-letters?state=dead", "unknown_parameter", "state"),
        ("/v1/dead-letters?reason=cancelled", "invalid_parameter", "reason"),
        ("/v1/dead-letters?reason=", "invalid_parameter", "reason"),
        ("/v1/dead-letters?replayed=yes", "invalid_parameter", "replayed"),
        ("/v1/dead-letters?since=2h", "invalid_parameter", "since"),
        ("/v1/dead-letters?endpoint_id=dlv_" + UNKNOWN, "invalid_parameter", "endpoint_id"),
        *[(f"/v1/dead-letters/analysis?window={window}", "invalid_parameter", "window") for window in ("", "0", "0h", "-1h", "24", "30s", "1.5h", "1w", "10y", "91d", "3650d", "10%20years", "24H", "1h%00", "%D9%A3h", "9" * 5_000 + "d", "1h%27%20OR%201%3D1--")],
        ("/v1/dead-letters/analysis?window=1h&window=2h", "invalid_parameter", "window"),
        ("/v1/dead-letters/analysis?windows=1h", "unknown_parameter", "windows"),
        ("/v1/dead-letters/analysis?since=1h", "unknown_parameter", "since"),
        ("/v1/dead-letters/analysis?limit=5", "unknown_parameter", "limit"),
        ("/v1/dead-letters/analysis?account=a%20b", "invalid_parameter", "account"),
        ("/v1/dead-letters/analysis?endpoint_id=dlv_" + UNKNOWN, "invalid_parameter", "endpoint_id"),
        ("/v1/replays?state=done", "unknown_parameter", "state"),
        ("/v1/discards?cursor=x", "invalid_cursor", "cursor"),
        ("/v1/endpoints/ep_" + UNKNOWN + "?x=1", "unknown_parameter", "x"),
        ("/healthz?x=1", "unknown_parameter", "x"),
    ],
)  # fmt: skip
def test_a_bad_parameter_is_named(service, path, code, name):
    answer = service.call("GET", path)
    assert_problem(answer, 422, code)
    assert [culprit["pointer"] for culprit in answer.json()["errors"]] == [name]


def test_a_publish_takes_no_parameters(service):
    assert_problem(service.call("POST", "/v1/events?key=x", event()), 422, "unknown_parameter")
    assert_problem(service.call("POST", "/v1/events/batch?key=x", b"{}"), 422, "unknown_parameter")


def test_an_unknown_name_comes_with_the_nearest(service):
    assert (
        "Did you mean payload?"
        in service.call("POST", "/v1/events", b'{"type":"a","payloda":1}').json()["detail"]
    )
    assert "Did you mean state?" in service.call("GET", "/v1/deliveries?stat=dead").json()["detail"]


def test_long_input_is_not_echoed(service):
    for answer in (
        service.call("POST", "/v1/events", json.dumps({"x" * 10_000: 1}).encode()),
        service.call("GET", "/v1/deliveries?" + "y" * 10_000 + "=1"),
        service.call("GET", "/v1/events/" + "evt_" + "z" * 10_000),
    ):
        assert len(answer.text) < 1_000


@pytest.mark.parametrize(
    "path",
    [
        "/v1/events/evt_" + UNKNOWN,
        "/v1/events/evt_" + UNKNOWN + "/deliveries",
        "/v1/events/ep_" + UNKNOWN,
        "/v1/events/evt_1'%20OR%201=1--",
        "/v1/events/evt_%00",
        "/v1/events/evt_" + "8" * 26,
        "/v1/events/" + "x" * 10_000,
        "/v1/endpoints/ep_" + UNKNOWN,
        "/v1/endpoints/dlv_" + UNKNOWN,
        "/v1/deliveries/dlv_" + UNKNOWN,
        "/v1/deliveries/dlv_" + UNKNOWN + "/attempts",
        "/v1/endpoints/ep_" + UNKNOWN + "/deliveries",
        "/v1/replays/rpl_" + UNKNOWN,
        "/v1/replays/dsc_" + UNKNOWN,
        "/v1/discards/dsc_" + UNKNOWN,
        "/v1/nothing",
        "//v1//events",
        "/v1/events/",
        "/V1/events",
        "/v1/endpoints/",
        "/v1/%65ndpoints",
        "/v1/endpoints/%2e%2e/endpoints",
        "/v1/events/../endpoints",
    ],
)
def test_what_is_not_there_is_not_found(service, path):
    raw = (
        f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: {service.client.headers['authorization']}\r\n\r\n"
    )
    answer = service.raw(raw.encode())
    assert (answer.status, json.loads(answer.body)["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "path",
    [
        *[f"/v1/endpoints/ep_{UNKNOWN}/{verb}" for verb in ("enable", "disable", "pause", "resume", "circuit/reset")],
        *[f"/v1/deliveries/dlv_{UNKNOWN}/{verb}" for verb in ("retry", "cancel")],
        *[f"/v1/dead-letters/dlv_{UNKNOWN}/{verb}" for verb in ("replay", "discard")],
        f"/v1/events/evt_{UNKNOWN}/replay",
        f"/v1/dead-letters/evt_{UNKNOWN}/replay",
        f"/v1/deliveries/{UNKNOWN}/cancel",
    ],
)  # fmt: skip
def test_doing_something_to_what_is_not_there_is_not_found(service, path):
    assert_problem(service.call("POST", path), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "status", "code", "pointer"),
    [
        (b"[]", 422, "invalid_field", ""),
        (b"{", 400, "invalid_json", None),
        (b'{"endpoint":"x"}', 422, "unknown_field", "/endpoint"),
        (b'{"endpoint_id":5}', 422, "invalid_field", "/endpoint_id"),
        (b'{"endpoint_id":"x"}', 422, "invalid_field", "/endpoint_id"),
        (b'{"states":[]}', 422, "invalid_field", "/states"),
        (b'{"states":"dead"}', 422, "invalid_field", "/states"),
        (b'{"states":["dead","pending"]}', 422, "invalid_field", "/states/1"),
        (b'{"states":["lost"]}', 422, "invalid_field", "/states/0"),
    ],
)
def test_a_replay_of_an_event_that_will_not_do_is_refused(service, body, status, code, pointer):
    path = f"/v1/events/{service.publish(account='none')['id']}/replay"
    answer = service.call("POST", path, body)
    assert_problem(answer, status, code)
    if pointer is not None:
        assert [culprit["pointer"] for culprit in answer.json()["errors"]] == [pointer]


def test_a_call_that_needs_nothing_said_takes_no_fields_and_no_parameters(service):
    path = f"/v1/endpoints/{service.create(account='nothing')['id']}/pause"
    assert_problem(service.call("POST", path, {"for": 5}), 422, "unknown_field")
    assert_problem(service.call("POST", path + "?for=5"), 422, "unknown_parameter")
    assert_problem(
        service.call("POST", path, b"{}", content_type="text/plain"), 415, "unsupported_media_type"
    )
    assert service.call("GET", path.removesuffix("/pause")).json()["paused"] is False
    for body in (None, {}):
        assert service.call("POST", path, body).json()["paused"] is True


def test_changing_what_is_not_there_is_not_found(service):
    assert_problem(service.call("PATCH", "/v1/endpoints/ep_" + UNKNOWN, b"{}"), 404, "not_found")
    assert_problem(service.call("DELETE", "/v1/endpoints/ep_" + UNKNOWN), 404, "not_found")


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "TRACE", "DELETE", "PATCH", "FOO"])
@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/events", "GET, HEAD, POST"),
        ("/v1/events/batch", "POST"),
        ("/v1/endpoints", "GET, HEAD, POST"),
        ("/v1/deliveries", "GET, HEAD"),
        ("/healthz", "GET, HEAD"),
        ("/v1/dead-letters", "GET, HEAD"),
        ("/v1/dead-letters/analysis", "GET, HEAD"),
        ("/v1/replays", "GET, HEAD, POST"),
        ("/v1/dead-letters/dlv_" + UNKNOWN + "/replay", "POST"),
    ],
)
def test_another_method_is_not_allowed(service, method, path, allowed):
    if method == "FOO":
        key = service.client.headers["authorization"]
        answer = service.raw(f"FOO {path} HTTP/1.1\r\nhost: x\r\nauthorization: {key}\r\n\r\n".encode())
        assert answer.status in (400, 405)
        return
    answer = service.call(method, path)
    assert_problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


def test_a_method_cannot_be_overridden(service):
    answer = service.call("GET", "/v1/endpoints", x_http_method_override="DELETE")
    assert answer.status_code == 200


def test_the_request_id_is_ours_whatever_a_caller_sends(service):
    answers = [service.call("GET", "/healthz", request_id="mine\tforged") for _ in range(2)]
    given = {answer.headers["request-id"] for answer in answers}
    assert len(given) == 2
    assert all(each.startswith("req_") for each in given)


def assert_problem(answer, status, code):
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code), problem
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(problem) == {"type", "title", "status", "detail", "code", "request_id", "errors"}
    assert problem["status"] == status
    assert problem["request_id"] == answer.headers["request-id"]
    assert problem["detail"]
