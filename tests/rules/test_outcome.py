"""What an answer means for an attempt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.model import ErrorKind, Outcome
from hookline.rules.outcome import classify


@pytest.mark.parametrize(
    ("status", "asks_to_wait", "expected"),
    [
        (200, False, (Outcome.ACCEPTED, None)),
        (204, False, (Outcome.ACCEPTED, None)),
        (299, True, (Outcome.ACCEPTED, None)),
        (301, False, (Outcome.REJECTED, ErrorKind.HTTP_3XX)),
        (304, False, (Outcome.REJECTED, ErrorKind.HTTP_3XX)),
        (400, False, (Outcome.REJECTED, ErrorKind.HTTP_4XX)),
        (401, False, (Outcome.REJECTED, ErrorKind.HTTP_4XX)),
        (404, True, (Outcome.REJECTED, ErrorKind.HTTP_4XX)),
        (408, False, (Outcome.TRANSIENT, ErrorKind.HTTP_4XX)),
        (410, False, (Outcome.GONE, ErrorKind.HTTP_410)),
        (425, False, (Outcome.TRANSIENT, ErrorKind.HTTP_4XX)),
        (429, False, (Outcome.THROTTLED, ErrorKind.HTTP_429)),
        (500, True, (Outcome.TRANSIENT, ErrorKind.HTTP_5XX)),
        (503, False, (Outcome.TRANSIENT, ErrorKind.HTTP_5XX)),
        (503, True, (Outcome.THROTTLED, ErrorKind.HTTP_5XX)),
        (599, False, (Outcome.TRANSIENT, ErrorKind.HTTP_5XX)),
    ],
)
def test_what_a_status_means(status, asks_to_wait, expected):
    assert classify(status, None, asks_to_wait=asks_to_wait) == expected


@pytest.mark.parametrize("kind", [k for k in ErrorKind if not k.startswith("http_")])
def test_a_request_that_found_no_answer_is_tried_again(kind):
    assert classify(None, kind, asks_to_wait=False) == (Outcome.TRANSIENT, kind)


def test_a_status_whose_body_never_ended_is_a_failure_all_the_same():
    assert classify(200, ErrorKind.TIMEOUT, asks_to_wait=False) == (Outcome.TRANSIENT, ErrorKind.TIMEOUT)


@given(st.none() | st.integers(-1, 100_000), st.none() | st.sampled_from(ErrorKind), st.booleans())
def test_everything_means_something_and_only_2xx_is_accepted(status, error, asks_to_wait):
    outcome, kind = classify(status, error, asks_to_wait=asks_to_wait)
    is_ok = error is None and status is not None and 200 <= status < 300
    assert (outcome is Outcome.ACCEPTED) is is_ok
    assert (kind is None) is is_ok
