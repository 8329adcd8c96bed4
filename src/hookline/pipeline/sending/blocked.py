"""Who is told of endpoints whose address this process may not send to?

Mostly the API accepted them, and this process was started without its setting. Each attempt would fail in the same way
until they run out, and nobody but a reader of single attempts would know.
"""

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.model import EndpointId

SAY_AGAIN = 3_600.0  # seconds between two lines about one endpoint
REMEMBERED = 10_000  # endpoints; names that point inside are their owners' choice, and so is how many

log = structlog.get_logger()


class Blocked:
    """Says it in the log, once in a while for each endpoint."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[EndpointId, float] = {}

    def note(self, endpoint: EndpointId, detail: str | None) -> None:
        """An attempt was not made because of its address."""
        at = self._clock.monotonic()
        said = self._said.get(endpoint)
        if said is not None and at - said < SAY_AGAIN:
            return
        self._said.pop(endpoint, None)
        if len(self._said) >= REMEMBERED:
            del self._said[next(iter(self._said))]  # of whom it was said longest ago
        self._said[endpoint] = at
        log.warning(
            "endpoint.blocked",
            endpoint_id=ids.show("endpoint", endpoint),
            error=detail,
            note="its attempts fail until they run out: set HOOKLINE_ALLOW_NETWORKS here too, as it is where "
            "the endpoint was accepted, or disable the endpoint",
        )
