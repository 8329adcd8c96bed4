"""Which retry policies are valid, and what each refusal says."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import Invalid
from hookline.rules.retry import DEFAULT_POLICY, EQUAL, FULL, NONE, PRESETS, Jitter, Policy, policy_of
from hookline.validate.retry_policy import LONGEST_WAIT_S, retry, retry_statuses

SHAPES = "{preset}, {schedule, jitter} or {base, factor, cap, attempts, jitter}"
WAIT = "is a number of seconds from 0 to 2,592,000."


@pytest.mark.parametrize(
    ("said", "stored", "policy"),
    [
        *[({"preset": name}, {"preset": name}, policy) for name, policy in PRESETS.items()],
        (
            {"preset": "eight", "jitter": {"below": 0.5, "above": 0.5}},
            {"preset": "eight", "jitter": {"below": 0.5, "above": 0.5}},
            Policy(PRESETS["eight"].waits, Jitter(0.5, 0.5)),
        ),
        ({"schedule": [0]}, {"schedule": [0], "jitter": "full"}, Policy((0.0,), FULL)),
        (
            {"schedule": [30, 300], "jitter": "none"},
            {"schedule": [0, 30, 300], "jitter": "none"},
            Policy((0.0, 30.0, 300.0), NONE),
        ),
        (
            {"schedule": [0, 0, 0.5, 2_592_000], "jitter": "equal"},
            {"schedule": [0, 0, 0.5, 2_592_000], "jitter": "equal"},
            Policy((0.0, 0.0, 0.5, 2_592_000.0), EQUAL),
        ),
        (
            {"schedule": [0] * 50, "jitter": {"above": 0.2}},
            {"schedule": [0] * 50, "jitter": {"below": 0, "above": 0.2}},
            Policy((0.0,) * 50, Jitter(0.0, 0.2)),
        ),
        (
            {"base": 1, "attempts": 4},
            {"base": 1, "factor": 2.0, "cap": 3_600.0, "attempts": 4, "jitter": "full"},
            Policy((0.0, 1.0, 2.0, 4.0), FULL),
        ),
        (
            {"base": 10, "factor": 3, "cap": 60, "attempts": 5, "jitter": "none"},
            {"base": 10, "factor": 3, "cap": 60, "attempts": 5, "jitter": "none"},
            Policy((0.0, 10.0, 30.0, 60.0, 60.0), NONE),
        ),
        (
            {"base": 1, "factor": 1, "cap": None, "attempts": 3, "jitter": "none"},
            {"base": 1, "factor": 1, "cap": None, "attempts": 3, "jitter": "none"},
            Policy((0.0, 1.0, 1.0), NONE),
        ),
    ],
)
def test_a_policy_is_stored_as_it_is_shown_and_means_this(said, stored, policy):
    assert retry(said) == stored
    assert retry(stored) == stored
    assert policy_of(json.loads(json.dumps(stored)), DEFAULT_POLICY) == policy


def test_without_a_policy_of_its_own_an_endpoint_has_the_default():
    assert policy_of(None, PRESETS["brisk"]) == PRESETS["brisk"]


@pytest.mark.parametrize(
    ("said", "pointer", "words"),
    [
        ("patient", "/retry", [SHAPES, 'Did you mean {"preset": "patient"}?']),
        ([30, 60], "/retry", [SHAPES, "Did you mean {\"schedule\": […]}?"]),
        (5, "/retry", [SHAPES]),
        ({}, "/retry", [SHAPES]),
        ({"preset": "pateint"}, "/retry/preset", ["patient, minute, exponential, brisk, eight, standard", "Did you mean patient?"]),
        ({"preset": 5}, "/retry/preset", ["patient, minute, exponential, brisk, eight, standard"]),
        ({"preset": None}, "/retry/preset", ["A preset is one of"]),
        ({"preset": "brisk", "attempts": 9}, "/retry/attempts", ["attempts cannot be combined with a preset"]),
        ({"preset": "brisk", "schedule": [0]}, "/retry/schedule", ["cannot be combined with a preset", SHAPES]),
        ({"schedule": []}, "/retry/schedule", ["at least one entry"]),
        ({"schedule": None}, "/retry/schedule", ["a list of waits in seconds"]),
        ({"schedule": 30}, "/retry/schedule", ["a list of waits in seconds"]),
        ({"schedule": [0, -1]}, "/retry/schedule/1", ["retry.schedule[1]", WAIT]),
        ({"schedule": [0, math.nan]}, "/retry/schedule/1", [WAIT]),
        ({"schedule": [0, math.inf]}, "/retry/schedule/1", [WAIT]),
        ({"schedule": [math.nan]}, "/retry/schedule/0", [WAIT]),
        ({"schedule": [0, LONGEST_WAIT_S + 1]}, "/retry/schedule/1", [WAIT]),
        ({"schedule": [0, True]}, "/retry/schedule/1", [WAIT]),
        ({"schedule": [0, "5m"]}, "/retry/schedule/1", [WAIT, "Did you mean 300, as a number?"]),
        ({"schedule": [0, "soon"]}, "/retry/schedule/1", [WAIT]),
        ({"schedule": [0, None]}, "/retry/schedule/1", [WAIT]),
        ({"schedule": [0] * 51}, "/retry/schedule", ["1 to 50 attempts", "has 51"]),
        ({"schedule": [1] * 50}, "/retry/schedule", ["1 to 50 attempts", "has 51"]),
        ({"schedule": [0] * 1_000_000}, "/retry/schedule", ["has 1,000,000"]),
        ({"schedule": [0], "cap": 5}, "/retry/cap", ["cannot be combined with a schedule"]),
        ({"schedule": [0], "jitter": "ful"}, "/retry/jitter", ["full, equal, none or {below, above}", "Did you mean full?"]),
        ({"schedule": [0], "jitter": 0.1}, "/retry/jitter", ['Did you mean {"below": 0.1, "above": 0.1}?']),
        ({"schedule": [0], "jitter": True}, "/retry/jitter", ["full, equal, none or {below, above}"]),
        ({"schedule": [0], "jitter": {}}, "/retry/jitter", ["it is empty"]),
        ({"schedule": [0], "jitter": {"below": 1.1}}, "/retry/jitter/below", ["from 0 to 1"]),
        ({"schedule": [0], "jitter": {"above": math.nan}}, "/retry/jitter/above", ["from 0 to 1"]),
        ({"schedule": [0], "jitter": {"over": 1}}, "/retry/jitter/over", ["Unknown field 'over'"]),
        ({"base": 1}, "/retry/attempts", ["attempts is missing"]),
        ({"attempts": 5}, "/retry/base", ["base is missing"]),
        ({"base": 0, "attempts": 5}, "/retry/base", ["from 0.001 to 2,592,000"]),
        ({"base": -1, "attempts": 5}, "/retry/base", ["from 0.001"]),
        ({"base": "30s", "attempts": 5}, "/retry/base", ["Did you mean 30, as a number?"]),
        ({"base": 1, "attempts": 0}, "/retry/attempts", ["from 1 to 50"]),
        ({"base": 1, "attempts": 51}, "/retry/attempts", ["from 1 to 50"]),
        ({"base": 1, "attempts": 5.0}, "/retry/attempts", ["Did you mean 5?"]),
        ({"base": 1, "attempts": 5, "factor": 0.5}, "/retry/factor", ["from 1 to 100"]),
        ({"base": 1, "attempts": 5, "factor": math.inf}, "/retry/factor", ["from 1 to 100"]),
        ({"base": 1, "attempts": 5, "cap": 0}, "/retry/cap", ["or null, from 0.001"]),
        ({"base": 1, "attempts": 5, "cap": 2_592_001}, "/retry/cap", ["or null, from 0.001 to 2,592,000"]),
        ({"base": 60, "attempts": 50, "cap": None}, "/retry/cap", ["Without a cap", "Give a cap, or fewer attempts"]),
        ({"max_attempts": 5, "base": 1}, "/retry/max_attempts", ["Did you mean attempts?"]),
    ],
)  # fmt: skip
def test_a_policy_that_will_not_do_names_the_field_and_what_is_allowed(said, pointer, words):
    with pytest.raises(Invalid) as caught:
        retry(said)
    assert caught.value.pointer == pointer
    for word in words:
        assert word in caught.value.detail
    assert len(caught.value.detail) < 500


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(
        st.sampled_from(["preset", "schedule", "jitter", "base", "factor", "cap", "attempts", "below", "x"]),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@given(anything)
def test_whatever_is_said_is_refused_or_a_policy_within_bounds(said: Any):
    try:
        stored = retry(said)
    except Invalid:
        return
    policy = policy_of(stored, DEFAULT_POLICY)
    assert 1 <= policy.attempts <= 50
    assert policy.waits[0] == 0
    assert all(0 <= wait <= LONGEST_WAIT_S for wait in policy.waits)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ([], ()),
        (["5xx", 408, 425, 429], ("5xx", 408, 425, 429)),
        (("4xx", "3xx", 100, 599), ("4xx", "3xx", 100, 599)),
        ([500, 500, "5xx", "5xx"], (500, "5xx")),
    ],
)
def test_statuses_and_classes_may_be_retried(said, kept):
    assert retry_statuses(said) == kept


@pytest.mark.parametrize(
    ("said", "pointer", "words"),
    [
        ("5xx", "/retry_statuses", ["a list of statuses"]),
        ({"5xx": True}, "/retry_statuses", ["a list of statuses"]),
        ([500] * 501, "/retry_statuses", ["a list of statuses"]),
        ([99], "/retry_statuses/0", ["from 100 to 599"]),
        ([500, 600], "/retry_statuses/1", ["from 100 to 599"]),
        ([500.0], "/retry_statuses/0", ["from 100 to 599"]),
        ([True], "/retry_statuses/0", ["from 100 to 599"]),
        ([None], "/retry_statuses/0", ["from 100 to 599"]),
        (["500"], "/retry_statuses/0", ["Did you mean 500, as a number?"]),
        (["5XX"], "/retry_statuses/0", ['Did you mean "5xx"?']),
        (["6xx"], "/retry_statuses/0", ['classes such as "5xx"']),
        (["50x"], "/retry_statuses/0", ['classes such as "5xx"']),
        (["²00"], "/retry_statuses/0", ['classes such as "5xx"']),
        ([[5]], "/retry_statuses/0", ['classes such as "5xx"']),
        (["2xx"], "/retry_statuses/0", ["always accepted"]),
        ([204], "/retry_statuses/0", ["always accepted"]),
    ],
)
def test_a_pattern_that_no_answer_can_match_is_refused(said, pointer, words):
    with pytest.raises(Invalid) as caught:
        retry_statuses(said)
    assert caught.value.pointer == pointer
    for word in words:
        assert word in caught.value.detail
