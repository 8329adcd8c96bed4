"""The advice about an endpoint's dead letters."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.model import ErrorKind, Reason
from hookline.rules.death_advice import AdvisedEndpoint, Diagnosis, advice
from hookline.rules.death_pattern import DeathCause, Pattern
from hookline.rules.retry import PRESETS

EP, DLV = "ep_1", "dlv_9"
REPLAY = "`hookline dead replay --endpoint ep_1 --since 24h`"
DISCARD = "`hookline dead discard --endpoint ep_1 --since 24h`"
SHOW = "`hookline dead show dlv_9`"


def died(
    status: int | None = None, error: ErrorKind | None = None, reason: Reason = Reason.EXHAUSTED
) -> DeathCause:
    return DeathCause(reason, status, error)


def rejected(status: int) -> DeathCause:
    return DeathCause(Reason.REJECTED, status)


def diagnosis(pattern: Pattern, *causes: tuple[DeathCause, int], **fields: Any) -> Diagnosis:
    defaults = {"newest": DLV, "window": "24h", "window_s": 86_400.0}
    return Diagnosis(pattern=pattern, causes=causes, **(defaults | fields))


def endpoint(**fields: Any) -> AdvisedEndpoint:
    return AdvisedEndpoint(**({"id": EP} | fields))


CASES: list[tuple[str, Diagnosis, AdvisedEndpoint, str]] = [
    (
        "outage",
        diagnosis(Pattern.OUTAGE, (died(503), 50)),
        endpoint(),
        "Looks like an outage at the receiver: it answers 503. Test it, and replay them once it answers: "
        f"`hookline endpoints test ep_1`, then {REPLAY}. A longer retry schedule survives longer outages: "
        "`hookline endpoints update ep_1 --retry standard`.",
    ),
    (
        "outage that goes on, with a long schedule",
        diagnosis(Pattern.OUTAGE, (died(error=ErrorKind.CONNECT_REFUSED), 50), (died(503), 2)),
        endpoint(is_failing=True, retry=PRESETS["standard"]),
        "Looks like an outage at the receiver: it refuses connections (connect_refused). It still fails. Test it, and "
        f"replay them once it answers: `hookline endpoints test ep_1`, then {REPLAY}.",
    ),
    (
        "credentials in a header",
        diagnosis(Pattern.CREDENTIALS, (rejected(401), 30)),
        endpoint(headers=("x-tenant", "Authorization")),
        "Its credentials were refused (401). Renew the Authorization header: "
        f"`hookline endpoints update ep_1 --header 'Authorization: VALUE'`, then {REPLAY}.",
    ),
    (
        "credentials in the only header",
        diagnosis(Pattern.CREDENTIALS, (rejected(403), 30)),
        endpoint(headers=("x-tenant",)),
        "Its credentials were refused (403). Renew the x-tenant header: "
        f"`hookline endpoints update ep_1 --header 'x-tenant: VALUE'`, then {REPLAY}.",
    ),
    (
        "credentials without a header",
        diagnosis(Pattern.CREDENTIALS, (rejected(401), 30)),
        endpoint(headers=("it's`odd",)),
        "Its credentials were refused (401), and the endpoint sends no header for them. If the receiver checks the "
        "signature, compare the secret: `hookline endpoints secret ep_1`. If it wants a header, set it: "
        f"`hookline endpoints update ep_1 --header 'authorization: VALUE'`, then {REPLAY}.",
    ),
    (
        "throttled",
        diagnosis(Pattern.THROTTLED, (died(429), 30)),
        endpoint(),
        "It is sent more than it takes (429). Set a rate limit: "
        f"`hookline endpoints update ep_1 --rate 5`, then {REPLAY}.",
    ),
    (
        "throttled in spite of a limit",
        diagnosis(Pattern.THROTTLED, (died(429), 30)),
        endpoint(per_second=25.0),
        "It takes less than 25 requests per second (429). Set a lower rate limit: "
        f"`hookline endpoints update ep_1 --rate 12.5`, then {REPLAY}.",
    ),
    (
        "intermittent",
        diagnosis(Pattern.INTERMITTENT, (died(502), 9), window="7d"),
        endpoint(retry=PRESETS["brisk"]),
        "It fails now and then: it answers 502. More attempts get past it: `hookline endpoints update ep_1 "
        "--retry patient`. Replay them: `hookline dead replay --endpoint ep_1 --since 7d`.",
    ),
    (
        "intermittent timeouts",
        diagnosis(Pattern.INTERMITTENT, (died(error=ErrorKind.TIMEOUT), 9)),
        endpoint(timeout=60.0),
        "It fails now and then: it does not answer in time (timeout). A shorter timeout tries again sooner: "
        f"`hookline endpoints update ep_1 --field timeout_ms=10000`. Replay them: {REPLAY}.",
    ),
    (
        "intermittent with all attempts there are",
        diagnosis(Pattern.INTERMITTENT, (died(502), 9)),
        endpoint(retry=PRESETS["standard"]),
        f"It fails now and then: it answers 502. Replay them: {REPLAY}.",
    ),
    (
        "rejected",
        diagnosis(Pattern.REJECTED, (rejected(422), 20)),
        endpoint(),
        "It does not accept these payloads (422), and did not at the first attempt: correct them at the publisher, or "
        f"the receiver that refuses them. Read its answer: {SHOW}.",
    ),
    (
        "unknown path",
        diagnosis(Pattern.REJECTED, (rejected(404), 20)),
        endpoint(),
        "It knows nothing at this URL (404). Correct the URL: `hookline endpoints update ep_1 --to URL`, then "
        f"{REPLAY}.",
    ),
    (
        "redirect",
        diagnosis(Pattern.REJECTED, (rejected(301), 20)),
        endpoint(),
        f"It redirects to another URL (301). See which: {SHOW}. Set that one: "
        f"`hookline endpoints update ep_1 --to URL`, then {REPLAY}.",
    ),
    (
        "too large",
        diagnosis(Pattern.REJECTED, (rejected(413), 20)),
        endpoint(),
        "It does not take payloads of this size (413): raise its limit, or publish less. "
        f"Read its answer: {SHOW}.",
    ),
    (
        "a status that is not retried",
        diagnosis(Pattern.REJECTED, (rejected(503), 20)),
        endpoint(),
        "It fails with 503, which this endpoint does not retry. Retry it: `hookline endpoints update ep_1 --field "
        f"retry_statuses='[\"5xx\",408,425,429]'`, then {REPLAY}.",
    ),
    (
        "gone",
        diagnosis(Pattern.GONE, (died(410, ErrorKind.HTTP_410, Reason.GONE), 1)),
        endpoint(),
        f"The receiver said that it will not come back (410). Discard them: {DISCARD}. If it has moved, set its new "
        "URL: `hookline endpoints update ep_1 --to URL`, then `hookline endpoints enable ep_1`.",
    ),
    (
        "half 401, half 503",
        diagnosis(Pattern.MIXED, (rejected(401), 20), (died(503), 20)),
        endpoint(),
        "No single cause: 20 of 401 and 20 of 503 died. See each: `hookline dead list --endpoint ep_1`.",
    ),
    (
        "many causes",
        diagnosis(
            Pattern.MIXED,
            (rejected(401), 2_000),
            (died(503), 9),
            (died(error=ErrorKind.TLS), 8),
            (died(500), 7),
        ),
        endpoint(),
        "No single cause: 2,000 of 401, 9 of 503, 8 of tls and 7 of other causes died. "
        "See each: `hookline dead list --endpoint ep_1`.",
    ),
    (
        "one alone",
        diagnosis(Pattern.MIXED, (died(503), 1)),
        endpoint(),
        f"It answers 503. 1 dead letter is too few for a pattern. Look at it: {SHOW}, or look further back: "
        "`hookline dead analyse --endpoint ep_1 --window 7d`.",
    ),
    (
        "a few in a week",
        diagnosis(Pattern.MIXED, (died(error=ErrorKind.DNS), 9), window="7d", window_s=7 * 86_400.0),
        endpoint(),
        "Its host name does not resolve (dns). 9 dead letters are too few for a pattern. "
        f"Look at the newest: {SHOW}.",
    ),
    (
        "many, all the time",
        diagnosis(Pattern.MIXED, (died(error=ErrorKind.TIMEOUT), 90)),
        endpoint(timeout=40.0),
        "It does not answer in time (timeout), again and again, in no single outage. Tell those who run it. Let it "
        "answer before it does the work, or give it more time than 40 s: "
        f"`hookline endpoints update ep_1 --field timeout_ms=60000`. Look at the newest: {SHOW}.",
    ),
    (
        "blocked",
        diagnosis(Pattern.MIXED, (died(error=ErrorKind.BLOCKED_ADDRESS), 90)),
        endpoint(),
        "hookline does not send to its address (blocked_address): it is private or reserved. Correct the URL: "
        "`hookline endpoints update ep_1 --to URL`, or allow its network with HOOKLINE_ALLOW_NETWORKS.",
    ),
    (
        "crashes",
        diagnosis(Pattern.MIXED, (died(503, ErrorKind.HTTP_5XX, Reason.CRASH_LIMIT), 1)),
        endpoint(),
        "A worker died each time it sent these. Read its log for the cause, such as too little memory, and one of the "
        f"payloads: {SHOW}.",
    ),
    (
        "errors of our own",
        diagnosis(Pattern.MIXED, (died(error=ErrorKind.INTERNAL), 3), (died(503), 1)),
        endpoint(),
        f"hookline itself failed to send these. Read the server's log, and the error: {SHOW}.",
    ),
    (
        "deleted",
        diagnosis(Pattern.OUTAGE, (died(503), 50)),
        endpoint(is_deleted=True),
        f"The endpoint is deleted, so they cannot be replayed. Discard them: {DISCARD}.",
    ),
]


@pytest.mark.parametrize(("found", "about", "said"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_the_advice_about(found, about, said):
    assert advice(found, about) == said


causes = st.builds(
    DeathCause,
    st.sampled_from([Reason.EXHAUSTED, Reason.REJECTED, Reason.GONE, Reason.CRASH_LIMIT]),
    st.none() | st.integers(100, 999),
    st.none() | st.sampled_from(ErrorKind),
)


@given(
    st.builds(
        diagnosis,
        st.sampled_from(Pattern),
        st.tuples(causes, st.integers(1, 10**9)),
        window_s=st.sampled_from([60.0, 86_400.0, 90 * 86_400.0]),
    ),
    st.builds(
        endpoint,
        is_deleted=st.booleans(),
        is_failing=st.booleans(),
        headers=st.lists(st.text(max_size=8), max_size=3).map(tuple),
        per_second=st.none() | st.floats(0.001, 10_000),
        timeout=st.floats(1, 60),
        retry=st.sampled_from(list(PRESETS.values())),
    ),
)
def test_every_advice_is_made_of_sentences_and_names_a_command(found, about):
    said = advice(found, about)
    assert said.endswith(".")
    assert said[0].isupper() or said.startswith("hookline ")
    assert len(re.findall("`hookline [^`]+`", said)) * 2 == said.count("`") > 0
