"""Which requests a receiver accepts as genuine."""

import base64
import math
import string
import subprocess
import sys
import time
from email.message import Message
from http.client import HTTPMessage

import pytest
from django.http.request import HttpHeaders
from starlette.datastructures import Headers
from werkzeug.datastructures import EnvironHeaders

from hookline.model import Signing
from hookline.receiver import Refusal, VerificationError, Verified, verify
from receiver_kit.signed import (
    BODY,
    CLASSIC_SECRET,
    ID,
    NOW,
    OTHER,
    SECRET,
    Pair,
    classic,
    secret_of,
    standard,
)

PAIR = Pair()


def refusal(secret, headers, body=BODY, **options) -> Refusal:
    with pytest.raises(VerificationError) as refused:
        verify(secret, headers, body, **{"now": NOW, **options})
    assert len(str(refused.value)) > 10
    for hidden in (SECRET, OTHER, CLASSIC_SECRET, PAIR.public, PAIR.private):
        assert hidden not in str(refused.value)
    return refused.value.reason


def test_a_standard_request_is_believed_and_says_what_it_is():
    assert verify(SECRET, standard(SECRET), BODY, now=NOW) == Verified(
        style=Signing.STANDARD,
        id=ID,
        timestamp=NOW,
        body=BODY,
        secret_number=0,
        event_type="order.paid",
        attempt=3,
    )


def test_a_classic_request_is_believed_and_claims_no_time():
    assert verify(CLASSIC_SECRET, classic(CLASSIC_SECRET), BODY, now=NOW) == Verified(
        style=Signing.CLASSIC,
        id=ID,
        timestamp=None,
        body=BODY,
        secret_number=0,
        event_type="order.paid",
        attempt=3,
    )


def test_the_time_is_the_machines_unless_given():
    now = int(time.time())
    assert verify(SECRET, standard(SECRET, at=now), BODY).timestamp == now
    with pytest.raises(VerificationError) as refused:
        verify(SECRET, standard(SECRET, at=now - 400), BODY)
    assert refused.value.reason is Refusal.TOO_OLD


@pytest.mark.parametrize("change", [b"", b" ", BODY + b"\n", BODY.replace(b"42", b"43"), BODY[:-1]])
def test_another_body_is_refused(change):
    assert refusal(SECRET, standard(SECRET), change) is Refusal.WRONG_SIGNATURE
    assert refusal(CLASSIC_SECRET, classic(CLASSIC_SECRET), change) is Refusal.WRONG_SIGNATURE


def test_another_secret_is_refused():
    assert refusal(OTHER, standard(SECRET)) is Refusal.WRONG_SIGNATURE
    assert refusal(OTHER, classic(SECRET)) is Refusal.WRONG_SIGNATURE


@pytest.mark.parametrize(
    ("name", "value"), [("webhook-id", ID[:-1] + "1"), ("webhook-timestamp", str(NOW - 1))]
)
def test_a_signed_header_that_was_changed_is_refused(name, value):
    assert refusal(SECRET, {**standard(SECRET), name: value}) is Refusal.WRONG_SIGNATURE


@pytest.mark.parametrize("age", [0, 300, -300, 299.5, -299.5])
def test_up_to_five_minutes_are_tolerated_both_ways(age):
    assert verify(SECRET, standard(SECRET), BODY, now=NOW + age).id == ID


@pytest.mark.parametrize(
    ("age", "reason"),
    [
        (300.1, Refusal.TOO_OLD),
        (86_400, Refusal.TOO_OLD),
        (-300.1, Refusal.TOO_NEW),
        (math.nan, Refusal.TOO_OLD),
    ],
)
def test_more_than_five_minutes_are_not(age, reason):
    assert refusal(SECRET, standard(SECRET), now=NOW + age) is reason


def test_the_tolerance_can_be_set():
    assert verify(SECRET, standard(SECRET), BODY, now=NOW + 1_000, tolerance=1_000).id == ID
    assert verify(SECRET, standard(SECRET), BODY, now=0, tolerance=math.inf).id == ID
    assert refusal(SECRET, standard(SECRET), now=NOW + 11, tolerance=10) is Refusal.TOO_OLD
    assert refusal(SECRET, standard(SECRET), tolerance=math.nan) is Refusal.TOO_OLD


def test_a_request_that_is_both_old_and_forged_is_called_forged():
    assert refusal(OTHER, standard(SECRET), now=NOW + 1_000) is Refusal.WRONG_SIGNATURE


# --- rotation ---


def test_while_rotating_both_the_old_and_the_new_secret_prove_a_request():
    for headers in (standard(OTHER, SECRET), classic(OTHER, following=SECRET)):
        assert verify(SECRET, headers, BODY, now=NOW).id == ID
        assert verify(OTHER, headers, BODY, now=NOW).id == ID


