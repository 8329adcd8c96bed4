"""Receivers with code that is not ours accept what we sign and nothing else."""

import base64
import hashlib
import hmac
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from hookline.crypto.signing import Mac, check_secret, key_of, new_secret, sign_classic, sign_standard
from hookline.errors import Invalid
from hookline.model import Signing

KEYS = st.binary(min_size=24, max_size=64)
IDS = st.from_regex(r"evt_[0-7][0-9a-v]{25}", fullmatch=True)
BODIES = st.text().map(str.encode)  # the reference verifier reads bodies as UTF-8
ASCII_BODIES = st.text(st.characters(max_codepoint=0x7F), min_size=1).map(str.encode)


def secret_of(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


def standard_receiver(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """The published verifier of Standard Webhooks, unchanged."""
    try:
        Webhook(secret).verify(body, headers, json_parse=False)
    except WebhookVerificationError:
        return False
    return True


def handwritten_receiver(secret: str, header: str, body: bytes) -> bool:
    """What receivers of classic signatures have in their handlers."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, header)


def standard_headers(secret: str, id: str, body: bytes) -> dict[str, str]:
    now = int(datetime.now(UTC).timestamp())
    signature = sign_standard(Mac(key_of(secret, Signing.STANDARD)), id, now, body)
    return {"webhook-id": id, "webhook-timestamp": str(now), "webhook-signature": signature}


def test_the_published_example_of_standard_webhooks_comes_out_the_same():
    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", Signing.STANDARD)
    signature = sign_standard(Mac(key), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_published_example_of_body_signatures_comes_out_the_same():
    assert sign_classic(Mac(b"It's a Secret to Everybody"), b"Hello, World!") == (
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    )


def test_the_rfc_4231_vector_comes_out_the_same():
    assert sign_classic(Mac(b"Jefe"), b"what do ya want for nothing?") == (
        "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    )


@settings(deadline=None, max_examples=300)
@given(key=KEYS, id=IDS, body=BODIES)
def test_the_standard_verifier_accepts_every_signature(key, id, body):
    secret = secret_of(key)
    assert standard_receiver(secret, standard_headers(secret, id, body), body)


@settings(deadline=None, max_examples=300)
@given(key=KEYS, id=IDS, body=ASCII_BODIES, data=st.data())
def test_the_standard_verifier_refuses_one_flipped_bit_anywhere(key, id, body, data):
    secret = secret_of(key)
    headers = standard_headers(secret, id, body)
    mac = base64.b64decode(headers["webhook-signature"].removeprefix("v1,"))
    match data.draw(st.sampled_from(["body", "id", "timestamp", "key", "mac"])):
        case "body":
            position, bit = data.draw(st.integers(0, len(body) - 1)), data.draw(st.integers(0, 6))
            changed = body[:position] + bytes([body[position] ^ 1 << bit]) + body[position + 1 :]
            assert not standard_receiver(secret, headers, changed)
        case "id":
            position = data.draw(st.integers(4, len(id) - 1))
            changed = id[:position] + chr(ord(id[position]) ^ 1) + id[position + 1 :]
            assert not standard_receiver(secret, {**headers, "webhook-id": changed}, body)
        case "timestamp":
            changed = str(int(headers["webhook-timestamp"]) ^ 1)
            assert not standard_receiver(secret, {**headers, "webhook-timestamp": changed}, body)
        case "key":
            assert not standard_receiver(secret_of(flip(data, key)), headers, body)
        case "mac":
            changed = "v1," + base64.b64encode(flip(data, mac)).decode()
            assert not standard_receiver(secret, {**headers, "webhook-signature": changed}, body)


def flip(data: st.DataObject, value: bytes) -> bytes:
    bit = data.draw(st.integers(0, len(value) * 8 - 1))
    return (int.from_bytes(value) ^ 1 << bit).to_bytes(len(value))


@settings(deadline=None, max_examples=200)
@given(
    secret=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=16, max_size=256),
    body=st.binary(max_size=2_000),
    data=st.data(),
)
def test_a_handwritten_receiver_accepts_the_classic_signature_of_these_bytes_only(secret, body, data):
    header = sign_classic(Mac(key_of(secret, Signing.CLASSIC)), body)
    assert handwritten_receiver(secret, header, body)
    if body:
        assert not handwritten_receiver(secret, header, flip(data, body))


def test_a_handwritten_receiver_uses_a_new_secret_just_as_it_was_shown():
    secret = new_secret()
    assert handwritten_receiver(secret, sign_classic(Mac(key_of(secret, Signing.CLASSIC)), b"{}"), b"{}")


def test_new_secrets_differ_and_suit_both_styles():
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    for secret in made:
        assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
        check_secret(secret, Signing.STANDARD)
        check_secret(secret, Signing.CLASSIC)
        assert len(key_of(secret, Signing.STANDARD)) == 32


@settings(deadline=None)
@given(key=KEYS)
def test_the_standard_key_is_the_decoded_secret(key):
    assert key_of(secret_of(key), Signing.STANDARD) == key


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        secret_of(b"k" * 23),
        secret_of(b"k" * 65),
        secret_of(b"k" * 32).removeprefix("whsec_"),
        secret_of(b"k" * 32).rstrip("="),
        secret_of(b"k" * 32) + "\n",
        " " + secret_of(b"k" * 32),
        secret_of(b"k" * 32).replace("whsec_", "WHSEC_"),
        secret_of(b"\xfb\xff" * 16).replace("+", "-").replace("/", "_"),  # the URL alphabet
        secret_of(b"k" * 25)[:-3] + "b==",  # stray bits after the last byte
        "whsec_" + "é" * 40,
        "whsec_\ud800",
    ],
)
def test_a_secret_that_standard_signing_cannot_use_is_refused_without_being_shown(secret):
    for use in (check_secret, key_of):
        with pytest.raises(Invalid) as refused:
            use(secret, Signing.STANDARD)
        assert (refused.value.code, refused.value.pointer) == ("invalid_field", "/secret")
        assert len(secret) <= 6 or secret not in refused.value.detail


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "k" * 15,
        "k" * 257,
        "k" * 16 + " ",
        "k" * 16 + "\n",
        "k" * 8 + "\x7f" + "k" * 8,
        "é" * 16,
        "\ud800" * 16,
    ],
)
def test_a_secret_that_classic_signing_cannot_use_is_refused_without_being_shown(secret):
    for use in (check_secret, key_of):
        with pytest.raises(Invalid) as refused:
            use(secret, Signing.CLASSIC)
        assert (refused.value.code, refused.value.pointer) == ("invalid_field", "/secret")
        assert not secret or secret not in refused.value.detail


@pytest.mark.parametrize("size", [24, 64])
def test_standard_keys_may_have_24_to_64_bytes(size):
    assert key_of(secret_of(b"k" * size), Signing.STANDARD) == b"k" * size


@pytest.mark.parametrize("size", [16, 256])
def test_classic_secrets_may_have_16_to_256_characters(size):
    assert key_of("~" * size, Signing.CLASSIC) == b"~" * size


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_mac_is_hmac_sha256_whatever_the_key(key: bytes, message: bytes) -> None:
    assert Mac(key).digest(message) == hmac.digest(key, message, "sha256")
