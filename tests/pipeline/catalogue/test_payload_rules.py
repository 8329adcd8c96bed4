"""How schemas and filters apply to events as they are published."""

import pytest

from hookline.admin.event_types import EventTypeInput
from hookline.errors import HooklineError, SchemaMismatch
from hookline.ids import read
from hookline.model import EndpointId, EventId
from hookline.pipeline.intake.drafts import Draft, Published
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

ORDER = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}


async def describe(world: World, hooks, schema=ORDER, name="order.paid"):
    return await world.pass_until(hooks.event_types.put(name, EventTypeInput(schema=schema)))


async def test_a_payload_that_does_not_fit_is_refused_and_nothing_is_stored(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await describe(world, hooks)
    with pytest.raises(SchemaMismatch) as refused:
        await hooks.publish("order.paid", {"id": "42"}, idempotency_key="k")
    assert refused.value.errors == (("/payload/id", 'The value is not of type "integer".'),)
    assert refused.value.code == "schema_mismatch"
    # The refused event did not use up the key.
    event = await world.pass_until(hooks.publish("order.paid", {"id": 42}, idempotency_key="k"))
    assert (event.deliveries, event.duplicate) == (1, False)
    await world.until(lambda: receiver.requests)
    assert receiver.bodies() == [b'{"id":42}']


async def test_other_types_and_types_whose_description_has_no_schema_are_published_whatever_they_hold(world):
    hooks = await world.start()
    await describe(world, hooks)
    await describe(world, hooks, None, "order.sent")
    for type in ("order.sent", "order.lost", "order"):
        await world.pass_until(hooks.publish(type, {"id": "42"}))


async def test_in_a_batch_a_mismatch_is_that_items_error(world):
    hooks = await world.start()
    await describe(world, hooks)
    drafts = [
        Draft("order.paid", b'{"id":1}'),
        Draft("order.paid", b"{}", idempotency_key="k"),
        Draft("order.paid", b'{"id":2}', idempotency_key="k"),
        Draft("order.sent", b"{}"),
    ]
    results = await world.pass_until(hooks.accept(drafts))
    assert [type(each) for each in results] == [Published, SchemaMismatch, Published, Published]
    assert not results[2].duplicate


async def test_a_schema_is_in_force_when_its_put_returns_and_gone_when_its_delete_does(world):
    hooks = await world.start()
    await world.pass_until(hooks.publish("order.paid", {}))
    await describe(world, hooks)
    with pytest.raises(SchemaMismatch):
        await hooks.publish("order.paid", {})
    await describe(world, hooks, {"type": "object"})
    await world.pass_until(hooks.publish("order.paid", {}))
    await describe(world, hooks)
    await world.pass_until(hooks.event_types.delete("order.paid"))
    await world.pass_until(hooks.publish("order.paid", {}))


async def test_a_schema_survives_a_restart(world):
    hooks = await world.start()
    await describe(world, hooks)
    await world.stop(hooks)
    hooks = await world.start()
    with pytest.raises(SchemaMismatch):
        await hooks.publish("order.paid", {})


async def test_no_event_slips_past_a_schema_that_another_process_has_just_set(shared_world):
    """The first process has an old copy; the store says so, and the event is checked again."""
    world = shared_world
    first, second = await world.start(notify=False), await world.start(notify=False)
    await second.event_types.put("order.paid", EventTypeInput(schema=ORDER))
    assert not first._catalogue.content.matters  # no time has passed for a pulse
    with pytest.raises(SchemaMismatch):
        await first.publish("order.paid", {})


async def test_another_process_learns_of_a_schema_that_is_gone(shared_world):
    world = shared_world
    first, second = await world.start(), await world.start()
    await describe(world, first)
    await world.until(lambda: second._catalogue.content.matters)
    await world.pass_until(first.event_types.delete("order.paid"))
    began = world.clock.now()
    await world.until(lambda: not second._catalogue.content.matters)
    assert world.clock.now() - began <= 1.0
    await world.pass_until(second.publish("order.paid", {}))


async def test_an_event_goes_to_the_endpoints_whose_filter_it_passes(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url("/all"), events=["*"])
    await hooks.create_endpoint(url=receiver.url("/large"), events=["*"], filter="total > `100`")
    await hooks.create_endpoint(url=receiver.url("/vip"), events=["*"], filter="customer.vip")
    small = await world.pass_until(hooks.publish("order.paid", {"total": 5}))
    large = await world.pass_until(hooks.publish("order.paid", {"total": 500, "customer": {"vip": True}}))
    assert (small.deliveries, large.deliveries) == (1, 3)
    await world.until(lambda: len(receiver.requests) == 4)
    assert sorted(each.path for each in receiver.requests) == ["/all", "/all", "/large", "/vip"]


async def test_an_event_that_nobodys_filter_lets_pass_is_kept_all_the_same(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], filter="total")
    event = await world.pass_until(hooks.publish("order.paid", {}))
    assert event.deliveries == 0
    assert await hooks.store.event(EventId(read("event", event.id))) is not None


