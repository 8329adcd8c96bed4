"""Why an endpoint fails, in words."""

import pytest

from hookline.rules.death_pattern import Pattern
from hookline.rules.failure_cause import cause, commonest_failure, likely_pattern, pattern_of_answers


@pytest.mark.parametrize(
    ("answers", "failure", "pattern"),
    [
        ({}, None, None),
        ({"200": 9}, None, None),
        ({"503": 2, "500": 1}, "503", Pattern.OUTAGE),
        ({"connect_refused": 3}, "connect_refused", Pattern.OUTAGE),
        ({"200": 9, "503": 2}, "503", Pattern.INTERMITTENT),
        ({"200": 9, "401": 2, "503": 1}, "401", Pattern.CREDENTIALS),
        ({"403": 2}, "403", Pattern.CREDENTIALS),
        ({"429": 2}, "429", Pattern.THROTTLED),
        ({"410": 2}, "410", Pattern.GONE),
        ({"422": 2, "204": 1}, "422", Pattern.REJECTED),
        ({"500": 2, "503": 2}, "500", Pattern.OUTAGE),
    ],
)
def test_the_commonest_failure_decides(answers, failure, pattern):
    assert commonest_failure(answers) == failure
    assert pattern_of_answers(answers) is pattern


@pytest.mark.parametrize(
    ("answers", "deaths", "said"),
    [
        ({}, None, None),
        ({}, Pattern.MIXED, None),
        ({"503": 1}, None, "Looks like an outage at the receiver."),
        ({"503": 1}, Pattern.MIXED, "Looks like an outage at the receiver."),
        ({"503": 1}, Pattern.CREDENTIALS, "Its credentials were refused."),
        ({}, Pattern.OUTAGE, "Looks like an outage at the receiver."),
    ],
)
def test_dead_letters_tell_more_than_answers(answers, deaths, said):
    assert cause(answers, deaths) == said


def test_an_outage_that_is_over_is_said():
    assert cause({"503": 9}, None, is_back=True) == "It answers again."
    assert cause({"403": 9}, None, is_back=True) == "Its credentials were refused."
    assert cause({}, None, is_back=True) is None


def test_the_pattern_is_the_one_that_the_sentence_tells_of():
    assert likely_pattern({"401": 2}, None) is Pattern.CREDENTIALS
    assert likely_pattern({"401": 2}, Pattern.MIXED) is Pattern.CREDENTIALS
    assert likely_pattern({"401": 2}, Pattern.OUTAGE) is Pattern.OUTAGE
    assert likely_pattern({}, None) is None


def test_every_pattern_but_mixed_has_its_words():
    assert {each for each in Pattern if cause({}, each) is None} == {Pattern.MIXED}
