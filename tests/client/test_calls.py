"""Each method makes the call that the API offers, and says correctly whether it may be repeated."""

import inspect
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from hookline.client import HooklineClient, NewEvent, SyncHooklineClient
from hookline.client.blocking.dead_letters import DeadLetterMethods
from hookline.client.blocking.deliveries import DeliveryMethods
from hookline.client.blocking.endpoints import EndpointMethods
from hookline.client.blocking.events import EventMethods
from hookline.client.blocking.installation import InstallationMethods
from hookline.client.blocking.listing import Listing
from hookline.client.blocking.outbox import OutboxMethods
from hookline.errors import Invalid, Unreadable
from scripts.mirror_client import files

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOON_TEXT = "2026-01-31T12:00:00.000000Z"


class Recorder(
    EventMethods, EndpointMethods, DeliveryMethods, DeadLetterMethods, OutboxMethods, InstallationMethods
):
    """Keeps the last call and does not send it."""

    def send(self, call):
        self.call = call


def made(ask):
    recorder = Recorder()
    result = ask(recorder)
    if isinstance(result, Listing):
        result.page()
    return recorder.call


SAFE, NOT_SAFE = True, False
CALLS = [
    (lambda c: c.publish("a", {}), "POST /v1/events", SAFE),
    (lambda c: c.publish_many([NewEvent(type="a", payload={})]), "POST /v1/events/batch", SAFE),
    (lambda c: c.event("evt_1"), "GET /v1/events/evt_1", SAFE),
    (
        lambda c: c.events(type="a", account="b", idempotency_key="k", since=NOON, until=NOON),
        "GET /v1/events?type=a&account=b&idempotency_key=k"
        "&since=2026-01-31T12%3A00%3A00.000000Z&until=2026-01-31T12%3A00%3A00.000000Z",
        SAFE,
    ),
    (lambda c: c.event_deliveries("evt_1", state="dead"), "GET /v1/events/evt_1/deliveries?state=dead", SAFE),
    (lambda c: c.event_attempts("evt_1"), "GET /v1/events/evt_1/attempts", SAFE),
    (lambda c: c.replay_event("evt_1"), "POST /v1/events/evt_1/replay", NOT_SAFE),
    (lambda c: c.create_endpoint("https://a", ["*"]), "POST /v1/endpoints", NOT_SAFE),
    (lambda c: c.endpoint("ep_1"), "GET /v1/endpoints/ep_1", SAFE),
    (
        lambda c: c.endpoints(account="a", enabled=True, circuit="open", slow=False, event_type="b"),
        "GET /v1/endpoints?account=a&enabled=true&circuit=open&slow=false&event_type=b",
        SAFE,
    ),
    (lambda c: c.update_endpoint("ep_1", paused=True), "PATCH /v1/endpoints/ep_1", SAFE),
    (lambda c: c.delete_endpoint("ep_1"), "DELETE /v1/endpoints/ep_1", SAFE),
    (lambda c: c.enable_endpoint("ep_1"), "POST /v1/endpoints/ep_1/enable", SAFE),
    (lambda c: c.disable_endpoint("ep_1"), "POST /v1/endpoints/ep_1/disable", SAFE),
    (lambda c: c.pause_endpoint("ep_1"), "POST /v1/endpoints/ep_1/pause", SAFE),
    (lambda c: c.resume_endpoint("ep_1"), "POST /v1/endpoints/ep_1/resume", SAFE),
    (lambda c: c.reset_circuit("ep_1"), "POST /v1/endpoints/ep_1/circuit/reset", SAFE),
    (lambda c: c.test_endpoint("ep_1"), "POST /v1/endpoints/ep_1/test", NOT_SAFE),
    (lambda c: c.endpoint_stats("ep_1", window="7d"), "GET /v1/endpoints/ep_1/stats?window=7d", SAFE),
    (lambda c: c.endpoint_secret("ep_1"), "GET /v1/endpoints/ep_1/secret", SAFE),
    (lambda c: c.rotate_secret("ep_1", overlap_s=60), "POST /v1/endpoints/ep_1/secret/rotate", NOT_SAFE),
    (
        lambda c: c.endpoint_deliveries("ep_1", state="dead", event_type="a"),
        "GET /v1/endpoints/ep_1/deliveries?state=dead&event_type=a",
        SAFE,
    ),
    (lambda c: c.delivery("dlv_1"), "GET /v1/deliveries/dlv_1", SAFE),
    (
        lambda c: c.deliveries(
            state="dead", account="a", endpoint_id="ep_1", event_id="evt_1", event_type="b"
        ),
        "GET /v1/deliveries?state=dead&account=a&endpoint_id=ep_1&event_id=evt_1&event_type=b",
        SAFE,
    ),
    (lambda c: c.attempts("dlv_1"), "GET /v1/deliveries/dlv_1/attempts", SAFE),
    (lambda c: c.retry_delivery("dlv_1"), "POST /v1/deliveries/dlv_1/retry", NOT_SAFE),
    (lambda c: c.cancel_delivery("dlv_1"), "POST /v1/deliveries/dlv_1/cancel", NOT_SAFE),
    (
        lambda c: c.dead_letters(
            account="a", endpoint_id="ep_1", event_type="b", reason="gone", replayed=True
        ),
        "GET /v1/dead-letters?account=a&endpoint_id=ep_1&event_type=b&reason=gone&replayed=true",
        SAFE,
    ),
    (
        lambda c: c.analyse_dead_letters(window="7d", account="a", endpoint_id="ep_1"),
        "GET /v1/dead-letters/analysis?window=7d&account=a&endpoint_id=ep_1",
        SAFE,
    ),
    (lambda c: c.replay_dead_letter("dlv_1"), "POST /v1/dead-letters/dlv_1/replay", NOT_SAFE),
    (lambda c: c.discard_dead_letter("dlv_1"), "POST /v1/dead-letters/dlv_1/discard", NOT_SAFE),
    (lambda c: c.replay_dead_letters(reason="gone"), "POST /v1/replays", SAFE),
    (lambda c: c.replay_job("rpl_1"), "GET /v1/replays/rpl_1", SAFE),
    (lambda c: c.replay_jobs(), "GET /v1/replays", SAFE),
    (lambda c: c.discard_dead_letters(ids=["dlv_1"], dry_run=True), "POST /v1/discards", SAFE),
    (lambda c: c.discard_job("dsc_1"), "GET /v1/discards/dsc_1", SAFE),
    (lambda c: c.discard_jobs(), "GET /v1/discards", SAFE),
    (lambda c: c.alerts(state="firing", account="a"), "GET /v1/alerts?state=firing&account=a", SAFE),
    (lambda c: c.workers(), "GET /v1/workers", SAFE),
    (
        lambda c: c.audit(account="a", action="key.created", subject="key_1", actor="key_2"),
        "GET /v1/audit?account=a&action=key.created&subject=key_1&actor=key_2",
        SAFE,
    ),
    (lambda c: c.ids("ep_01234567"), "GET /v1/ids/ep_01234567", SAFE),
    (lambda c: c.health(account="acme"), "GET /v1/health?account=acme", SAFE),
    (lambda c: c.status(account="acme"), "GET /v1/status?account=acme", SAFE),
    (lambda c: c.conservation(account="acme"), "GET /v1/conservation?account=acme", SAFE),
    (lambda c: c.outboxes(), "GET /v1/outbox", SAFE),
    (
        lambda c: c.refused_rows(account="a", event_type="b", code="c", source="own", since=NOON, until=NOON),
        "GET /v1/outbox/refused?account=a&event_type=b&code=c&source=own"
        "&since=2026-01-31T12%3A00%3A00.000000Z&until=2026-01-31T12%3A00%3A00.000000Z",
        SAFE,
    ),
    (lambda c: c.refused_row("evt_1"), "GET /v1/outbox/refused/evt_1", SAFE),
    (lambda c: c.retry_refused_row("evt_1"), "POST /v1/outbox/refused/evt_1/retry", NOT_SAFE),
    (lambda c: c.discard_refused_row("evt_1"), "POST /v1/outbox/refused/evt_1/discard", NOT_SAFE),
    (lambda c: c.event_types(), "GET /v1/event-types", SAFE),
    (lambda c: c.event_type("order.paid"), "GET /v1/event-types/order.paid", SAFE),
    (lambda c: c.put_event_type("order.paid", schema={}), "PUT /v1/event-types/order.paid", SAFE),
    (lambda c: c.delete_event_type("order.paid"), "DELETE /v1/event-types/order.paid", SAFE),
    (lambda c: c.account("acme"), "GET /v1/accounts/acme", SAFE),
    (lambda c: c.put_account("acme", notify={"email": None}), "PUT /v1/accounts/acme", SAFE),
    (lambda c: c.test_alert("acme"), "POST /v1/accounts/acme/test-alert", NOT_SAFE),
    (lambda c: c.portal_link("acme"), "POST /v1/accounts/acme/portal-link", NOT_SAFE),
    (lambda c: c.keys(), "GET /v1/keys", SAFE),
    (lambda c: c.key("key_1"), "GET /v1/keys/key_1", SAFE),
    (lambda c: c.create_key(["read"]), "POST /v1/keys", NOT_SAFE),
    (lambda c: c.revoke_key("key_1"), "DELETE /v1/keys/key_1", SAFE),
]


