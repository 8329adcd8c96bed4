"""Checks that a circuit opens and closes exactly as it is configured.

Counts an owner's answers a second time and compares the owner's conclusions.
"""

import json
from typing import TYPE_CHECKING, NamedTuple

from hookline.model import CircuitState, Outcome
from hookline.pipeline.lanes.lane import Lane
from hookline.store.contract import Settlement
from tests.sim.clock import TICK

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.world import World

SLICES = 10  # of the window, which moves on slice by slice


class Counted(NamedTuple):
    """Answers that came in within one slice of time."""

    at: int  # which slice
    attempts: int
    failures: int
    is_exact: bool  # an owner may count a success in the slice before


class Seen:
    """The state of a lane's circuit that its owner should have."""

    def __init__(self, lane: Lane, *, at: int) -> None:
        circuit = lane.flow.circuit
        self.applied = lane.flow.applied  # the last change it read: a change may close the circuit
        self.is_closed = circuit.state is CircuitState.CLOSED
        self.failures = circuit.failures
        self.cooldown = circuit.cooldown
        self.counted = [Counted(part.index, part.attempts, part.failures, True) for part in circuit.slices]
        self.counted.append(Counted(at, lane.flow.breaker._successes, 0, False))  # not yet counted


class Circuits:
    """I13: transitions and thresholds, by what the owner was answered."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rows = world.database.shadow.rows
        self._seen: dict[Lane, Seen] = {}

    def landed(self, process: "Process", lane: Lane, settlement: Settlement, *, was_probe: bool) -> None:
        """Compare an owner's conclusion from an answer."""
        endpoint = self._rows["endpoints"].get(lane.endpoint_id)
        seen = self._seen.get(lane)
        if endpoint is None or endpoint["circuit"] is None or lane.is_lost:
            return
        policy = json.loads(endpoint["circuit"])
        at = int(process.clock.now() // (policy["window_s"] / SLICES))
        outcome = settlement.attempt.outcome
        if seen is None or seen.applied != lane.flow.applied:
            # The first conclusion of this owner, or since an operator closed the circuit: it is accepted unchecked.
            self._seen[lane] = Seen(lane, at=at)
            return
        if was_probe:
            self._probed(lane, seen, outcome, policy)
        elif seen.is_closed:
            self._counted(process, lane, seen, outcome, policy, at=at)
        elif lane.flow.circuit.state is CircuitState.CLOSED:
            self._fail("an answer that was not the probe's closed a circuit")

    def _fail(self, detail: str) -> None:
        self._world.fail("I13 circuit", detail)

    def _probed(self, lane: Lane, seen: Seen, outcome: Outcome, policy: dict[str, float]) -> None:
        circuit = lane.flow.circuit
        if outcome not in (Outcome.TRANSIENT, Outcome.THROTTLED):
            if circuit.state is not CircuitState.CLOSED or circuit.failures or circuit.slices:
                self._fail(f"{circuit.state} after a probe that was {outcome}")
            seen.is_closed, seen.failures, seen.counted = True, 0, []
            return
        before = seen.cooldown or policy["cooldown_s"]
        cooldown = min(2 * before, policy["max_cooldown_s"]) if outcome is Outcome.TRANSIENT else before
        if circuit.state is not CircuitState.OPEN:
            self._fail(f"{circuit.state} after a probe that was {outcome}")
        if outcome is Outcome.TRANSIENT:  # a receiver that throttles may name the time of the probe itself
            self._opened(lane, cooldown)
        elif (circuit.probe_at or 0.0) - (circuit.opened_at or 0.0) > max(
            cooldown, policy["max_cooldown_s"]
        ) + TICK:
            self._fail("a probe's receiver is left alone for longer than the longest cooldown")
        seen.cooldown = cooldown

    def _opened(self, lane: Lane, cooldown: float) -> None:
        circuit = lane.flow.circuit
        stays = (circuit.probe_at or 0.0) - (circuit.opened_at or 0.0)
        if circuit.cooldown != cooldown or abs(stays - cooldown) > TICK:
            self._fail(f"open for {stays:.3f} s, it should be {cooldown:g}")

    def _counted(
        self,
        process: "Process",
        lane: Lane,
        seen: Seen,
        outcome: Outcome,
        policy: dict[str, float],
        *,
        at: int,
    ) -> None:
        circuit = lane.flow.circuit
        must = may = False
        if outcome is Outcome.ACCEPTED:
            seen.failures = 0
            seen.counted.append(Counted(at, 1, 0, False))
        elif outcome is Outcome.TRANSIENT:
            seen.failures += 1
            seen.counted.append(Counted(at, 1, 1, True))
            verdicts = _shares_that_trip(seen.counted, policy, at=at)
            is_row = seen.failures >= _most_in_a_row(
                policy, is_slow=lane.endpoint_id in process.hooks.worker.very_slow
            )
            must, may = is_row or all(verdicts), is_row or any(verdicts)
        is_open = circuit.state is CircuitState.OPEN
        if must and not is_open:
            self._fail(f"closed after {seen.failures} failures in a row, counted {seen.counted}")
        if is_open and not may:
            self._fail(f"open after {seen.failures} failures in a row, counted {seen.counted}")
        if circuit.failures != seen.failures:
            self._fail(f"{circuit.failures} failures in a row are counted, there were {seen.failures}")
        if is_open:
            self._opened(lane, policy["cooldown_s"])
        seen.is_closed = not is_open
        seen.cooldown = circuit.cooldown


def _most_in_a_row(policy: dict[str, float], *, is_slow: bool) -> float:
    """Consecutive failures that open the circuit: half as many if the endpoint is known to be very slow."""
    return policy["consecutive_failures"] / 2 if is_slow else policy["consecutive_failures"]


def _shares_that_trip(counted: list[Counted], policy: dict[str, float], *, at: int) -> list[bool]:
    """Whether the failure rate opens the circuit, for every number of attempts that may be in the window."""
    inside = [part for part in counted if at - SLICES < part.at <= at]
    counted[:] = inside
    failures = sum(part.failures for part in inside)
    most = sum(part.attempts for part in inside)
    doubtful = [part for part in inside if not part.is_exact and part.at - 1 <= at - SLICES]
    least = most - sum(part.attempts for part in doubtful)
    return [
        attempts >= policy["min_attempts"] and failures >= policy["failure_rate"] * attempts
        for attempts in range(least, most + 1)
    ]
