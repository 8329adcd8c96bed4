"""The answer to a circuit's reset shows the state that results, whoever owns the lane."""

import pytest

from factories import NOW, a_note
from hookline.model import Circuit, CircuitState
from hookline.pipeline.lane_status import LaneStatus
from hookline.reports.owners import LaneOwners
from hookline.reports.queries import Reports
from hookline.testing import ManualClock
from scenes import an_owned_lane, let_go

pytestmark = pytest.mark.anyio

CLOCK = ManualClock()
OPEN = Circuit(
    state=CircuitState.OPEN,
    failures=9,
    opened_at=NOW - 5,
    cooldown=60.0,
    probe_at=NOW + 55,
    last_failure_at=NOW - 5,
    reason="9 failures in a row",
)


async def test_a_circuit_that_was_reset_is_shown_closed_before_its_owner_has_closed_it(store):
    worker, lane = await an_owned_lane(store)
    await store.note(worker, [a_note(lane, circuit=OPEN)], now=NOW)
    await let_go(store, worker, lane)
    await store.reset_circuit(lane.endpoint_id, now=NOW)
    nobody = LaneStatus({}, set(), CLOCK)
    reports = Reports(store, LaneOwners(store, nobody, CLOCK, heartbeat=2.0), shown=float)
    [endpoint] = await store.endpoints_by_id([lane.endpoint_id])
    shown = (await reports.endpoint_after_reset(endpoint)).circuit_state
    assert (shown.state, shown.consecutive_failures, shown.next_probe_at) == ("closed", 0, None)
    assert shown.last_failure_at is not None
    assert (await reports.endpoint(endpoint)).circuit_state.state == "open"  # no owner has carried it out yet