@pytest.mark.parametrize(("ask", "request_line", "is_safe"), CALLS, ids=[line for _, line, _ in CALLS])
def test_a_method_asks_for(ask, request_line, is_safe):
    call = made(ask)
    assert (f"{call.method} {call.target}", call.may_repeat) == (request_line, is_safe)


def public_methods(kind):
    return {
        name: inspect.signature(method)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and name != "close"
    }


def test_every_method_is_in_the_table():
    asked = {name for ask, _, _ in CALLS for name in ask.__code__.co_names}
    assert public_methods(SyncHooklineClient).keys() - {"send"} <= asked


def test_both_clients_have_the_same_methods_with_the_same_arguments():
    asynchronous, synchronous = public_methods(HooklineClient), public_methods(SyncHooklineClient)
    assert {name: list(each.parameters) for name, each in asynchronous.items()} == {
        name: list(each.parameters) for name, each in synchronous.items()
    }


def test_the_synchronous_calls_are_the_asynchronous_ones_without_the_awaiting():
    for path, text in files().items():
        assert path.read_text() == text, "python scripts/mirror_client.py writes it anew"


@pytest.mark.parametrize("id", ["../deliveries", "a/b", "a?b=c", "a#b", "a b", "é", "a\r\nb"])
def test_an_id_is_one_step_of_the_path_whatever_it_holds(id):
    target = made(lambda client: client.endpoint(id)).target
    assert target.startswith("/v1/endpoints/")
    assert not set(target.removeprefix("/v1/endpoints/")) & set("/?# \r\né")


