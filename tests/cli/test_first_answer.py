"""What `endpoints test` says of a delivery that was not sent."""

import pytest

from hookline.cli.first_answer import why_not_sent
from hookline.reports.waiting import WORDS


@pytest.mark.parametrize(
    ("waiting_for", "says"),
    [
        ("circuit", "the endpoint's circuit is open; `hookline endpoints reset-circuit` closes it"),
        ("slot", "no worker has a free slot for it; check with `hookline doctor`"),
        ("of a later server", "it waits for of a later server"),
    ],
)
def test_the_reason_is_a_sentence_with_the_next_step(waiting_for, says):
    assert why_not_sent({"state": "pending", "waiting_for": waiting_for}) == says


@pytest.mark.parametrize("word", WORDS)
def test_every_reason_of_the_server_has_a_sentence(word):
    assert "it waits for" not in why_not_sent({"state": "pending", "waiting_for": word})


def test_a_delivery_that_ended_unsent_waits_for_nothing():
    assert why_not_sent({"state": "cancelled", "waiting_for": None}) == "it is cancelled"