def test_several_secrets_may_be_given_and_the_one_that_fits_is_named():
    for headers in (standard(SECRET), classic(SECRET)):
        assert verify([OTHER, SECRET], headers, BODY, now=NOW).secret_number == 1
        assert verify((SECRET, OTHER), headers, BODY, now=NOW).secret_number == 0
        assert verify({SECRET}, headers, BODY, now=NOW).secret_number == 0


def test_signatures_of_unknown_kinds_are_passed_over():
    known = standard(SECRET)["webhook-signature"]
    headers = standard(SECRET, signature=f"v9,abc v1a,xyz v1 v1, ,  {known}  v2,")
    assert verify(SECRET, headers, BODY, now=NOW).id == ID


@pytest.mark.parametrize(
    "signature",
    [
        "v1",
        "v1,",
        ",",
        "v1," + "A" * 43 + "=",
        "v1a," + "A" * 86 + "==",
        standard(SECRET)["webhook-signature"].removeprefix("v1,"),
        standard(SECRET)["webhook-signature"].rstrip("="),
        standard(SECRET)["webhook-signature"].replace("v1,", "V1,"),
        standard(SECRET)["webhook-signature"].replace("v1,", "v1a,"),
        standard(SECRET)["webhook-signature"] + ",",
    ],
)
def test_a_signature_that_is_almost_right_is_wrong(signature):
    assert refusal(SECRET, standard(SECRET, signature=signature)) is Refusal.WRONG_SIGNATURE


@pytest.mark.parametrize(
    "spoil",
    [
        lambda good: good.removeprefix("sha256="),
        lambda good: good.upper(),
        lambda good: good.replace("sha256", "sha1"),
        lambda good: good[:-1],
        lambda good: f"{good} {good}",
        lambda good: "sha256=",
    ],
)
def test_a_classic_signature_that_is_almost_right_is_wrong(spoil):
    headers = classic(SECRET)
    headers["x-webhook-signature"] = spoil(headers["x-webhook-signature"])
    assert refusal(SECRET, headers) is Refusal.WRONG_SIGNATURE


# --- public keys ---


def test_a_public_key_proves_what_its_private_half_signed():
    headers = standard(SECRET, signature=f"{standard(SECRET)['webhook-signature']} {PAIR.sign()}")
    assert verify(PAIR.public, headers, BODY, now=NOW).id == ID
    assert verify([OTHER, PAIR.public], headers, BODY, now=NOW).secret_number == 1
    assert verify(SECRET, headers, BODY, now=NOW).id == ID


def test_a_public_key_proves_nothing_else():
    assert refusal(PAIR.public, standard(SECRET)) is Refusal.WRONG_SIGNATURE
    assert refusal(Pair(b"t" * 32).public, standard(signature=PAIR.sign())) is Refusal.WRONG_SIGNATURE
    assert refusal(PAIR.public, standard(signature=PAIR.sign(b"{}"))) is Refusal.WRONG_SIGNATURE
    for broken in ("v1a,", "v1a,é", "v1a,AAAA", "v1a,====", PAIR.sign()[:-4], PAIR.sign() + "AAAA"):
        assert refusal(PAIR.public, standard(signature=broken)) in (
            Refusal.WRONG_SIGNATURE,
            Refusal.MALFORMED_HEADER,
        )
    assert refusal(PAIR.public, standard(signature=PAIR.sign()), now=NOW + 301) is Refusal.TOO_OLD


def test_a_signature_of_a_public_key_is_read_only_as_it_was_written():
    """Its last letter has four bits to spare: fifteen others would be read as the same bytes."""
    alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
    signature = PAIR.sign()
    last = alphabet.index(signature[-3])
    for stray in alphabet[last + 1 : last + 16]:
        changed = f"{signature[:-3]}{stray}=="
        assert refusal(PAIR.public, standard(signature=changed)) is Refusal.WRONG_SIGNATURE


def test_nobody_can_sign_with_the_public_key_as_if_it_were_a_shared_secret():
    """The public key is public: believed as the key of an HMAC it would let anybody in."""
    forged = classic(PAIR.public)
    assert refusal(PAIR.public, forged) is Refusal.BAD_SECRET
    assert refusal([SECRET, PAIR.public], forged) is Refusal.BAD_SECRET
    shared = "whsec_" + PAIR.public.removeprefix("whpk_")
    assert refusal(PAIR.public, standard(shared)) is Refusal.WRONG_SIGNATURE


def test_the_private_key_has_no_place_at_a_receiver():
    assert refusal(PAIR.private, standard(signature=PAIR.sign())) is Refusal.BAD_SECRET
    assert refusal(PAIR.private, classic(PAIR.private)) is Refusal.BAD_SECRET


# --- styles ---