@pytest.mark.parametrize(
    "payload",
    [
        b'{"b":1,"a":2}',
        b'{ "a" : 1.0e+00 , "b" : 123456789012345678901234567890 }',
        '{"\\u00e9":"é"}'.encode(),
        b'"\\ud83d\\ude00"',
        b"null",
        bytearray(b"[1, 2]"),
        memoryview(b"[1, 2]"),
        msgspec.Raw(b"[1, 2]"),
    ],
)
def test_a_payload_in_bytes_is_placed_into_the_envelope_as_it_is(payload):
    body = made(lambda client: client.publish("a", payload, idempotency_key="k")).body
    assert body == b'{"type":"a","idempotency_key":"k","payload":' + bytes(payload) + b"}"


def test_other_payloads_are_written_as_json():
    body = made(lambda client: client.publish("a", {"id": 42, "at": NOON}, idempotency_key="k")).body
    assert msgspec.json.decode(body)["payload"] == {"id": 42, "at": "2026-01-31T12:00:00Z"}


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b'1,"account":"other"',
        b"1 2",
        b'{}},{"type":"b"',
        b'"\xff"',
        b"\xef\xbb\xbf1",
        b"[" * 100_000,
    ],
)
def test_bytes_that_are_not_one_json_value_are_not_sent(payload):
    with pytest.raises(Unreadable):
        made(lambda client: client.publish("a", payload))
    with pytest.raises(Unreadable):
        made(lambda client: client.publish_many([NewEvent(type="a", payload=payload)]))


def test_what_is_no_json_is_not_sent():
    with pytest.raises(Invalid):
        made(lambda client: client.publish("a", object()))


def test_the_fields_of_an_event_are_sent_as_they_are_given():
    east = timezone(timedelta(hours=2))
    call = made(
        lambda client: client.publish("a", 1, account="b", deliver_at=datetime(2026, 1, 31, 14, tzinfo=east))
    )
    said = msgspec.json.decode(call.body)
    assert said == {
        "type": "a",
        "account": "b",
        "payload": 1,
        "deliver_at": NOON_TEXT,
        "idempotency_key": said["idempotency_key"],
    }
    with pytest.raises(Invalid):
        made(lambda client: client.publish("a", 1, deliver_at=datetime(2026, 1, 31)))  # noqa: DTZ001 - meant


def test_hops_are_passed_on_and_a_batch_has_those_of_its_longest_chain():
    assert "hookline-hops" not in made(lambda c: c.publish("a", 1)).headers
    assert made(lambda c: c.publish("a", 1, hops=2)).headers == {"hookline-hops": "2"}
    batch = [NewEvent(type="a", payload=1, hops=hops) for hops in (0, 3, 1)]
    assert made(lambda c: c.publish_many(batch)).headers == {"hookline-hops": "3"}


def test_events_without_a_key_get_one_each_and_others_keep_theirs():
    events = [NewEvent(type="a", payload=1), NewEvent(type="a", payload=1, idempotency_key="k")]
    batch = msgspec.json.decode(made(lambda client: client.publish_many(events)).body)["events"]
    single = msgspec.json.decode(made(lambda client: client.publish("a", 1)).body)
    keys = [each["idempotency_key"] for each in [*batch, single]]
    assert keys[1] == "k"
    assert len(set(keys)) == 3


def test_a_job_is_asked_for_under_a_key():
    call = made(lambda client: client.replay_dead_letters(reason="gone", since=NOON))
    assert msgspec.json.decode(call.body) == {
        "filter": {"reason": "gone", "since": "2026-01-31T12:00:00Z"},
        "dry_run": False,
    }
    assert call.headers.keys() == {"idempotency-key"}
    given = made(lambda client: client.replay_dead_letters(ids=["dlv_1"], idempotency_key="mine"))
    assert given.headers == {"idempotency-key": "mine"}
    with pytest.raises(Invalid):
        made(lambda client: client.replay_dead_letters(ids=["dlv_1"], idempotency_key="a\r\nb: c"))


def test_none_is_said_where_it_means_something():
    created = made(lambda client: client.create_endpoint("https://a", ["*"], circuit=None))
    assert msgspec.json.decode(created.body) == {"url": "https://a", "events": ["*"], "circuit": None}
    patched = made(lambda client: client.update_endpoint("ep_1", retry=None))
    assert msgspec.json.decode(patched.body) == {"retry": None}
