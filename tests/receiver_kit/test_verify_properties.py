"""A receiver never accepts a forged request, and fails only with `VerificationError`."""

import contextlib

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from hookline.receiver import VerificationError, Verified, verify
from receiver_kit.signed import BODY, CLASSIC_SECRET, ID, NOW, SECRET, Pair, classic, standard

PAIR = Pair()
NAMES = st.sampled_from([*standard(SECRET), *classic(SECRET), "x-webhook-signature-next", "other"])
NAMES |= NAMES.map(str.upper) | NAMES.map(str.encode)
LIKELY = st.sampled_from(
    [
        ID,
        str(NOW),
        "1" * 400,
        "v1,",
        standard(SECRET)["webhook-signature"],
        classic(SECRET)["x-webhook-signature"],
        PAIR.sign(),
        PAIR.sign() + " " + standard(SECRET)["webhook-signature"],
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
VALUES = LIKELY | LIKELY.map(str.encode) | SCALARS | st.lists(SCALARS, max_size=3)
HEADERS = st.dictionaries(NAMES, VALUES) | st.lists(st.tuples(NAMES, VALUES)) | SCALARS | st.lists(SCALARS)
ONE_SECRET = (
    st.sampled_from([SECRET, CLASSIC_SECRET, PAIR.public, PAIR.private])
    | SCALARS
    | st.text().map(lambda text: "whsec_" + text)
    | st.text().map(lambda text: "whpk_" + text)
    | st.binary().map(lambda raw: "whsec_" + raw.hex())
)
SECRETS = ONE_SECRET | st.lists(ONE_SECRET, max_size=4)


@settings(deadline=None, max_examples=1_000)
@given(secret=SECRETS, headers=HEADERS, body=st.just(BODY) | st.binary() | SCALARS)
def test_whatever_comes_in_is_believed_or_refused_and_nothing_else(secret, headers, body):
    with contextlib.suppress(VerificationError):
        assert isinstance(verify(secret, headers, body, now=NOW), Verified)


@settings(deadline=None, max_examples=300)
@given(body=st.binary(max_size=500), data=st.data())
def test_a_request_with_any_part_changed_is_refused(body, data):
    headers = data.draw(
        st.sampled_from(
            [standard(SECRET, body=body), classic(SECRET, body=body), standard(signature=PAIR.sign(body))]
        )
    )
    secret = [SECRET, PAIR.public]
    assert verify(secret, headers, body, now=NOW).body == body
    signed = ["webhook-id", "webhook-timestamp", "webhook-signature", "x-webhook-signature"]
    name = data.draw(st.sampled_from(["body", *(n for n in signed if n in headers)]))
    if name == "body":
        other = data.draw(st.binary(max_size=500))
        assume(other != body)
        with pytest.raises(VerificationError):
            verify(secret, headers, other, now=NOW)
    else:
        at = data.draw(st.integers(0, len(headers[name]) - 1))
        letter = data.draw(st.characters(min_codepoint=0x20, max_codepoint=0x7E))
        changed = headers[name][:at] + letter + headers[name][at + 1 :]
        assume(changed.strip() != headers[name])
        with pytest.raises(VerificationError):
            verify(secret, {**headers, name: changed}, body, now=NOW)


ORACLE_IDS = st.from_regex(r"[A-Za-z0-9_]{1,40}", fullmatch=True)


@settings(deadline=None, max_examples=200)
@given(
    id=ORACLE_IDS,
    body=st.text(st.characters(max_codepoint=0x7F), min_size=1).map(str.encode),
    age=st.integers(-1_000, 1_000),
    secret=st.sampled_from([SECRET, "whsec_" + "QUJD" * 8]),
)
def test_the_published_verifier_believes_the_same_requests(id, body, age, secret):
    """But for its edge: it compares with its own clock, so ages near the tolerance are left out."""
    import time

    assume(abs(abs(age) - 300) > 10)
    now = time.time()
    headers = standard(SECRET, id=id, at=int(now) - age, body=body)
    try:
        Webhook(secret).verify(body, headers, json_parse=False)
        theirs = True
    except WebhookVerificationError:
        theirs = False
    try:
        verify(secret, headers, body, now=now)
        ours = True
    except VerificationError:
        ours = False
    assert ours == theirs == (abs(age) < 300 and secret == SECRET)
