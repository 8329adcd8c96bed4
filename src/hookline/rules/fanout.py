"""Decides which endpoints an event goes to.

It goes to the enabled endpoints of its account whose patterns match its type. A pattern is a type, a type followed by
`.*` (one or more further parts), or `*`.
"""

from collections.abc import Iterable

from hookline.model import Endpoint, EndpointId

_REMEMBERED_TYPES = 4_096  # producers choose the types, so the memory for them needs a limit


def matches(pattern: str, event_type: str) -> bool:
    """Whether this pattern matches the event type."""
    if pattern == "*" or pattern == event_type:
        return True
    return pattern.endswith(".*") and event_type.startswith(pattern[:-1])


class Subscriptions:
    """The endpoints of one account, indexed so that a lookup by type does not go through all of them."""

    __slots__ = ("_by_pattern", "_found")

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._by_pattern: dict[str, list[EndpointId]] = {}
        self._found: dict[str, tuple[EndpointId, ...]] = {}
        for endpoint in endpoints:
            if endpoint.enabled:
                for pattern in endpoint.events:
                    self._by_pattern.setdefault(pattern, []).append(endpoint.id)

    def find(self, event_type: str) -> tuple[EndpointId, ...]:
        """The endpoints for this type, each once, in order of their ids."""
        found = self._found.get(event_type)
        if found is None:
            if len(self._found) >= _REMEMBERED_TYPES:
                self._found.clear()
            found = self._found[event_type] = self._look_up(event_type)
        return found

    def _look_up(self, event_type: str) -> tuple[EndpointId, ...]:
        parts = event_type.split(".")
        patterns = ["*", event_type, *(".".join(parts[:n]) + ".*" for n in range(1, len(parts)))]
        return tuple(sorted({id for pattern in patterns for id in self._by_pattern.get(pattern, ())}))


NOBODY = Subscriptions(())
