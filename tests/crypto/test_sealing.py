"""A copy of the database does not reveal its secrets."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factories import an_endpoint
from hookline.crypto.sealing import PREFIX, Sealer, Secrets
from hookline.errors import ConfigError, SealBroken

KEY, OTHER = "k" * 32, "o" * 43
ID, ANOTHER = bytes(16), bytes([1] * 16)


@given(secret=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=16, max_size=256))
@settings(deadline=None, max_examples=100)
def test_what_is_sealed_is_opened_again_and_does_not_show(secret):
    sealer = Sealer([KEY])
    sealed = sealer.seal(secret, of=ID)
    assert sealed.startswith(PREFIX)
    assert secret not in sealed
    assert sealer.open(sealed, of=ID) == secret


def test_the_same_secret_never_looks_the_same_and_a_sealed_one_is_left_alone():
    sealer = Sealer([KEY])
    once = sealer.seal("a-secret-of-sixteen", of=ID)
    assert sealer.seal("a-secret-of-sixteen", of=ID) != once
    assert sealer.seal(once, of=ID) == once


def test_a_sealed_secret_is_worth_nothing_in_another_endpoint():
    sealer = Sealer([KEY])
    with pytest.raises(SealBroken):
        sealer.open(sealer.seal("a-secret-of-sixteen", of=ID), of=ANOTHER)


@pytest.mark.parametrize("keys", [[], [OTHER]])
def test_without_the_key_nothing_is_opened_and_the_error_says_which_setting(keys):
    sealed = Sealer([KEY]).seal("a-secret-of-sixteen", of=ID)
    with pytest.raises(SealBroken, match="HOOKLINE_SECRET_KEY"):
        Sealer(keys).open(sealed, of=ID)


@pytest.mark.parametrize("text", [PREFIX, PREFIX + "AAAA", PREFIX + "not base64", PREFIX + "é"])
def test_what_is_damaged_is_not_opened(text):
    with pytest.raises(SealBroken):
        Sealer([KEY]).open(text, of=ID)


def test_without_a_key_secrets_are_kept_as_they_are():
    endpoint = an_endpoint(old_secret="old", old_secret_until=1.0)
    assert Sealer().sealed(endpoint) is endpoint
    assert Sealer().opened(endpoint) == Secrets(endpoint.secret, "old", 1.0)


def test_an_endpoint_that_was_stored_plain_is_opened_and_sealed_with_its_next_write():
    sealer, plain = Sealer([KEY]), an_endpoint(old_secret="old", old_secret_until=1.0)
    sealed = sealer.sealed(plain)
    assert (sealed.secret[:8], sealed.old_secret[:8]) == (PREFIX, PREFIX)
    assert sealer.opened(plain) == sealer.opened(sealed) == Secrets(plain.secret, "old", 1.0)
    assert sealer.sealed(sealed) == sealed
    assert sealer.plain(sealed) == plain


def test_keys_are_changed_by_giving_the_new_one_and_the_old_one():
    sealed = Sealer([KEY]).seal("a-secret-of-sixteen", of=ID)
    both = Sealer([OTHER, KEY])
    assert both.open(sealed, of=ID) == "a-secret-of-sixteen"
    assert Sealer([OTHER]).open(both.seal(sealed, of=ID), of=ID) == "a-secret-of-sixteen"


def test_the_mark_tells_the_right_key_from_a_wrong_one_and_goes_over_to_a_new_one():
    mark = Sealer([KEY]).mark()
    assert Sealer([KEY]).renewed_mark(mark) == mark
    with pytest.raises(ConfigError, match="HOOKLINE_SECRET_KEY"):
        Sealer([OTHER]).renewed_mark(mark)
    renewed = Sealer([OTHER, KEY]).renewed_mark(mark)
    assert Sealer([OTHER]).renewed_mark(renewed) == renewed


def test_secrets_do_not_show_themselves():
    assert "whsec" not in repr(Secrets("whsec_x", "whsec_y")) + str(
        msgspec.structs.replace(Secrets("whsec_x"))
    )