def test_a_style_that_was_not_asked_for_is_refused():
    assert verify(SECRET, standard(SECRET), BODY, now=NOW, style="standard").id == ID
    assert verify(SECRET, classic(SECRET), BODY, now=NOW, style="classic").id == ID
    assert refusal(SECRET, classic(SECRET), style="standard") is Refusal.MISSING_HEADER
    assert refusal(SECRET, standard(SECRET), style="classic") is Refusal.MISSING_HEADER


def test_a_standard_signature_is_no_classic_one_nor_the_other_way_round():
    one, other = standard(SECRET), classic(SECRET)
    mixed = {**other, "x-webhook-signature": one["webhook-signature"]}
    assert refusal(SECRET, mixed) is Refusal.WRONG_SIGNATURE
    mixed = {**one, "webhook-signature": other["x-webhook-signature"]}
    assert refusal(SECRET, mixed) is Refusal.WRONG_SIGNATURE


def test_junk_of_the_other_style_does_not_let_a_request_through():
    assert refusal(SECRET, {**classic(SECRET), "webhook-signature": "v1,junk"}) is Refusal.MISSING_HEADER
    junk = {**standard(SECRET), "x-webhook-signature": "sha256=junk"}
    assert verify(SECRET, junk, BODY, now=NOW).style is Signing.STANDARD


# --- headers ---


def as_http_message(headers: dict[str, str]) -> Message:
    message = HTTPMessage()
    for name, value in headers.items():
        message[name.title()] = value
    return message


def as_environ(headers: dict[str, str]) -> dict[str, str]:
    return {"HTTP_" + name.upper().replace("-", "_"): value for name, value in headers.items()}


