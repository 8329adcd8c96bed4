"""Percentiles of buckets are within 1 % of the exact ones, whatever was measured."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.model import ErrorKind
from hookline.rules.latency_buckets import (
    BUCKETS,
    FIRST_ERROR,
    LONGEST,
    NOTHING,
    SHORTEST,
    LatencyKind,
    accepted,
    add_encoded,
    answer_key,
    bucket_of,
    by_answer,
    compress,
    decode,
    decompress,
    encode,
    mean,
    of_kind,
    percentile,
    seconds_of,
)

ONE_PERCENT = 0.01 + 1e-9  # of rounding
durations = st.floats(SHORTEST, 30 * 86_400.0)
# Samples that lie on the edges of buckets, each just below, at or just above one.
edges = st.builds(
    lambda bucket, nudge: max(SHORTEST, SHORTEST * 1.02**bucket * (1 + nudge)),
    st.integers(0, 1_210),
    st.sampled_from([-1e-12, 0.0, 1e-12]),
)
two_peaks = st.tuples(durations, durations, st.integers(1, 99)).map(
    lambda peaks: [peaks[0]] * peaks[2] + [peaks[1]] * (100 - peaks[2])
)
samples = st.one_of(
    st.lists(durations, min_size=1, max_size=200), st.lists(edges, min_size=1, max_size=200), two_peaks
)


def exact(values: list[float], percent: float) -> float:
    return sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]


@given(samples, st.sampled_from([1, 50, 75, 90, 95, 99, 99.9, 100]))
def test_a_percentile_is_within_one_percent_of_the_exact_one(values, percent):
    found = percentile(Counter(map(bucket_of, values)), percent)
    wanted = exact(values, percent)
    assert found is not None
    assert abs(found - wanted) <= wanted * ONE_PERCENT


@given(samples)
def test_the_mean_is_within_one_percent_of_the_exact_one(values):
    found, wanted = mean(Counter(map(bucket_of, values))), math.fsum(values) / len(values)
    assert found is not None
    assert abs(found - wanted) <= wanted * ONE_PERCENT


@given(st.lists(samples, min_size=1, max_size=8), st.sampled_from([50, 95, 99]))
def test_parts_merged_after_storing_say_what_the_whole_says(parts, percent):
    merged: dict[int, int] = {}
    for part in parts:
        add_encoded(merged, decompress(compress(encode(Counter(map(bucket_of, part))))))
    whole = Counter(bucket_of(value) for part in parts for value in part)
    assert merged == whole
    assert percentile(merged, percent) == percentile(whole, percent)


@given(st.dictionaries(st.integers(0, 0xFFFF), st.integers(1, 1 << 40)))
def test_counts_are_read_as_they_were_written(counts):
    assert decode(encode(counts)) == counts


def test_the_worst_error_is_at_both_ends_of_a_bucket_the_same():
    for bucket in range(1_300):
        low, high = SHORTEST * 1.02**bucket, SHORTEST * 1.02 ** (bucket + 1)
        assert (seconds_of(bucket) - low) / low <= 0.0099 + 1e-4
        assert (high - seconds_of(bucket)) / high <= 0.0099 + 1e-4


def test_there_is_no_percentile_and_no_mean_of_nothing():
    assert percentile({}, 95) is None
    assert mean({}) is None
    assert percentile(decode(b""), 50) is None


@pytest.mark.parametrize("odd", [0.0, -1.0, -math.inf, math.nan, SHORTEST, 1e-300])
def test_what_no_clock_should_show_is_in_the_first_bucket(odd):
    assert bucket_of(odd) == 0


@pytest.mark.parametrize("long", [LONGEST, LONGEST + 1, 1e300, math.inf])
def test_what_takes_longer_than_anything_is_in_the_last_bucket(long):
    assert bucket_of(long) == bucket_of(LONGEST) < BUCKETS - 1


def test_the_buckets_of_90_days_leave_room_for_the_kind_in_16_bits():
    assert (bucket_of(60.0), bucket_of(30 * 86_400.0), bucket_of(LONGEST)) == (671, 1_210, 1_266)


def test_kinds_are_told_apart():
    counts = {
        LatencyKind.RESPONSE << 11 | 5: 2,
        LatencyKind.END_TO_END << 11 | 5: 3,
        LatencyKind.ANSWER << 11 | 200: 4,
    }
    assert of_kind(counts, LatencyKind.END_TO_END) == {5: 3}
    assert of_kind(counts, LatencyKind.QUEUE_WAIT) == {}


def test_answers_are_counted_by_status_or_by_error_and_only_2xx_without_an_error_is_accepted():
    keys = [
        answer_key(200, None),
        answer_key(204, None),
        answer_key(503, ErrorKind.HTTP_5XX),
        answer_key(None, ErrorKind.TIMEOUT),
        answer_key(200, ErrorKind.RESET),
        answer_key(None, None),
        answer_key(70_000, ErrorKind.PROTOCOL),
    ]
    counts = Counter(keys)
    assert accepted(counts) == 2
    assert by_answer(counts) == {
        "200": 1,
        "204": 1,
        "503": 1,
        "timeout": 1,
        "reset": 1,
        "protocol": 1,
        "internal": 1,
    }


def test_every_error_has_a_number_of_its_own():
    keys = {answer_key(None, error) for error in ErrorKind}
    assert len(keys) == len(ErrorKind)
    assert all(FIRST_ERROR <= key < NOTHING for key in keys)


@pytest.mark.parametrize("broken", [b"\x05", b"\x05\x80", b"\x85"])
def test_bytes_that_are_no_counts_are_refused(broken):
    with pytest.raises(ValueError, match=r"missing|cut off"):
        decode(broken)


def test_bytes_that_were_not_compressed_are_refused():
    with pytest.raises(ValueError, match="incorrect"):
        decompress(b"no zlib")
