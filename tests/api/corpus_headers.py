"""The rows about headers and names."""

import base64

from tests.api.conftest import KEY, Service
from tests.api.corpus import Recorder, assert_problem, covers, endpoint, refused, refused_endpoint

VALUES = {
    "H01": ["a\r\nX-Evil: 1"],
    "H02": ["a\nb", "a\rb", "a\x00b", "a\x7fb"],
    "H03": ["\u00e9", "\u65e5\u672c"],
    "H04": [" a", "a ", "\ta", "a\t", " "],
}
RESERVED = {
    "H06": [
        *("host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect"),
        *("keep-alive", "proxy-authorization", "proxy-x", "accept-encoding", "cookie", "forwarded"),
        *("x-forwarded-for", "x-forwarded-anything"),
    ],
    "H07": [
        *("webhook-id", "webhook-anything", "x-webhook-signature", "x-event-id", "x-idempotency-key"),
        *("x-delivery-timestamp", "hookline-hops", "user-agent", "content-type"),
    ],
}

for id, values in VALUES.items():

    @covers(id)
    def a_value(service: Service, recorder: Recorder, values=values) -> None:  # type: ignore[no-untyped-def]
        for value in values:
            refused_endpoint(service, {"headers": {"X-Token": value}}, "/headers/X-Token")


for id, names in RESERVED.items():

    @covers(id)
    def a_reserved_name(service: Service, recorder: Recorder, names=names) -> None:  # type: ignore[no-untyped-def]
        for name in names:
            for spelled in (name, name.upper(), name.title()):
                refused_endpoint(
                    service, {"headers": {spelled: "x"}}, f"/headers/{spelled}", "reserved_header"
                )


@covers("H05")
def a_name(service: Service, recorder: Recorder) -> None:
    for name in ("", "X T", "X:T", "X\r\nY"):
        refused_endpoint(service, {"headers": {name: "x"}}, f"/headers/{name}")


@covers("H08")
def two_that_fold_to_one(service: Service, recorder: Recorder) -> None:
    refused_endpoint(service, {"headers": {"X-Token": "1", "x-token": "2"}}, "/headers/x-token")


@covers("H09")
def too_many_and_too_long(service: Service, recorder: Recorder) -> None:
    refused_endpoint(service, {"headers": {f"X-{n}": "1" for n in range(65)}}, "/headers")
    refused_endpoint(service, {"headers": {"X-Long": "x" * 8_193}}, "/headers/X-Long")
    service.create(account="corpus", headers={f"X-{n}": "x" * 8_192 for n in range(64)})


@covers("H10")
def an_event_type(service: Service, recorder: Recorder) -> None:
    for wrong in ("a\r\nX: y", "a b", "", "x" * 129, ".", "a..b", "a.b.", "A.\u0441"):
        refused(service, 422, "invalid_field", body={"type": wrong, "payload": 1}, pointer="/type")
        refused_endpoint(service, {"events": [wrong]}, "/events/0")
    assert service.publish("__proto__")["type"] == "__proto__"
    assert service.publish("x" * 128)["type"] == "x" * 128


@covers("H11")
def a_letter_that_folds(service: Service, recorder: Recorder) -> None:
    for wrong in ("\u0130", "\uff41", "order.\uff50aid"):
        refused(service, 422, "invalid_field", body={"type": wrong, "payload": 1}, pointer="/type")
    service.create(account="corpus-folded", events=["order.paid"])
    assert service.publish("Order.paid", account="corpus-folded")["deliveries"] == 0
    assert service.publish("order.paid", account="corpus-folded")["deliveries"] == 1


@covers("H12")
def an_id_of_the_caller_s(service: Service, recorder: Recorder) -> None:
    body = {"id": "a.b", "type": "a.b", "payload": 1}
    refused(service, 422, "unknown_field", body=body, pointer="/id")


@covers("H13")
def an_idempotency_key(service: Service, recorder: Recorder) -> None:
    body = {"type": "a.b", "payload": 1}
    for wrong in ("x" * 256, "", "a b"):
        refused(service, 422, "invalid_field", body=body, idempotency_key=wrong)
        refused(
            service, 422, "invalid_field", body={**body, "idempotency_key": wrong}, pointer="/idempotency_key"
        )
    for wrong in ("\u00e9", "a\r\nX-Evil: 1"):
        refused(
            service, 422, "invalid_field", body={**body, "idempotency_key": wrong}, pointer="/idempotency_key"
        )
    before = service.counts()
    head = f"POST /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
    text = '{"type":"a.b","payload":1}'
    answer = service.raw(f"{head}content-length: 26\r\nidempotency-key: \u00e9\r\n\r\n{text}".encode())
    assert_problem(answer, 422, "invalid_field")
    broken = service.raw(
        f"{head}content-length: 26\r\nidempotency-key: a\r\nnot a header\r\n\r\n{text}".encode()
    )
    assert_problem(broken, 400, "bad_request")
    assert service.counts() == before


@covers("H14")
def a_secret(service: Service, recorder: Recorder) -> None:
    url_safe = base64.urlsafe_b64encode(b"\xff\xfb" * 16).decode()
    assert "_" in url_safe or "-" in url_safe
    for wrong in (
        "whsec_" + base64.b64encode(b"x" * 5).decode(),
        "whsec_not base64!",
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
        "whsec_" + url_safe,
        "no prefix at all, and spaces",
    ):
        refused(
            service,
            422,
            "invalid_field",
            path="/v1/endpoints",
            body=endpoint(secret=wrong),
            pointer="/secret",
        )
    for wrong in ("x" * 15, "x" * 257, "sixteen letters \u00e9"):
        body = endpoint(secret=wrong, signing="classic")
        refused(service, 422, "invalid_field", path="/v1/endpoints", body=body, pointer="/secret")
    for good in ("whsec_" + url_safe, "x" * 16, "!" * 256):
        assert service.create(account="corpus", secret=good, signing="classic")["secret"] == good


@covers("H15")
def a_description(service: Service, recorder: Recorder) -> None:
    for wrong in ("x" * 10_000, "x" * 1_001):
        refused_endpoint(service, {"description": wrong}, "/description")
    text = "first line\nlevel=error forged\r\n\u202e reversed"
    made = service.create(account="corpus", description=text)
    answer = service.call("GET", f"/v1/endpoints/{made['id']}")
    assert answer.json()["description"] == text
    assert b"first line\\nlevel=error" in answer.content
    assert "level=error forged" not in service.process.stderr
