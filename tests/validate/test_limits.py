"""Which circuits and rate limits are valid, and what each refusal says."""

import math

import pytest

from hookline.errors import Invalid
from hookline.model import CircuitPolicy, RateLimit
from hookline.validate.limits import circuit, rate_limit

RATE = "{per_second (0.001 to 10,000), burst (1 to 10,000)} or null"


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        (None, None),
        ({"per_second": 1.667}, RateLimit(1.667, 2)),
        ({"per_second": 0.001}, RateLimit(0.001, 1)),
        ({"per_second": 10_000}, RateLimit(10_000.0, 10_000)),
        ({"per_second": 5, "burst": 1}, RateLimit(5.0, 1)),
        ({"per_second": 5, "burst": None}, RateLimit(5.0, 5)),
    ],
)
def test_a_rate_limit_has_a_burst_of_a_second_unless_it_is_said(said, limit):
    assert rate_limit(said) == limit


@pytest.mark.parametrize(
    ("said", "pointer", "words"),
    [
        (5, "/rate_limit", [RATE, 'Did you mean {"per_second": 5}?']),
        ("5/s", "/rate_limit", [RATE]),
        ([], "/rate_limit", [RATE]),
        (True, "/rate_limit", [RATE]),
        ({}, "/rate_limit/per_second", [RATE, "per_second is missing"]),
        ({"burst": 5}, "/rate_limit/per_second", ["per_second is missing"]),
        ({"per_second": 0}, "/rate_limit/per_second", ["from 0.001 to 10,000"]),
        ({"per_second": -1}, "/rate_limit/per_second", ["from 0.001 to 10,000"]),
        ({"per_second": math.nan}, "/rate_limit/per_second", ["from 0.001 to 10,000"]),
        ({"per_second": math.inf}, "/rate_limit/per_second", ["from 0.001 to 10,000"]),
        ({"per_second": 1e9}, "/rate_limit/per_second", ["from 0.001 to 10,000"]),
        ({"per_second": "5"}, "/rate_limit/per_second", ["Did you mean 5, as a number?"]),
        ({"per_second": True}, "/rate_limit/per_second", ["from 0.001 to 10,000"]),
        ({"per_second": 5, "burst": 0}, "/rate_limit/burst", ["from 1 to 10,000"]),
        ({"per_second": 5, "burst": 0.5}, "/rate_limit/burst", ["from 1 to 10,000"]),
        ({"per_second": 5, "burst": 10_001}, "/rate_limit/burst", ["from 1 to 10,000"]),
        ({"per_minute": 100}, "/rate_limit/per_minute", ['{"per_second": 1.667}']),
        ({"rate": 5}, "/rate_limit/rate", ["Unknown field 'rate'"]),
        ({"persecond": 5}, "/rate_limit/persecond", ["Did you mean per_second?"]),
    ],
)
def test_a_rate_that_will_not_do_names_the_field_and_what_is_allowed(said, pointer, words):
    with pytest.raises(Invalid) as caught:
        rate_limit(said)
    assert caught.value.pointer == pointer
    for word in words:
        assert word in caught.value.detail


@pytest.mark.parametrize(
    ("said", "policy"),
    [
        (None, None),
        ({}, CircuitPolicy()),
        ({"consecutive_failures": 10}, CircuitPolicy(consecutive_failures=10)),
        ({"cooldown_s": 1, "max_cooldown_s": 1}, CircuitPolicy(cooldown_s=1.0, max_cooldown_s=1.0)),
        ({"cooldown_s": 7_200}, CircuitPolicy(cooldown_s=7_200.0, max_cooldown_s=7_200.0)),
        ({"failure_rate": 1, "window_s": 1, "min_attempts": 1}, CircuitPolicy(failure_rate=1.0, window_s=1.0, min_attempts=1)),
    ],
)  # fmt: skip
def test_a_circuit_says_what_differs_from_the_default(said, policy):
    assert circuit(said) == policy


@pytest.mark.parametrize(
    ("said", "pointer", "words"),
    [
        ("open", "/circuit", ["consecutive_failures, failure_rate, window_s", "or null for no circuit"]),
        (False, "/circuit", ["or null for no circuit"]),
        ({"consecutive_failures": 0}, "/circuit/consecutive_failures", ["from 1 to 1,000"]),
        ({"consecutive_failures": 2.5}, "/circuit/consecutive_failures", ["from 1 to 1,000"]),
        ({"failure_rate": 0}, "/circuit/failure_rate", ["from 0.01 to 1"]),
        ({"failure_rate": 50}, "/circuit/failure_rate", ["from 0.01 to 1"]),
        ({"failure_rate": math.nan}, "/circuit/failure_rate", ["from 0.01 to 1"]),
        ({"window_s": 0}, "/circuit/window_s", ["from 1 to 86,400"]),
        ({"window_s": "10m"}, "/circuit/window_s", ["Did you mean 600, as a number?"]),
        ({"min_attempts": 0}, "/circuit/min_attempts", ["from 1 to 10,000"]),
        ({"cooldown_s": 0}, "/circuit/cooldown_s", ["from 0.1 to 86,400"]),
        ({"cooldown_s": math.inf}, "/circuit/cooldown_s", ["from 0.1 to 86,400"]),
        ({"cooldown_s": math.nan}, "/circuit/cooldown_s", ["from 0.1 to 86,400"]),
        ({"cooldown_s": 10**400}, "/circuit/cooldown_s", ["from 0.1 to 86,400"]),
        ({"cooldown_s": []}, "/circuit/cooldown_s", ["from 0.1 to 86,400"]),
        ({"max_cooldown_s": 10}, "/circuit/max_cooldown_s", ["not below cooldown_s (300)"]),
        ({"cooldown": 10}, "/circuit/cooldown", ["Did you mean cooldown_s?"]),
        ({"state": "open"}, "/circuit/state", ["Unknown field 'state'"]),
    ],
)
def test_a_circuit_that_will_not_do_names_the_field_and_what_is_allowed(said, pointer, words):
    with pytest.raises(Invalid) as caught:
        circuit(said)
    assert caught.value.pointer == pointer
    for word in words:
        assert word in caught.value.detail