SHAPES = {
    "lower case": dict,
    "upper case": lambda headers: {name.upper(): value for name, value in headers.items()},
    "bytes": lambda headers: {name.encode(): value.encode() for name, value in headers.items()},
    "pairs": lambda headers: list(headers.items()),
    "an iterator of pairs": lambda headers: iter(headers.items()),
    "pairs of bytes": lambda headers: [(n.title().encode(), v.encode()) for n, v in headers.items()],
    "pairs that are lists": lambda headers: [[n, v] for n, v in headers.items()],
    "lists of values": lambda headers: {name: [value] for name, value in headers.items()},
    "space around values": lambda headers: {name: f" \t{value} " for name, value in headers.items()},
    "http.server": as_http_message,
    "Starlette": Headers,
    "Starlette, raw": lambda headers: Headers(headers).raw,
    "Flask": lambda headers: EnvironHeaders(as_environ(headers)),
    "Django": lambda headers: HttpHeaders(as_environ(headers)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_headers_may_come_in_any_shape(shape):
    shaped = SHAPES[shape]
    assert verify(SECRET, shaped(standard(SECRET)), BODY, now=NOW).event_type == "order.paid"
    assert verify(SECRET, shaped(classic(SECRET)), BODY, now=NOW).attempt == 3


@pytest.mark.parametrize(
    "headers", [None, 5, "text", b"bytes", [1], [()], [("a",)], [("a", "b", "c")], object()]
)
def test_what_is_no_headers_is_refused(headers):
    assert refusal(SECRET, headers) is Refusal.MALFORMED_HEADER


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_standard_request_needs_its_three_headers_once_each(name):
    headers = standard(SECRET)
    twice = [*headers.items(), (name.upper(), headers[name])]
    assert refusal(SECRET, twice) is Refusal.MALFORMED_HEADER
    for broken in ("", " ", "é", "\x00", "a\nb", "\ud800", 5, None, [], "x" * 20_000):
        assert refusal(SECRET, {**headers, name: broken}) in (
            Refusal.MALFORMED_HEADER,
            Refusal.MISSING_HEADER,
        )
    del headers[name]
    assert refusal(SECRET, headers) is Refusal.MISSING_HEADER


@pytest.mark.parametrize("name", ["x-webhook-signature", "x-webhook-signature-next", "x-event-id"])
def test_a_classic_request_needs_its_headers_once_each(name):
    headers = classic(SECRET, following=OTHER)
    twice = [*headers.items(), (name.upper(), headers[name])]
    assert refusal(SECRET, twice) is Refusal.MALFORMED_HEADER
    assert refusal(SECRET, {**headers, name: "é"}) is Refusal.MALFORMED_HEADER


def test_a_request_without_any_signature_is_refused():
    assert refusal(SECRET, {}) is Refusal.MISSING_HEADER
    assert refusal(SECRET, {"content-type": "application/json"}) is Refusal.MISSING_HEADER


@pytest.mark.parametrize(
    "timestamp",
    [
        *("", "now", "-1800000000", "+1800000000", "1.8e9", "1800000000.0", "1_800_000_000", "٣", "0x10"),
        *("1" * 13, "nan", "inf", "1 8", "1800000000\n"),
    ],
)
def test_a_timestamp_is_plain_digits(timestamp):
    assert refusal(SECRET, {**standard(SECRET), "webhook-timestamp": timestamp}) is Refusal.MALFORMED_HEADER


def test_an_id_cannot_borrow_from_the_body():
    """Signed are id.timestamp.body: with a dot in the id the same bytes could be read as another request."""
    headers = standard(SECRET, body=b"1800000000.5")
    assert verify(SECRET, headers, b"1800000000.5", now=NOW).id == ID
    shifted = {**headers, "webhook-id": f"{ID}.{NOW}", "webhook-timestamp": "1800000000"}
    assert refusal(SECRET, shifted, b"5") is Refusal.MALFORMED_HEADER


def test_a_long_list_of_signatures_is_not_worked_through():
    headers = standard(SECRET)
    headers["webhook-signature"] = " ".join([headers["webhook-signature"]] * 17)
    assert refusal(SECRET, headers) is Refusal.MALFORMED_HEADER
    assert refusal(PAIR.public, headers) is Refusal.MALFORMED_HEADER


@pytest.mark.parametrize("attempt", ["", "x", "-1", "1.5", "٣", "9" * 5_000])
def test_hints_that_make_no_sense_are_left_out(attempt):
    headers = {**standard(SECRET), "webhook-attempt": attempt, "webhook-event": "é"}
    verified = verify(SECRET, headers, BODY, now=NOW)
    assert (verified.attempt, verified.event_type) == (None, None)


# --- the receiver's own mistakes ---


@pytest.mark.parametrize(
    "secret",
    [
        *("", "whsec_", "secret", None, 5, b"bytes", [], (), [None], [b"bytes"], object()),
        "whsec_" + base64.b64encode(b"short").decode(),
        SECRET + "\n",
        SECRET.removeprefix("whsec_"),
        "whsec_é",
        "whsec_\ud800",
        "whpk_",
        "whpk_AAAA",
        "whpk_é",
        PAIR.public + "AAAA",
    ],
)
def test_a_secret_that_cannot_be_used_is_named_as_the_reason(secret):
    assert refusal(secret, standard(SECRET)) is Refusal.BAD_SECRET


@pytest.mark.parametrize("secret", ["", "short", "with a space in it", "ééééééééééééééééééé", "\ud800" * 20])
def test_a_secret_that_classic_cannot_use_is_named_as_the_reason(secret):
    assert refusal(secret, classic(SECRET)) is Refusal.BAD_SECRET


def test_a_bad_secret_beside_a_good_one_does_no_harm_until_it_is_the_one_that_is_missing():
    assert verify(["", SECRET], standard(SECRET), BODY, now=NOW).secret_number == 1
    assert refusal(["", SECRET], standard(OTHER)) is Refusal.BAD_SECRET


@pytest.mark.parametrize("body", ["text", None, {"id": 42}, 5, ["a"]])
def test_a_body_that_is_not_bytes_is_named_as_the_reason(body):
    assert refusal(SECRET, standard(SECRET), body) is Refusal.BAD_BODY


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_body_may_be_any_kind_of_bytes(kind):
    assert verify(SECRET, standard(SECRET), kind(BODY), now=NOW).body == BODY


def test_reasons_are_plain_text_for_logs_and_comparisons():
    assert refusal(secret_of("c"), standard(SECRET)) == "wrong_signature"


# --- what it costs ---

LEAN = """
import sys
from hookline.receiver import ProcessOnce, verify
heavy = {"asyncio", "asyncpg", "cryptography", "msgspec", "httptools", "psycopg", "sqlite3", "socket", "starlette", "uvicorn"}
loaded = heavy & set(sys.modules)
ours = {name for name in sys.modules if name.startswith("hookline.")} - {"hookline.crypto", "hookline.crypto.signing"}
for name in sorted(loaded | {n for n in ours if n.split(".")[1] not in {"errors", "receiver", "version", "words"}}):
    print(name)
"""


def test_importing_the_kit_brings_neither_the_server_nor_a_driver_along():
    ran = subprocess.run([sys.executable, "-c", LEAN], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == ""


WITHOUT_CRYPTOGRAPHY = """
import sys
sys.modules["cryptography"] = None
from hookline.receiver import VerificationError, verify
headers = {"webhook-id": "a", "webhook-timestamp": "1", "webhook-signature": "v1a,AAAA"}
try:
    verify("whpk_" + "A" * 43 + "=", headers, b"")
except VerificationError as error:
    print(error.reason, error)
"""


def test_a_public_key_without_the_package_for_it_is_a_refusal_that_names_the_package():
    command = [sys.executable, "-c", WITHOUT_CRYPTOGRAPHY]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "bad_secret" in ran.stdout
    assert "cryptography" in ran.stdout
