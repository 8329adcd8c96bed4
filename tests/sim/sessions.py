"""The database sessions of a simulated world, and the locks they hold.

As on PostgreSQL, the session of a process's pulse ends with the process, with a call on it that failed, and with the
database; it stays while the process is stopped. A worker's lock goes with the session, and the worker's next pulse
takes it again on another one.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from hookline.store.contract import Pulse

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.store import Call
    from tests.sim.world import World

CALLS = ("register", "beat", "pulse")  # on the session of the pulse


class Sessions:
    """The sessions of pulses."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._made = 0
        self._numbers: dict[Process, int] = {}  # of open sessions
        self._holders: dict[bytes, Process | None] = {}  # of the locks of workers that have one
        self._freed_at: dict[
            bytes, float
        ] = {}  # of those whose worker was not answered since on a session with it
        self._held_again_at: dict[bytes, float] = {}  # of these, when a session took it that has no beat yet
        self._up_at = float("-inf")

    def served(self, call: "Call", result: Any) -> Any:
        """The database's answer to a call on the session of a pulse."""
        process = call.process
        if process.owner.is_dropped:
            return result  # sent before it died
        if process not in self._numbers:
            self._made += 1
            self._numbers[process] = self._made
        if call.name == "register":
            self._hold(call.args[0].id, process)
        if not isinstance(result, Pulse):
            return result
        worker = call.keywords.get("worker")
        was_absent = worker in self._holders and self._holders[worker] is not process
        if worker in self._holders:
            self._hold(worker, process)
        gone = frozenset(id for id, holder in self._holders.items() if holder is None)
        return msgspec.structs.replace(
            result, gone=gone, session=self._numbers[process], was_absent=was_absent
        )

    def answered(self, process: "Process", name: str) -> None:
        """Record that a call on this process's session was answered: after a beat the locks it holds count as held."""
        if name == "pulse":
            return
        for worker, holder in self._holders.items():
            if holder is process:
                self._freed_at.pop(worker, None)
                self._held_again_at.pop(worker, None)

    def end(self, process: "Process") -> None:
        """The session of this process's pulse ended, if it had one."""
        self._numbers.pop(process, None)
        for worker, holder in self._holders.items():
            if holder is process:
                self._holders[worker] = None
                self._held_again_at.pop(worker, None)
                self._freed_at.setdefault(worker, self._world.loop.time())

    def end_all(self, *, up_at: float) -> None:
        """The database restarts, and is available after that."""
        for process in list(self._numbers):
            self.end(process)
        self._up_at = up_at

    def free_for(self, worker: bytes) -> float:
        """Seconds that the worker's lock was free, while the database was available, since its last beat.

        A lock held briefly between two looks, by a session without a beat, was not seen by any worker. One that was
        taken again after the last look was free in it; who took it starts nothing before a beat, and learns of its burial.
        """
        if worker not in self._freed_at:
            return 0.0
        until = self._held_again_at.get(worker, self._world.loop.time())
        return until - max(self._freed_at[worker], self._up_at)

    def _hold(self, worker: bytes, process: "Process") -> None:
        if worker in self._freed_at and self._holders.get(worker) is not process:
            self._held_again_at[worker] = self._world.loop.time()
        self._holders[worker] = process
