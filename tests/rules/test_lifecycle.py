"""Which transitions a delivery can make."""

import pytest

from hookline.model import State
from hookline.rules.lifecycle import MOVES, Verb, after

ENDS = {State.DELIVERED, State.DEAD, State.CANCELLED}


@pytest.mark.parametrize("verb", [Verb.DELIVER, Verb.RETRY_LATER, Verb.BURY, Verb.RETRY, Verb.CANCEL])
def test_only_a_pending_delivery_is_sent_or_cancelled(verb):
    assert [state for state in State if after(state, verb)] == [State.PENDING]


@pytest.mark.parametrize("state", ENDS)
def test_every_end_leads_back_to_pending_and_only_by_redrive(state):
    back = [verb for verb in Verb if after(state, verb) is State.PENDING]
    assert back == [Verb.REDRIVE]


def test_a_pending_delivery_is_not_redriven():
    assert after(State.PENDING, Verb.REDRIVE) is None


def test_only_a_dead_letter_is_discarded():
    assert {state: after(state, Verb.DISCARD) for state in State} == {
        State.PENDING: None,
        State.DELIVERED: None,
        State.DEAD: State.CANCELLED,
        State.CANCELLED: None,
    }


def test_every_state_can_be_reached_from_pending():
    reached = {new for (state, _), new in MOVES.items() if state is State.PENDING}
    assert reached == set(State)
