"""A trace is handed on if it is one, and ignored if it is not (W3C Trace Context)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.rules.trace_context import MOST_MEMBERS, MOST_STATE, headers_of, read

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (PARENT, PARENT),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"cc-{TRACE}-{SPAN}-01", PARENT),
        (f"cc-{TRACE}-{SPAN}-ff-what-the-future-brings", PARENT),
        (f"cc-{TRACE}-{SPAN}-02", f"00-{TRACE}-{SPAN}-00"),
    ],
)
def test_a_trace_of_this_version_is_kept_and_a_later_one_is_read_as_this(given, kept):
    assert read([given]) == kept
    assert headers_of(kept) == {"traceparent": kept}


@pytest.mark.parametrize(
    "given",
    [
        "",
        "00",
        PARENT.upper(),
        f" {PARENT}",
        f"{PARENT}\n",
        f"{PARENT}-",
        f"{PARENT}-extra",
        f"ff-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01.extra",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}",
    ],
)
def test_what_is_no_trace_is_ignored_with_its_state(given):
    assert read([given], ["a=1"]) is None


def test_two_traces_are_none_and_a_state_alone_is_nothing():
    assert read([PARENT, PARENT]) is None
    assert read([], ["a=1"]) is None


@pytest.mark.parametrize(
    ("states", "kept"),
    [
        (["a=1"], "a=1"),
        (["a=1, b=2"], "a=1,b=2"),
        (["a=1", "tenant@vendor=x y"], "a=1,tenant@vendor=x y"),
        (["a=1,,b=2,"], "a=1,b=2"),
        ([""], ""),
        (["a"], ""),
        (["A=1"], ""),
        (["a=1,a=2"], ""),
        (["a=1,b=\x00"], ""),
        (["a=é"], ""),
        (
            [",".join(f"k{n}=1" for n in range(MOST_MEMBERS))],
            ",".join(f"k{n}=1" for n in range(MOST_MEMBERS)),
        ),
        ([",".join(f"k{n}=1" for n in range(MOST_MEMBERS + 1))], ""),
        (["a=1", "b=" + "x" * 200, "c=" + "y" * 250, "d=" + "z" * 100], "a=1,d=" + "z" * 100),
        (
            [",".join(f"{name}={'v' * 100}" for name in "abcdef")],
            ",".join(f"{n}={'v' * 100}" for n in "abcd"),
        ),
    ],
)
def test_a_malformed_state_is_dropped_and_a_long_one_is_shortened(states, kept):
    assert read([PARENT], states) == (f"{PARENT} {kept}" if kept else PARENT)
    assert len(kept) <= MOST_STATE


@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=3))
def test_whatever_is_given_what_is_kept_can_stand_in_a_request(parent, states):
    for parents in ([parent], [PARENT]):
        kept = read(parents, states)
        if kept is not None:
            assert kept.isascii()
            assert kept.isprintable()
            assert headers_of(kept)


@pytest.mark.parametrize(
    "stored", ["", "x", PARENT + "\r\nhost: evil", PARENT + " ", PARENT + " A=1", f"{PARENT} a=1\r\nx: y"]
)
def test_what_is_stored_and_is_no_trace_is_not_sent(stored):
    assert headers_of(stored) == {}


def test_both_headers_are_sent():
    assert headers_of(f"{PARENT} a=1,b=x y") == {"traceparent": PARENT, "tracestate": "a=1,b=x y"}
