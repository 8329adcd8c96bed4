"""A metric of latencies is that of the attempts, as exact as its edges are."""

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from random import Random

import pytest

from hookline.pipeline.measuring.latency_distribution import LatencyDistribution
from hookline.rules.latency_buckets import KIND_BITS, LatencyKind, bucket_of

NOMINAL = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


def counted(kind: LatencyKind, durations: list[float]) -> Counter[int]:
    return Counter(kind << KIND_BITS | bucket_of(seconds) for seconds in durations)


@pytest.mark.parametrize("kind", [LatencyKind.RESPONSE, LatencyKind.END_TO_END])
def test_every_duration_is_below_the_edge_that_it_is_below(kind):
    rng = Random(5)
    durations = [rng.lognormvariate(-1, 3) for _ in range(5_000)]
    found = LatencyDistribution(counted(kind, durations), kind)
    wanted = [0] * (len(found.edges) + 1)
    near = 0  # so close to an edge that its rounding may decide
    for seconds in durations:
        wanted[bisect_left(found.edges, seconds)] += 1
        near += any(abs(seconds / edge - 1) < 1e-3 for edge in found.edges)
    assert sum(found.counts) == len(durations)
    assert len(found.counts) == len(found.edges) + 1
    below = zip(accumulate(found.counts), accumulate(wanted), strict=True)
    assert all(abs(here - there) <= near for here, there in below)
    assert near < 50
    assert abs(found.total / sum(durations) - 1) < 0.0101


def test_the_edges_are_those_next_to_the_usual_ones():
    assert all(
        abs(edge / wanted - 1) <= 0.0101
        for edge, wanted in zip(LatencyDistribution.edges, NOMINAL, strict=True)
    )


def test_what_is_counted_of_another_kind_is_left_out():
    other = counted(LatencyKind.QUEUE_WAIT, [1.0])
    found = LatencyDistribution(other, LatencyKind.RESPONSE)
    assert (sum(found.counts), found.total) == (0, 0.0)


def test_a_duration_above_all_edges_is_in_the_last_bucket():
    found = LatencyDistribution(counted(LatencyKind.END_TO_END, [90.0, 1e6]), LatencyKind.END_TO_END)
    assert found.counts == [0] * len(NOMINAL) + [2]
