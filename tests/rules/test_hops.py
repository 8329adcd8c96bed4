"""An event that has gone round in a loop is recognised."""

import pytest

from hookline.errors import Invalid
from hookline.rules.hops import checked, read


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_a_chain_up_to_the_limit_may_go_on(hops):
    assert checked(hops, most=3) == hops


@pytest.mark.parametrize(("hops", "most"), [(4, 3), (1, 0), (999_999_999, 100)])
def test_a_longer_one_is_a_loop(hops, most):
    with pytest.raises(Invalid) as refused:
        checked(hops, most=most)
    assert refused.value.code == "loop_detected"


@pytest.mark.parametrize("hops", [-1, 1.5, "1", None])
def test_what_is_no_number_is_no_loop_either(hops):
    with pytest.raises(Invalid) as refused:
        checked(hops, most=3)
    assert (refused.value.code, refused.value.pointer) == ("invalid_field", "/hops")


@pytest.mark.parametrize(("value", "hops"), [(b"0", 0), (b"3", 3), (b"007", 7), (b"999999999", 999_999_999)])
def test_a_header_is_a_number(value, hops):
    assert read(value) == hops


@pytest.mark.parametrize("value", [b"", b"-1", b"+1", b"1.0", b"x", b"1,2", b" 1", b"9" * 10, "١".encode()])
def test_other_headers_are_refused(value):
    with pytest.raises(Invalid):
        read(value)
