"""Ids sort in the order they were made, and their text reads back to the same bytes."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.clock import SystemClock
from hookline.errors import NotFound
from hookline.ids import MAX_FANOUT, PREFIXES, Ids, delivery_of, event_of, read, show
from hookline.model import EventId

SIXTEEN_BYTES = st.binary(min_size=16, max_size=16)
NOUNS = st.sampled_from(sorted(PREFIXES))


class WallClock(SystemClock):
    """A wall clock that stands where it was put."""

    def __init__(self, at: float) -> None:
        super().__init__()
        self.at = at

    def wall(self) -> float:
        return self.at


def test_ids_sort_in_the_order_they_were_made_within_one_millisecond():
    ids = Ids(WallClock(1_700_000_000.0), Random(1))
    made = [ids.endpoint() for _ in range(10_000)]  # more than the count in one millisecond holds
    assert made == sorted(set(made))
    assert len(made) == 10_000


@settings(deadline=None)
@given(steps=st.lists(st.floats(-10, 10), max_size=50), seed=st.integers())
def test_ids_sort_in_the_order_they_were_made_though_the_clock_is_set_back(steps, seed):
    clock = WallClock(1_700_000_000.0)
    ids = Ids(clock, Random(seed))
    made = [ids.attempt()]
    for step in steps:
        clock.at += step
        made.append(ids.attempt())
    assert made == sorted(set(made))


def test_an_id_has_the_shape_of_a_uuid_of_version_7_and_begins_with_the_millisecond():
    made = Ids(WallClock(1_700_000_000.123), Random(1)).worker()
    assert int.from_bytes(made[:6]) == 1_700_000_000_123
    assert made[6] >> 4 == 7
    assert made[8] >> 6 == 0b10


def test_ids_of_two_processes_differ_in_the_same_millisecond():
    clock = WallClock(1_700_000_000.0)
    assert Ids(clock, Random(1)).event() != Ids(clock, Random(2)).event()


@settings(deadline=None)
@given(seed=st.integers(), ordinal=st.integers(0, MAX_FANOUT - 1))
def test_an_events_deliveries_are_its_id_plus_their_ordinal(seed, ordinal):
    event = Ids(WallClock(1_700_000_000.0), Random(seed)).event()
    delivery = delivery_of(event, ordinal)
    assert int.from_bytes(delivery) == int.from_bytes(event) + ordinal
    assert event_of(delivery) == event


def test_the_deliveries_of_an_event_lie_between_it_and_the_next_event():
    ids = Ids(WallClock(1_700_000_000.0), Random(1))
    first, second = ids.event(), ids.event()
    assert first <= delivery_of(first, 0) < delivery_of(first, MAX_FANOUT - 1) < second


@settings(deadline=None)
@given(noun=NOUNS, id=SIXTEEN_BYTES)
def test_the_text_of_an_id_reads_back_to_the_same_bytes(noun, id):
    text = show(noun, id)
    assert text.startswith(PREFIXES[noun])
    assert len(text) == len(PREFIXES[noun]) + 26
    assert read(noun, text) == id


@settings(deadline=None)
@given(noun=NOUNS, one=SIXTEEN_BYTES, another=SIXTEEN_BYTES)
def test_the_texts_of_ids_sort_as_their_bytes_do(noun, one, another):
    assert (show(noun, one) < show(noun, another)) == (one < another)


GOOD = show("event", EventId(bytes(range(16))))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "evt_",
        GOOD[:-1],
        GOOD + "0",
        GOOD + "\n",
        " " + GOOD,
        GOOD.upper(),
        GOOD.replace("evt_", "dlv_"),
        GOOD.removeprefix("evt_"),
        "evt_8" + "0" * 25,  # 129 bits
        "evt_" + "w" * 26,
        "evt_" + "0" * 24 + "_0",
        "evt_+" + "0" * 25,
        "evt_" + "٠" * 26,  # digits to int(), not to us
        "x" * 10_000,
    ],
)
def test_any_other_text_names_nothing(text):
    with pytest.raises(NotFound) as refused:
        read("event", text)
    assert len(str(refused.value)) < 200


@settings(deadline=None, max_examples=300)
@given(noun=NOUNS, text=st.text() | st.from_regex(r"[a-z]{2,3}_[0-9a-w]{25,27}", fullmatch=True))
def test_a_text_that_can_be_read_is_the_one_that_would_be_shown(noun, text):
    try:
        id = read(noun, text)
    except NotFound:
        return
    assert show(noun, id) == text