async def test_a_changed_filter_holds_for_the_next_event(world, receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], filter="total")
    assert endpoint.filter == "total"
    for filter, expected in (("id", 1), ("total", 0), (None, 1)):
        changed = await world.pass_until(hooks.update_endpoint(endpoint.id, filter=filter))
        assert changed.filter == filter
        event = await world.pass_until(hooks.publish("order.paid", {"id": 1}))
        assert event.deliveries == expected
    assert not hooks._catalogue.content.matters


async def test_a_deleted_endpoints_filter_is_forgotten(world, receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], filter="total")
    assert hooks._catalogue.content.matters
    await world.pass_until(hooks.delete_endpoint(endpoint.id))
    assert not hooks._catalogue.content.matters


async def test_a_payload_with_a_number_that_cannot_be_read_passes_filters_and_fits_no_schema(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], filter="total > `1`")
    await describe(world, hooks, {"type": "object"}, "checked")
    event = await world.pass_until(hooks.publish("order.paid", b'{"total":1e999}'))
    assert event.deliveries == 1
    with pytest.raises(SchemaMismatch):
        await hooks.publish("checked", b'{"total":1e999}')


async def test_large_payloads_are_looked_at_beside_the_loop_and_judged_the_same(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], filter="last == 'yes'")
    await describe(world, hooks, {"properties": {"lines": {"items": {"type": "integer"}}}})
    lines = list(range(50_000))
    for payload, expected in (({"lines": lines, "last": "yes"}, 1), ({"lines": lines, "last": "no"}, 0)):
        event = await world.pass_until(hooks.publish("order.paid", payload))
        assert event.deliveries == expected
    with pytest.raises(SchemaMismatch):
        await world.pass_until(hooks.publish("order.paid", {"lines": [*lines, "x"], "last": "yes"}))


async def test_no_payload_is_read_where_nobody_asks(world, receiver, monkeypatch):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["order.*"])
    await hooks.create_endpoint(url=receiver.url(), events=["user.*"], filter="a")
    await hooks.create_endpoint(url=receiver.url(), events=["*"], filter="a", account="other")
    await describe(world, hooks, name="user.left")
    monkeypatch.setattr("hookline.pipeline.catalogue.payload_rules._read", None)
    await world.pass_until(hooks.publish("order.paid", {}))
    with pytest.raises((HooklineError, TypeError)):
        await world.pass_until(hooks.publish("user.left", {"id": 1}))


async def test_a_test_event_reaches_its_endpoint_whatever_it_asked_for(world, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["order.*"], filter="total")
    await hooks.create_endpoint(url=receiver.url("/other"), events=["*"])
    await describe(world, hooks, {"required": ["no"]}, "hookline.test")
    sent = await world.pass_until(hooks.trial.send(EndpointId(read("endpoint", endpoint.id))))
    await world.until(lambda: receiver.requests)
    (request,) = receiver.requests
    assert request.path == "/"
    assert request.headers["webhook-id"] == sent.event_id
    assert request.headers["webhook-event"] == "hookline.test"
    assert sent.id.startswith("dlv_")
