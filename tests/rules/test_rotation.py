"""Which secrets sign during and after a rotation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import NOW, an_endpoint
from hookline.model import Signature
from hookline.rules.rotation import LONGEST_OVERLAP_S, Rotated, UnderWay, is_overlapping, rotate

DAY = 86_400


def rotated(endpoint, secret, *, overlap=DAY, now=NOW, signature=Signature.V1):
    return rotate(endpoint, secret, signature=signature, overlap=overlap, now=now)


def signing_at(endpoint, at):
    old = [endpoint.old_secret] if is_overlapping(endpoint, at=at) else []
    return [endpoint.secret, *old]


def test_both_sign_until_the_overlap_ends():
    result = rotated(an_endpoint(secret="one"), "two")
    assert result == Rotated(
        an_endpoint(id=result.endpoint.id, secret="two", old_secret="one", old_secret_until=NOW + DAY)
    )
    assert signing_at(result.endpoint, NOW) == ["two", "one"]
    assert signing_at(result.endpoint, NOW + DAY - 0.001) == ["two", "one"]
    assert signing_at(result.endpoint, NOW + DAY) == ["two"]


def test_without_an_overlap_only_the_new_one_signs():
    assert signing_at(rotated(an_endpoint(secret="one"), "two", overlap=0).endpoint, NOW) == ["two"]


def test_a_third_secret_has_to_wait_for_the_overlap_to_end():
    overlapping = rotated(an_endpoint(secret="one"), "two").endpoint
    assert rotated(overlapping, "three", now=NOW + DAY - 1) == UnderWay(NOW + DAY)
    after = rotated(overlapping, "three", now=NOW + DAY).endpoint
    assert signing_at(after, NOW + DAY) == ["three", "two"]


def test_an_overlap_is_cut_short_by_a_rotation_without_one():
    overlapping = rotated(an_endpoint(secret="one"), "two").endpoint
    assert signing_at(rotated(overlapping, "three", overlap=0).endpoint, NOW) == ["three"]


def test_the_kind_of_signature_goes_with_the_secret():
    assert rotated(an_endpoint(), "two", signature=Signature.V1A).endpoint.signature is Signature.V1A


def test_the_overlap_ends_on_a_whole_second():
    assert rotated(an_endpoint(), "two", overlap=10, now=NOW + 0.25).endpoint.old_secret_until == NOW + 11


@pytest.mark.parametrize("until", [None, NOW])
def test_an_old_secret_whose_time_is_over_does_not_sign(until):
    assert not is_overlapping(an_endpoint(old_secret="one", old_secret_until=until), at=NOW)


@given(
    steps=st.lists(
        st.tuples(st.integers(0, LONGEST_OVERLAP_S), st.integers(0, 2 * LONGEST_OVERLAP_S)), max_size=8
    )
)
def test_however_it_is_rotated_the_newest_always_signs_and_never_more_than_two(steps):
    endpoint, now = an_endpoint(secret="0"), NOW
    promised: dict[str, float] = {}  # until when a secret was said to sign
    for number, (overlap, wait) in enumerate(steps, 1):
        match rotated(endpoint, str(number), overlap=overlap, now=now):
            case Rotated(changed):
                promised = {endpoint.secret: now + overlap} if overlap else {}
                endpoint = changed
            case UnderWay(until):
                assert overlap > 0
                assert now < until
        now += wait
        expected = [endpoint.secret, *(secret for secret, until in promised.items() if now < until)]
        assert signing_at(endpoint, now) == expected
