"""Puts counted latencies into the few buckets of a metric."""

from collections.abc import Mapping, Sequence

from hookline.rules.latency_buckets import LatencyKind, edge_near, of_kind, total_seconds

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_EDGES = tuple(map(edge_near, _SECONDS))


class LatencyDistribution:
    """The durations of one kind (a `Distribution`): every edge is also one of the buckets they were counted in."""

    # Rounded, so that a label is short and the same on every machine.
    edges: Sequence[float] = tuple(float(f"{seconds:.4g}") for _, seconds in _EDGES)

    def __init__(self, counts: Mapping[int, int], kind: LatencyKind) -> None:
        found = of_kind(counts, kind)
        ends = [*(bucket for bucket, _ in _EDGES), max(found, default=0) + _EDGES[-1][0] + 1]
        below = [sum(number for bucket, number in found.items() if bucket < end) for end in ends]
        self.counts = [after - before for before, after in zip([0, *below], below, strict=False)]
        self.total = total_seconds(found)
