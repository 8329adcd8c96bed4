"""How times are written outside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline import rfc3339


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2026-11-15T21:08:14.5Z", 1794776894.5),
        ("2026-11-15t21:08:14z", 1794776894.0),
        ("2026-11-15T23:08:14+02:00", 1794776894.0),
        ("2026-11-15T15:38:14-05:30", 1794776894.0),
        ("1969-12-31T23:59:59.999999Z", -0.000001),
    ],
)
def test_a_moment_is_read_with_any_zone(text, seconds):
    assert rfc3339.read(text) == pytest.approx(seconds, abs=1e-7)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.000000Z"])
def test_the_first_and_the_last_moment_can_be_read_and_shown_again(text):
    assert rfc3339.show(rfc3339.read(text)) == text


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-00:01", "9999-12-31T23:59:59.999999Z"]
)
def test_a_moment_that_could_not_be_shown_is_not_read(text):
    with pytest.raises(ValueError, match="years 1 to 9999"):
        rfc3339.read(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "tomorrow", "* * * * *", "@reboot", "292277026596", "2026-02-30T00:00:00Z", "2026-02-30"),
        *("2026-01-01T00:00:00", "2026-01-01T00:00:60Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00Z"),
        *(
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+0100",
            "0000-01-01T00:00:00Z",
            " 2026-01-01T00:00:00Z",
        ),
        *("2026-01-01T00:00:00Z\n", "２０２６-01-01T00:00:00Z", "2026-01-01T00:00:00.Z"),
    ],
)
def test_anything_else_is_no_moment(text):
    with pytest.raises(ValueError, match=r"."):
        rfc3339.read(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z"),
        (1794776894.25, "2026-11-15T21:08:14.250000Z"),
        (1794776894.9999999, "2026-11-15T21:08:15.000000Z"),
        (-0.5, "1969-12-31T23:59:59.500000Z"),
    ],
)
def test_a_moment_is_shown_in_utc_with_microseconds(seconds, text):
    assert rfc3339.show(seconds) == text


@pytest.mark.parametrize("seconds", [-1e300, float("-inf"), -62_135_596_801.0])
def test_a_moment_before_the_first_is_shown_as_the_first(seconds):
    assert rfc3339.show(seconds) == "0001-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("seconds", [9_224_318_015_999.0, 1e300, float("inf"), float("nan")])
def test_a_moment_after_the_last_is_shown_as_the_last(seconds):
    assert rfc3339.show(seconds) == "9999-12-31T23:59:59.000000Z"


@given(st.floats())
def test_any_number_is_shown_as_a_moment_that_can_be_read(seconds):
    assert rfc3339.can_be_shown(rfc3339.read(rfc3339.show(seconds)))
