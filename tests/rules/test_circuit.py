"""When a circuit trips, probes and closes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.model import CLOSED, Circuit, CircuitPolicy, CircuitState, Outcome
from hookline.rules.circuit import after_answer, after_probe, after_successes, begin_probe, reset, threshold

POLICY = CircuitPolicy()
NOW = 1_000_000.0
OK, FAIL, NO, BUSY, GONE = (
    Outcome.ACCEPTED,
    Outcome.TRANSIENT,
    Outcome.REJECTED,
    Outcome.THROTTLED,
    Outcome.GONE,
)


def answered(
    *outcomes: Outcome, circuit: Circuit = CLOSED, is_slow: bool = False, step: float = 1.0
) -> Circuit:
    for n, outcome in enumerate(outcomes):
        circuit = after_answer(circuit, outcome, policy=POLICY, now=NOW + n * step, is_slow=is_slow)
    return circuit


def test_five_failures_in_a_row_trip():
    assert answered(*[FAIL] * 4).state is CircuitState.CLOSED
    tripped = answered(*[FAIL] * 5)
    assert (tripped.state, tripped.reason) == (CircuitState.OPEN, "5 failures in a row")
    assert (tripped.opened_at, tripped.probe_at, tripped.cooldown) == (NOW + 4, NOW + 304, 300.0)


def test_a_success_starts_the_count_over():
    assert answered(FAIL, FAIL, FAIL, FAIL, OK, FAIL, FAIL, FAIL, FAIL).state is CircuitState.CLOSED


@pytest.mark.parametrize("between", [NO, BUSY, GONE])
def test_refusals_neither_count_nor_reset(between):
    assert answered(FAIL, between, FAIL, between, FAIL, between, FAIL, between).failures == 4
    assert answered(FAIL, between, FAIL, between, FAIL, between, FAIL, FAIL).state is CircuitState.OPEN
    assert answered(*[between] * 50) == CLOSED


def test_a_slow_endpoint_trips_at_half_the_threshold_rounded_up():
    assert threshold(POLICY, is_slow=True) == 3
    assert answered(FAIL, FAIL, is_slow=True).state is CircuitState.CLOSED
    assert answered(FAIL, FAIL, FAIL, is_slow=True).state is CircuitState.OPEN


def test_every_second_answer_failing_trips_at_the_tenth():
    circuit = CLOSED
    for n in range(1, 10):
        circuit = after_answer(circuit, OK if n % 2 else FAIL, policy=POLICY, now=NOW + n)
        assert circuit.state is CircuitState.CLOSED
    circuit = after_answer(circuit, FAIL, policy=POLICY, now=NOW + 10)
    assert (circuit.state, circuit.reason) == (CircuitState.OPEN, "5 of 10 attempts failed within 600 s")


def test_after_closing_it_takes_ten_answers_to_trip_by_rate_again():
    circuit = answered(*[OK, FAIL] * 5)
    assert circuit.state is CircuitState.OPEN
    circuit = after_probe(begin_probe(circuit, until=NOW + 400), OK, policy=POLICY, now=NOW + 310)
    assert circuit.state is CircuitState.CLOSED
    circuit = answered(*[OK, FAIL] * 4, OK, circuit=circuit)
    assert circuit.state is CircuitState.CLOSED
    assert answered(FAIL, circuit=circuit).state is CircuitState.OPEN


def test_failures_that_left_the_window_do_not_count():
    circuit = answered(*[OK, FAIL] * 4, step=1.0)
    later = NOW + 700
    for n in range(4):
        circuit = after_answer(circuit, OK if n % 2 else FAIL, policy=POLICY, now=later + n)
    assert circuit.state is CircuitState.CLOSED


@pytest.mark.parametrize("outcome", [OK, NO, GONE])
def test_a_probe_that_is_answered_closes_and_starts_everything_over(outcome):
    probing = begin_probe(answered(*[FAIL] * 5), until=NOW + 320)
    closed = after_probe(probing, outcome, policy=POLICY, now=NOW + 305)
    assert (closed.state, closed.failures, closed.slices, closed.cooldown, closed.reason) == (
        CircuitState.CLOSED,
        0,
        (),
        None,
        None,
    )


def test_a_failed_probe_doubles_the_cooldown_up_to_an_hour():
    circuit, cooldowns = answered(*[FAIL] * 5), []
    for _ in range(6):
        circuit = after_probe(begin_probe(circuit, until=0.0), FAIL, policy=POLICY, now=NOW)
        cooldowns.append(circuit.cooldown)
    assert cooldowns == [600, 1_200, 2_400, 3_600, 3_600, 3_600]
    assert (circuit.state, circuit.probe_at) == (CircuitState.OPEN, NOW + 3_600)


def test_a_throttled_probe_leaves_it_open_for_what_was_asked_or_the_same_cooldown():
    probing = begin_probe(answered(*[FAIL] * 5), until=0.0)
    assert after_probe(probing, BUSY, policy=POLICY, now=NOW, asked=42.0).probe_at == NOW + 42
    again = after_probe(probing, BUSY, policy=POLICY, now=NOW)
    assert (again.state, again.cooldown, again.probe_at) == (CircuitState.OPEN, 300, NOW + 300)


def test_a_throttled_probe_is_repeated_after_the_longest_cooldown_at_the_latest():
    probing = begin_probe(answered(*[FAIL] * 5), until=0.0)
    assert after_probe(probing, BUSY, policy=POLICY, now=NOW, asked=86_400.0).probe_at == NOW + 3_600


@pytest.mark.parametrize("asked", [0.0, 0.3])
def test_a_receiver_that_asks_for_no_wait_is_not_probed_without_pause(asked):
    probing = begin_probe(answered(*[FAIL] * 5), until=0.0)
    assert after_probe(probing, BUSY, policy=POLICY, now=NOW, asked=asked).probe_at == NOW + 1


def test_answers_to_requests_sent_before_it_opened_change_nothing():
    tripped = answered(*[FAIL] * 5)
    for outcome in Outcome:
        after = after_answer(tripped, outcome, policy=POLICY, now=NOW + 10)
        assert (after.state, after.probe_at, after.failures) == (tripped.state, tripped.probe_at, 5)


def test_a_reset_by_hand_closes_it():
    assert reset(answered(*[FAIL] * 5)).state is CircuitState.CLOSED


@given(st.integers(1, 50))
def test_successes_counted_together_are_the_same_as_one_by_one(number):
    together = after_successes(CLOSED, number, policy=POLICY, now=NOW)
    assert together == answered(*[OK] * number, step=0.0)


class Reference:
    """The rule in the plainest words: a list of all answers, looked through each time."""

    def __init__(self, policy: CircuitPolicy) -> None:
        self.policy = policy
        self.answers: list[tuple[int, bool]] = []
        self.in_a_row = 0
        self.is_open = False

    def answer(self, outcome: Outcome, now: float) -> None:
        if outcome not in (OK, FAIL) or self.is_open:
            return
        index = math.floor(now / (self.policy.window_s / 10))
        self.answers.append((index, outcome is FAIL))
        self.in_a_row = self.in_a_row + 1 if outcome is FAIL else 0
        recent = [failed for at, failed in self.answers if at > index - 10]
        by_rate = len(recent) >= self.policy.min_attempts and sum(recent) >= self.policy.failure_rate * len(
            recent
        )
        if outcome is FAIL and (self.in_a_row >= self.policy.consecutive_failures or by_rate):
            self.is_open = True

    def close(self) -> None:
        self.answers, self.in_a_row, self.is_open = [], 0, False


@given(
    st.builds(
        CircuitPolicy,
        consecutive_failures=st.integers(1, 8),
        failure_rate=st.sampled_from([0.1, 0.3, 0.5, 0.9, 1.0]),
        window_s=st.sampled_from([10.0, 60.0, 600.0]),
        min_attempts=st.integers(1, 12),
    ),
    st.lists(st.tuples(st.floats(0, 100), st.sampled_from(Outcome)), max_size=60),
)
def test_over_any_timeline_it_does_what_the_reference_does(policy, timeline):
    reference, circuit, now = Reference(policy), CLOSED, 1_000.0
    for step, outcome in timeline:
        now += step
        if circuit.state is CircuitState.OPEN and circuit.probe_at is not None and now >= circuit.probe_at:
            circuit = after_probe(begin_probe(circuit, until=now + 10), OK, policy=policy, now=now)
            reference.close()
        circuit = after_answer(circuit, outcome, policy=policy, now=now)
        reference.answer(outcome, now)
        assert (circuit.state is CircuitState.OPEN) is reference.is_open
