"""What hookline answers within a program is what a client gets from its server, errors included."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest

from hookline import Hookline, HooklineClient, HooklineError, NewEvent, Published, SyncHookline, errors
from hookline.client import ApiError, AsyncListing, DeliveryState, OpenWord, Via
from hookline.client.answers import ApiObject, Page
from hookline.client.overview import Health
from hookline.rules.retry import PRESETS
from hookline.testing import RunningHookline, WebhookReceiver, running_hookline

pytestmark = pytest.mark.anyio

NOBODY = "0" * 26
Methods = Hookline | HooklineClient


@pytest.fixture
def receiver():
    with WebhookReceiver() as receiver:
        yield receiver


class Pair(NamedTuple):
    """A hookline, and a client of its API."""

    hooks: RunningHookline
    client: HooklineClient


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str | None:
    """None: a file of its own."""
    return None if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def pair(database: str | None) -> AsyncIterator[Pair]:
    async with running_hookline(database) as hooks, HooklineClient(hooks.url, retry_for=0) as client:
        yield Pair(hooks, client)


async def whole(asked: Awaitable[Any] | AsyncListing[Any]) -> Any:
    return [each async for each in asked] if isinstance(asked, AsyncListing) else await asked


# What counts is what does not change by itself between two questions.
def lasting(result: Any) -> Any:
    if isinstance(result, list):
        return [lasting(each) for each in result]
    if not isinstance(result, ApiObject):
        return bytes(result) if isinstance(result, msgspec.Raw) else result
    passing = {
        "at",
        "as_of",
        "until",
        "since",
        "rates",
        "health",
        "workers",
        "database",
        "heartbeat_at",
        "counts",
    }
    return type(result), {
        name: None if name in passing or isinstance(result, Health) else lasting(getattr(result, name))
        for name in result.__struct_fields__
    }


async def test_both_answer_the_same(pair, receiver):
    hooks = pair.hooks
    good = await hooks.subscribe(receiver, "good.*", description="é", metadata={"a": [1, {"b": None}]})
    bad = await hooks.subscribe(receiver, "bad.*", path="bad", rate_limit={"per_second": 100, "burst": 5})
    paused = await hooks.create_endpoint("https://hooks.example/", ["good.*"], paused=True)
    sent = await hooks.publish("good.one", {"id": 1}, idempotency_key="one")
    await receiver.arrived(1)
    receiver.answer(400, 400)
    dead = await hooks.publish("bad.one", {"id": 2})
    other = await hooks.publish("bad.two", {"id": 3})
    await receiver.arrived(3)
    await hooks.update_endpoint(bad.id, paused=True)
    [gone] = [each async for each in hooks.event_deliveries(dead.id)]
    for event, states in ((dead, ["dead"]), (other, ["dead"]), (sent, ["delivered", "pending"])):
        while sorted([each.state async for each in hooks.event_deliveries(event.id)]) != states:
            await hooks.app.clock.sleep(0.01)
    await hooks.put_event_type("good.one", description="Good.", schema={"type": "object"})
    await hooks.put_account("default", notify={"email": "ops@example.com"})
    job = await hooks.discard_dead_letters(dry_run=True, endpoint_id=bad.id)
    assert (job.state, job.id) == ("done", None)

    questions: list[Callable[[Methods], Any]] = [
        lambda of: of.endpoint(good.id),
        lambda of: of.endpoint(paused.id),
        lambda of: of.endpoints(),
        lambda of: of.endpoints(enabled=True, event_type="bad.two"),
        lambda of: of.endpoint_secret(good.id),
        lambda of: of.endpoint_deliveries(bad.id, state=DeliveryState.DEAD),
        lambda of: of.event(sent.id),
        lambda of: of.events(type="good.one"),
        lambda of: of.events(idempotency_key="one"),
        lambda of: of.event_deliveries(sent.id),
        lambda of: of.event_attempts(dead.id),
        lambda of: of.delivery(gone.id),
        lambda of: of.deliveries(event_id=other.id),
        lambda of: of.attempts(gone.id),
        lambda of: of.dead_letters(endpoint_id=bad.id, until=datetime(2200, 1, 1, tzinfo=UTC)),
        lambda of: of.analyse_dead_letters(window="1h"),
        lambda of: of.replay_jobs(),
        lambda of: of.event_types(),
        lambda of: of.event_type("good.one"),
        lambda of: of.account("default"),
        lambda of: of.keys(),
        lambda of: of.workers(),
        lambda of: of.alerts(),
        lambda of: of.audit(subject=good.id),
        lambda of: of.ids(good.id[:12]),
        lambda of: of.status(),
        lambda of: of.health(),
        lambda of: of.conservation(),
        lambda of: of.endpoint_stats(good.id),
    ]
    for ask in questions:
        within, outside = await whole(ask(hooks)), await whole(ask(pair.client))
        assert lasting(within) == lasting(outside)
    assert [each.via async for each in hooks.audit(action="endpoint.created")] == [Via.LIBRARY] * 3
    assert (await hooks.event(sent.id)).created_at == sent.created_at


async def test_a_page_of_one_is_continued_by_the_other(pair):
    await pair.hooks.publish_many([NewEvent(type="a", payload=n) for n in range(5)])
    first = await pair.hooks.events().page(limit=2)
    assert first.next_cursor is not None
    second = await pair.client.events().page(limit=3, cursor=first.next_cursor)
    assert [each.json() for each in (*first.data, *second.data)] == [4, 3, 2, 1, 0]


# --- errors ---

FAR = datetime(2200, 1, 1, tzinfo=UTC)
MISTAKES: list[tuple[type[HooklineError], str, Callable[[Methods], Any]]] = [
    (errors.NotFound, "not_found", lambda of: of.endpoint(f"ep_{NOBODY}")),
    (errors.NotFound, "not_found", lambda of: of.endpoint("../deliveries")),
    (errors.NotFound, "not_found", lambda of: of.endpoint("")),
    (errors.NotFound, "not_found", lambda of: of.delete_endpoint(f"ep_{NOBODY}")),
    (errors.NotFound, "not_found", lambda of: of.event("nothing like an id")),
    (errors.NotFound, "not_found", lambda of: of.event_type("none.such")),
    (errors.NotFound, "not_found", lambda of: of.replay_job(f"rpl_{NOBODY}")),
    (errors.Invalid, "unknown_field", lambda of: of.create_endpoint("https://a.example/", ["*"], urll="")),
    (errors.Invalid, "url_invalid", lambda of: of.create_endpoint("ftp://a.example/", ["*"])),
    (errors.Invalid, "invalid_field", lambda of: of.create_endpoint("https://a.example/", [])),
    (errors.Invalid, "invalid_parameter", lambda of: of.deliveries(state="alive")),
    (errors.Invalid, "invalid_cursor", lambda of: of.deliveries().page(cursor="x")),
    (errors.Invalid, "invalid_field", lambda of: of.publish("not a type", 1)),
    (errors.Invalid, "invalid_field", lambda of: of.publish("a", 1, account="no/account")),
    (errors.Invalid, "invalid_field", lambda of: of.publish("a", 1, deliver_at=FAR)),
    (errors.Invalid, "invalid_field", lambda of: of.publish("a", 1, deliver_at=FAR.replace(tzinfo=None))),
    (errors.Invalid, "invalid_field", lambda of: of.publish("a", object())),
    (errors.Invalid, "invalid_field", lambda of: of.replay_dead_letters()),
    (errors.Invalid, "too_many_events", lambda of: of.publish_many([NewEvent(type="a", payload=1)] * 1_001)),
    (errors.Invalid, "loop_detected", lambda of: of.publish("a", 1, hops=99)),
    (errors.SchemaMismatch, "schema_mismatch", lambda of: of.publish("shaped", {"id": "one"})),
    (errors.Unreadable, "invalid_json", lambda of: of.publish("a", b"{")),
    (errors.Unreadable, "too_deep", lambda of: of.publish("a", b"[" * 99 + b"]" * 99)),
    (errors.TooLarge, "too_large", lambda of: of.publish("a", "x" * 2_000_000)),
    (errors.IdempotencyConflict, "idempotency_conflict", lambda of: of.publish("a", 2, idempotency_key="k")),
]


async def refusal(asked: Any) -> HooklineError:
    with pytest.raises(HooklineError) as raised:
        await whole(asked)
    return raised.value


async def test_both_refuse_with_the_same_errors(pair):
    await pair.hooks.put_event_type("shaped", schema={"properties": {"id": {"type": "integer"}}})
    await pair.hooks.publish("a", 1, idempotency_key="k")
    for kind, code, mistake in MISTAKES:
        within, outside = await refusal(mistake(pair.hooks)), await refusal(mistake(pair.client))
        for error in (within, outside):
            assert isinstance(error, kind), (code, error)
            assert error.code == code, error
        if not isinstance(error, errors.NotFound):  # to others the API says no more than "not found"
            assert within.detail == outside.detail
            assert within.errors == outside.errors
        assert not isinstance(within, ApiError)


async def test_both_refuse_values_of_another_type_with_what_is_accepted(pair):
    wrong: Any = None
    event: Any = {"type": "a", "payload": 1}
    for of in pair:
        with pytest.raises(TypeError, match=r"^An id or a name is a str, not NoneType\.$"):
            await of.endpoint(wrong)
        with pytest.raises(TypeError, match=r"^events\[1\] is no hookline\.NewEvent but dict\.$"):
            await of.publish_many([NewEvent(type="a", payload=1), event])
        assert await of.events().page() == Page(data=[], next_cursor=None)


@pytest.mark.parametrize("kind", [Hookline, SyncHookline])
def test_a_path_is_no_database(kind, tmp_path):
    with pytest.raises(
        TypeError, match=r"^database is a URL, such as 'sqlite:///hooks\.db', or None, not \w+Path\.$"
    ):
        kind(tmp_path / "x.db")


async def test_a_single_pattern_is_a_list_of_one(pair):
    for of in pair:
        endpoint = await of.create_endpoint("https://hooks.example/", "order.*")
        assert endpoint.events == ["order.*"]
        assert (await of.update_endpoint(endpoint.id, events="*")).events == ["*"]
        error = await refusal(of.update_endpoint(endpoint.id, retry="pationt"))
        assert (
            f' A preset is given as {{"preset": "patient"}}; the presets are {", ".join(PRESETS)}.'
            in error.detail
        )


async def test_a_wrong_state_is_the_same_error(pair):
    await pair.hooks.create_endpoint("https://hooks.example/", ["*"], paused=True)
    event = await pair.hooks.publish("a", 1)
    [delivery] = [each async for each in pair.hooks.event_deliveries(event.id)]
    assert (await pair.hooks.cancel_delivery(delivery.id)).reason == "cancelled"
    for of in pair:
        error = await refusal(of.cancel_delivery(delivery.id))
        assert isinstance(error, errors.WrongState)
        assert error.code == "wrong_state"


async def test_many_are_published_each_for_itself(pair):
    tomorrow = datetime.now(UTC) + timedelta(days=1)  # the store's clock and this one are of one machine
    events = [
        NewEvent(type="a", payload={"n": 1}, idempotency_key="same"),
        NewEvent(type="not a type", payload=2),
        NewEvent(type="b", payload=b"[3]", account="acme", deliver_at=tomorrow),
        NewEvent(type="c", payload=4, account="no/account"),
        NewEvent(type="d", payload="x" * 2_000_000),
    ]
    within, outside = await pair.hooks.publish_many(events), await pair.client.publish_many(events)
    assert [type(each) for each in within] == [
        Published,
        errors.Invalid,
        Published,
        errors.Invalid,
        errors.TooLarge,
    ]
    for one, another in zip(within, outside, strict=True):
        if isinstance(one, Published):
            assert isinstance(another, Published)
            assert (one.type, one.account) == (another.type, another.account)
        else:
            assert isinstance(another, type(one))
            assert (one.code, one.detail, one.errors) == (another.code, another.detail, another.errors)
    first, again = within[0], outside[0]
    assert isinstance(first, Published)
    assert isinstance(again, Published)
    assert (again.id, again.duplicate, first.duplicate) == (first.id, True, False)
    assert await pair.hooks.publish_many([]) == await pair.client.publish_many([]) == []


async def test_nothing_is_published_if_one_payload_is_no_json(pair):
    for of in pair:
        for payload, kind in ((object(), errors.Invalid), (b"{", errors.Unreadable)):
            error = await refusal(
                of.publish_many([NewEvent(type="a", payload=1), NewEvent(type="a", payload=payload)])
            )
            assert isinstance(error, kind)
    assert [each async for each in pair.hooks.events()] == []


# --- payloads ---


@dataclass
class OrderDataclass:
    id: int
    paid_at: datetime


class OrderStruct(msgspec.Struct):
    id: int
    paid_at: datetime


class OrderModel(pydantic.BaseModel):
    id: int
    paid_at: datetime


NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
ORDER = b'{"id":42,"paid_at":"2026-05-04T12:00:00Z"}'
PAYLOADS = [
    (OrderDataclass(42, NOON), ORDER),
    (OrderStruct(42, NOON), ORDER),
    (OrderModel(id=42, paid_at=NOON), ORDER),
    ({"id": 42, "paid_at": NOON}, ORDER),
    ([OrderModel(id=42, paid_at=NOON)], b"[%b]" % ORDER),
    (b'{ "id" : 4.20e1 }', b'{ "id" : 4.20e1 }'),
    (bytearray(b"[1, 2]"), b"[1, 2]"),
    (memoryview(b"[1, 2]"), b"[1, 2]"),
    (msgspec.Raw(b"[1, 2]"), b"[1, 2]"),
    ("text", b'"text"'),
    (None, b"null"),
]


async def test_payloads_of_every_kind_arrive(receiver):
    async with running_hookline() as hooks, HooklineClient(hooks.url) as client:
        for of in (hooks, client):
            for payload, body in PAYLOADS:
                event = await of.publish("order.paid", payload)
                assert (await of.event(event.id)).body == body
                [many] = await of.publish_many([NewEvent(type="order.paid", payload=payload)])
                assert isinstance(many, Published)
                assert (await of.event(many.id)).body == body


async def test_a_trace_goes_on_from_either(receiver):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with running_hookline() as hooks, HooklineClient(hooks.url) as client:
        await hooks.subscribe(receiver)
        for n, of in enumerate((hooks, client), 1):
            await of.publish("a", n, traceparent=parent, tracestate="a=b")
            request = (await receiver.arrived(n))[-1]
            trace = request.headers["traceparent"].split("-")
            assert (trace[1], request.headers["tracestate"]) == (parent.split("-")[1], "a=b")


# --- before the start and after the end ---


async def test_before_it_is_started_every_call_says_so(tmp_path):
    hooks = Hookline(f"sqlite:///{tmp_path}/hooks.db")
    for asked in (hooks.publish("a", 1), hooks.publish_many([]), hooks.health(), hooks.endpoints().page()):
        assert isinstance(await refusal(asked), errors.NotRunning)


async def test_after_its_end_every_call_says_so(tmp_path):
    async with Hookline(f"sqlite:///{tmp_path}/hooks.db") as hooks:
        await hooks.publish("a", 1)
    for asked in (hooks.publish("a", 1), hooks.publish_many([]), hooks.health(), hooks.endpoints().page()):
        error = await refusal(asked)
        assert (type(error), error.code) == (errors.NotRunning, "unavailable")


async def test_a_start_while_it_runs_changes_nothing(tmp_path):
    hooks = Hookline(f"sqlite:///{tmp_path}/hooks.db")
    await hooks.start()
    async with hooks:
        await hooks.publish("a", 1)
        with pytest.raises(errors.StoreRefused, match="one process serves"):
            await Hookline(f"sqlite:///{tmp_path}/hooks.db").start()


# --- words ---


def all_words() -> list[type[OpenWord]]:
    return OpenWord.__subclasses__()


@pytest.mark.parametrize("words", all_words(), ids=lambda each: each.__name__)
def test_a_word_of_a_newer_server_is_kept_as_it_is(words):
    new = msgspec.json.decode(b'"moonstruck"', type=words)
    assert isinstance(new, words)
    assert (new, str(new), f"{new}", new.value, new.is_known) == (*["moonstruck"] * 4, False)
    assert msgspec.json.encode(new) == b'"moonstruck"'
    assert re.search("moonstruck", repr(new))
    assert "moonstruck" not in {str(each) for each in words}
    assert all(msgspec.json.decode(msgspec.json.encode(each), type=words) is each for each in words)
    assert all(each.is_known for each in words)


def test_a_word_that_is_no_text_is_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b"5", type=DeliveryState)
    with pytest.raises(ValueError, match="5"):
        DeliveryState(5)
