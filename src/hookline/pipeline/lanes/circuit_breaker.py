"""Walks a lane's circuit from the failure that opens it to the probe that closes it.

    closed ──failures──► open ──cooldown over: the probe is stored, then sent──► half open ──accepted──► closed
                          ▲                                                        │
                          └────────────────────────failed──────────────────────────┘

The rules are in `rules/circuit.py`. A probe is stored before it is sent: if its owner dies, the next one knows of it and
does not send another before its time is over.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from hookline import ids
from hookline.model import LONG_AGO, Circuit, CircuitPolicy, CircuitState, Endpoint, Outcome
from hookline.rules import circuit as circuits

if TYPE_CHECKING:
    from hookline.pipeline.lanes.lane import Lane
    from hookline.pipeline.lanes.notes import LaneNotes

_PROBE_GRACE = 2.0  # seconds after a probe's deadline at which another may try

log = structlog.get_logger()


class CircuitBreaker:
    """The circuit of an owned lane."""

    __slots__ = ("_endpoint", "_first_success", "_now", "_successes", "circuit", "is_granted")

    def __init__(self, circuit: Circuit, endpoint: Endpoint | None, *, now: Callable[[], float]) -> None:
        self._now = now
        self.circuit = circuit
        self.is_granted = False  # a probe is stored, and not answered yet
        self._endpoint = endpoint
        self._successes = 0  # not yet counted in the circuit, since `_first_success`
        self._first_success = LONG_AGO

    def follow(self, endpoint: Endpoint | None) -> bool:
        """The endpoint was changed; says whether the circuit is to be closed, because there is to be none."""
        self._endpoint = endpoint
        return endpoint is not None and endpoint.circuit is None and not self.is_closed

    @property
    def is_closed(self) -> bool:
        return self.circuit.state is CircuitState.CLOSED

    @property
    def policy(self) -> CircuitPolicy | None:
        return None if self._endpoint is None else self._endpoint.circuit

    # --- from closed to open ---

    def count_success(self) -> None:
        """An attempt of an untroubled lane was accepted; until something fails nobody looks at these."""
        policy = None if self._endpoint is None else self._endpoint.circuit
        if policy is not None:
            now = self._now()
            if now - self._first_success >= policy.window_s / circuits.SLICES:
                self._bring_in_successes()
                self._first_success = now
            self._successes += 1

    def _bring_in_successes(self) -> None:
        """Bring the successes of the last while into the circuit."""
        policy = self.policy
        if self._successes and policy is not None:
            self.circuit = circuits.after_successes(
                self.circuit, self._successes, policy=policy, now=self._first_success
            )
        self._successes = 0
        self._first_success = LONG_AGO

    def landed(
        self,
        outcome: Outcome,
        *,
        is_slow: bool,
        now: float,
        asked: float | None,
        was_probe: bool,
    ) -> bool:
        """An attempt was answered; says whether something changed that the next owner must know."""
        policy = self.policy
        self._bring_in_successes()
        if policy is None:
            return False
        before = self.circuit
        if was_probe:
            self.is_granted = False
            self.circuit = circuits.after_probe(before, outcome, policy=policy, now=now, asked=asked)
        else:
            self.circuit = circuits.after_answer(before, outcome, policy=policy, now=now, is_slow=is_slow)
        return _shown(before) != _shown(self.circuit)

    # --- from open to the probe ---

    @property
    def cooldown_until(self) -> float:
        """When the next probe may be sent, as far as the circuit is concerned."""
        return self.circuit.probe_at or LONG_AGO

    def begin_probe(self) -> float:
        """One probe is about to be stored; nobody else's may be sent before the returned time."""
        timeout = 10.0 if self._endpoint is None else self._endpoint.timeout
        until = self._now() + timeout + _PROBE_GRACE
        self.circuit = circuits.begin_probe(self.circuit, until=until)
        return until

    def reset(self) -> None:
        """An operator closed the circuit, or took it away."""
        self.circuit = circuits.reset(self.circuit)
        self.is_granted = False


class CircuitProbes:
    """Sends the probes of circuits whose cooldown is over."""

    def __init__(self, notes: "LaneNotes") -> None:
        self._notes = notes

    async def send(self, lane: "Lane") -> None:
        """Store that a probe is sent, so that the next offer lets one delivery through.

        Its answer ends in `CircuitBreaker.landed`.
        """
        await self._notes.wait([lane])
        if lane.is_lost or not lane.flow.wants_probe():
            return  # meanwhile
        lane.flow.begin_probe()
        if lane.endpoint_id in await self._notes.write([lane]) and not lane.is_lost:
            lane.flow.grant_probe()


def say_opened(lane: "Lane") -> None:
    """Log that the lane's circuit opened. A probe that fails leaves it open, and is not logged."""
    flow = lane.flow
    log.warning(
        "circuit.opened",
        endpoint_id=ids.show("endpoint", lane.endpoint_id),
        account=None if lane.prepared is None else lane.prepared.endpoint.account,
        reason=flow.circuit.reason,
        next_probe_in_s=round(max(0.0, flow.probes_at() - flow.now()), 3),
    )


def say_closed(lane: "Lane", reason: str) -> None:
    """Log that the lane's circuit closed."""
    log.info(
        "circuit.closed",
        endpoint_id=ids.show("endpoint", lane.endpoint_id),
        account=None if lane.prepared is None else lane.prepared.endpoint.account,
        reason=reason,
    )


def _shown(circuit: Circuit) -> tuple[object, ...]:
    """What of a circuit is worth a write by itself; counts of successes are not."""
    return circuit.state, circuit.failures, circuit.probe_at, circuit.last_failure_at
