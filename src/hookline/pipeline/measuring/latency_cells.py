"""Adds up the measurements of attempts by endpoint and minute or hour."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import structlog

from hookline.model import EndpointId
from hookline.rules.latency_buckets import (
    BUCKETS,
    NOTHING,
    accepted,
    add_encoded,
    compress,
    decompress,
    encode,
    total_seconds,
)
from hookline.rules.latency_samples import keys_by_endpoint, unpack
from hookline.store.contract import EVERY_ENDPOINT, LatencyCell, LoggedBatch

log = structlog.get_logger()


def cell_of(endpoint: EndpointId, at: float, counts: Mapping[int, int]) -> LatencyCell:
    """A minute as it is stored."""
    response = {key: count for key, count in counts.items() if key < BUCKETS}
    return LatencyCell(
        endpoint,
        at,
        total_seconds(response),
        sum(response.values()),
        accepted(counts),
        encode(response),
        encode({key: count for key, count in counts.items() if key >= BUCKETS}),
    )


class LatencyCounts:
    """How the store's counts are read and added up (`LatencyMath`)."""

    def cells(self, batches: Sequence[LoggedBatch]) -> list[LatencyCell]:
        """The minutes of logged batches; one that cannot be read is left out, so that it keeps nothing else."""
        counts: dict[tuple[EndpointId, float], Counter[int]] = defaultdict(Counter)
        for batch in batches:
            try:
                found = keys_by_endpoint(*unpack(batch.samples), skipped=frozenset(batch.late))
            except (ValueError, IndexError) as error:
                log.error("latency.unreadable", error=str(error))
                continue
            for endpoint, keys in found.items():
                counts[endpoint, batch.minute].update(keys)
                counts[EVERY_ENDPOINT, batch.minute].update(keys)
        for each in counts.values():
            del each[NOTHING]
        return [cell_of(endpoint, at, each) for (endpoint, at), each in sorted(counts.items()) if each]

    def hour(self, minutes: Sequence[LatencyCell], before: LatencyCell | None = None) -> LatencyCell:
        """The hour that these minutes of one endpoint belong to, added to `before`."""
        response: dict[int, int] = {}
        rest: dict[int, int] = {}
        for minute in minutes:
            add_encoded(response, minute.response)
            add_encoded(rest, minute.rest)
        if before is not None:
            add_encoded(response, decompress(before.response))
            add_encoded(rest, decompress(before.rest))
        first = minutes[0]
        return LatencyCell(
            first.endpoint_id,
            first.at // 3_600.0 * 3_600.0,
            total_seconds(response),
            sum(response.values()),
            accepted(rest),
            compress(encode(response)),
            compress(encode(rest)),
        )


LATENCY_COUNTS = LatencyCounts()
