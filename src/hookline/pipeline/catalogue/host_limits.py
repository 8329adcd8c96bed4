"""Limits how many requests one host has under way from this worker.

Somebody who registers a victim's address a hundred times must not turn us into a flood. So a cap holds for all
endpoints of a host, whoever owns them. Lanes that the cap holds back wait in the host's own line and delay nobody else.
Hosts in networks that the operator allowed have no cap; the address behind a name is known once it was reached.
"""

import math
from collections import deque
from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from hookline.rules.slots import kept_in_line

if TYPE_CHECKING:
    from hookline.pipeline.lanes.lane import Lane


class Host:
    """One host, with the lanes that wait for it."""

    __slots__ = ("__weakref__", "cap", "in_flight", "line")

    def __init__(self, cap: float) -> None:
        self.cap = cap
        self.in_flight = 0
        self.line: deque[Lane] = deque()

    def room_in_line(self) -> int:
        """How many deliveries each of its lanes may hold in memory while others wait."""
        return kept_in_line(self.cap, len(self.line))

    def admits(self, lane: "Lane") -> bool:
        """Whether the lane may send one more now. A lane that was not called goes behind those that wait."""
        return self.in_flight < self.cap and (not self.line or lane.is_called)

    def park(self, lane: "Lane") -> None:
        """Let the lane wait; a lane that was called and came too late keeps its place."""
        if lane.is_called:
            self.line.appendleft(lane)
        else:
            self.line.append(lane)
        lane.park(self)

    def call(self) -> "Lane | None":
        """The lane whose turn it is, if there is a slot; None: no lane's."""
        while self.line and self.in_flight < self.cap:
            lane = self.line.popleft()
            if lane.parked_at is self:  # else its endpoint has moved to another host meanwhile
                lane.unpark()
                if lane.has_unsent and not lane.is_lost:
                    lane.call()
                    return lane
        return None


class Hosts:
    """All hosts that are sent to."""

    def __init__(self, cap: int, *, is_allowed: Callable[[str], bool]) -> None:
        self._cap = cap
        self._is_allowed = is_allowed  # is this address in a network without caps?
        self._by_name: WeakValueDictionary[str, Host] = WeakValueDictionary()

    def of(self, name: str) -> Host | None:
        """The host of that name or address; None: it has no cap."""
        try:
            ip_address(name)
        except ValueError:
            pass
        else:
            if self._is_allowed(name):
                return None
        found = self._by_name.get(name)
        if found is None:
            found = self._by_name[name] = Host(self._cap)
        return found

    def reached(self, name: str, address: str) -> None:
        """A connection to the host was opened; this is its address."""
        found = self._by_name.get(name)
        if found is not None:
            found.cap = math.inf if self._is_allowed(address) else self._cap
