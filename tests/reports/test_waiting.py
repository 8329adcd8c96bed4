"""What a pending delivery waits for."""

from typing import Any

import pytest

from factories import NOW, an_endpoint, ids
from hookline.ids import delivery_of
from hookline.model import CLOSED, LONG_AGO, Circuit, CircuitState, Delivery, Ordering, Queue, State, WorkerId
from hookline.reports.waiting import waiting_for
from hookline.store.contract import LaneRow

EVENT = ids.event()
ENDPOINT = an_endpoint()
SOMEBODY = WorkerId(bytes(16))
OPEN = Circuit(state=CircuitState.OPEN, probe_at=NOW + 60)
PROBING = Circuit(state=CircuitState.HALF_OPEN, probe_at=NOW + 10)
OTHER = delivery_of(EVENT, 7)


def a_delivery(**fields: Any) -> Delivery:
    defaults = {
        "id": delivery_of(EVENT, 0),
        "event_id": EVENT,
        "endpoint_id": ENDPOINT.id,
        "account": "default",
        "event_type": "a",
        "state": State.PENDING,
        "queue": Queue.READY,
        "seq": 1,
        "attempts": 0,
        "replays": 0,
        "due_at": NOW,
        "created_at": NOW,
    }
    return Delivery(**(defaults | fields))


def a_lane(**fields: Any) -> LaneRow:
    defaults = {"owner": SOMEBODY, "hold_until": LONG_AGO, "head": None, "circuit": CLOSED}
    return LaneRow(endpoint_id=ENDPOINT.id, **(defaults | fields))


@pytest.mark.parametrize(
    ("word", "delivery", "endpoint", "lane", "circuit", "owner_says"),
    [
        (None, {"state": State.DEAD}, {"enabled": False}, {}, OPEN, "slot"),
        ("disabled", {"due_at": NOW + 5}, {"enabled": False, "paused": True}, {}, OPEN, "rate"),
        ("paused", {"due_at": NOW + 5}, {"paused": True}, {}, OPEN, None),
        ("circuit", {}, {}, {}, OPEN, None),
        ("circuit", {}, {}, {}, PROBING, "circuit"),
        ("circuit", {"due_at": NOW + 60}, {}, {}, OPEN, None),
        ("due", {"due_at": NOW + 61}, {}, {}, OPEN, None),
        ("slot", {}, {"circuit": None}, {}, OPEN, None),
        ("due", {"due_at": NOW + 0.001}, {}, {}, CLOSED, "rate"),
        ("due", {}, {}, {"hold_until": NOW + 1}, CLOSED, None),
        ("due", {}, {}, {}, CLOSED, "due"),
        ("receiver", {}, {}, {"hold_until": NOW + 1, "rest_until": NOW + 1}, CLOSED, None),
        ("receiver", {}, {}, {"hold_until": NOW + 1, "rest_until": NOW + 1}, CLOSED, "rate"),
        ("receiver", {}, {}, {}, CLOSED, "receiver"),
        ("receiver", {"due_at": NOW + 1}, {}, {"hold_until": NOW + 1, "rest_until": NOW + 1}, CLOSED, None),
        ("due", {"due_at": NOW + 2}, {}, {"hold_until": NOW + 1, "rest_until": NOW + 1}, CLOSED, None),
        ("slot", {}, {}, {"hold_until": NOW - 1, "rest_until": NOW - 1}, CLOSED, None),
        ("circuit", {}, {}, {"hold_until": NOW + 1, "rest_until": NOW + 1}, OPEN, "circuit"),
        ("order", {}, {"ordering": Ordering.STRICT}, {"head": OTHER, "rest_until": NOW + 9}, CLOSED, None),
        ("rate", {}, {}, {}, CLOSED, "rate"),
        ("slot", {}, {}, {}, CLOSED, "slot"),
        ("slot", {}, {}, {}, CLOSED, None),
        ("order", {}, {"ordering": Ordering.STRICT}, {"head": OTHER, "hold_until": NOW + 9}, CLOSED, None),
        ("order", {}, {"ordering": Ordering.STRICT}, {"head": OTHER}, CLOSED, "rate"),
        ("order", {}, {"ordering": Ordering.STRICT}, {}, CLOSED, "order"),
        ("order", {}, {"ordering": Ordering.STRICT}, {}, CLOSED, None),
        ("slot", {}, {"ordering": Ordering.STRICT}, {"owner": None}, CLOSED, None),
        ("slot", {}, {"ordering": Ordering.STRICT}, {"head": delivery_of(EVENT, 0)}, CLOSED, "order"),
    ],
)
def test_the_first_thing_that_holds_it_back_is_named(word, delivery, endpoint, lane, circuit, owner_says):
    said = waiting_for(
        a_delivery(**delivery),
        endpoint=an_endpoint(**endpoint),
        lane=a_lane(**lane),
        circuit=circuit,
        owner_says=owner_says,
        now=NOW,
    )
    assert said == word


def test_what_waits_for_an_endpoint_that_is_gone_waits_as_if_it_were_disabled():
    said = waiting_for(a_delivery(), endpoint=None, lane=None, circuit=CLOSED, owner_says=None, now=NOW)
    assert said == "disabled"
