"""Checks that no lane is stuck that could send.

The check runs at every pulse of the lane's process and uses what the process itself knows, so a fault is no excuse. A
lane that is held and has unsent deliveries, a slot and an open gate sends within a poll. A process that was stopped,
cannot reach the database or sends a suspect alone may not send, so its lanes are not stuck.
"""

import copy
from typing import TYPE_CHECKING

from hookline.ids import show
from hookline.pipeline.catalogue.host_limits import Host
from hookline.pipeline.lanes.lane import Lane

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.world import World

ENOUGH = 2  # good pulses: what came back unsent is offered by the next one


class Stand:
    """A lane that could send, when it was first seen so."""

    __slots__ = ("at", "pulse", "pulses", "sends")

    def __init__(self, at: float, sends: int, pulse: float) -> None:
        self.at = at
        self.sends = sends
        self.pulse = pulse
        self.pulses = 0  # good ones since


class Stands:
    """The lanes of each process that could send at its last pulse."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._seen: dict[Process, dict[Lane, Stand]] = {}
        self._shortages: dict[
            Process, int
        ] = {}  # at the last pulse: what could not be sent rests until the next one
        self.fullest = 0.0  # the buffer of a lane that is being released, as a share of its capacity

    def look(self, process: "Process") -> None:
        """Check the lanes of a process after its pulse."""
        before = self._seen.pop(process, {})
        if not process.delivers or process.owner.is_held or not process.is_up:
            return
        worker = process.hooks.worker
        dispatcher = worker.dispatcher
        for lane in worker.ownership.lanes.values():
            if lane.is_releasing:
                self.fullest = max(self.fullest, len(lane.known) / lane.capacity)
        if (
            dispatcher._alone is not None
            or dispatcher.in_flight >= dispatcher.slots
            or not worker._may_send()
        ):
            return
        before_this = self._shortages.get(process, 0)
        self._shortages[process] = process.hooks._sender.shortages
        if self._shortages[process] != before_this:
            return
        at, pulse = self._world.loop.time(), process.hooks._heartbeat._good
        seen = self._seen[process] = {}
        for lane in worker.ownership.lanes.values():
            if not could_send(lane) or not dispatcher._has_share(lane.health):
                continue
            if not lane.flow.breaker.is_closed and worker.events.tasks.has(lane):
                continue  # its probe is being stored
            stand = before.get(lane)
            if stand is None or stand.sends != lane.sends:
                stand = Stand(at, lane.sends, pulse)
            elif stand.pulse != pulse:
                stand.pulse = pulse
                stand.pulses += 1
            seen[lane] = stand
            if stand.pulses >= ENOUGH and at - stand.at > self._world.settings.poll_s:
                self._world.fail(
                    "no lane stands still",
                    f"{process.name} holds {len(lane.ready) + len(lane.timed)} unsent deliveries of "
                    f"{show('endpoint', lane.endpoint_id)}, with a slot and an open gate, for {at - stand.at:.3f} s",
                )


def could_send(lane: Lane) -> bool:
    """Whether only the dispatcher keeps the lane from sending."""
    if not lane.is_held or not lane.has_unsent or lane.in_flight >= lane.window or lane.is_suspect:
        return False
    line = lane.parked_at
    if line is not None and not (isinstance(line, Host) and line.in_flight < line.cap):
        return False  # it waits for its host, or for memory
    if not lane._is_turn():
        return False
    if lane.flow.is_probing and lane.in_flight:
        return False
    flow = copy.copy(lane.flow)  # looking at it must not change it
    return flow.looks_again_at() <= flow.now()  # of an open circuit: a probe is due
