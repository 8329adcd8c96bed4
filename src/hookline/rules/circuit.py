"""Decides whether an endpoint may be sent to, from its recent answers.

Each lane has a circuit. It trips on failures in a row, or on their share in a window. It stays open for a cooldown and
then lets a single probe through. The probe's result closes or reopens it. Only transient outcomes are failures: a
refusal or a request to slow down shows that the endpoint is there.
"""

import msgspec

from hookline.model import Circuit, CircuitPolicy, CircuitSlice, CircuitState, Outcome

SLICES = 10  # the window is counted in this many slices
SOONEST_PROBE = (
    1.0  # seconds; a receiver that answers a probe with `Retry-After: 0` is not probed without pause
)


def threshold(policy: CircuitPolicy, *, is_slow: bool) -> int:
    """How many failures in a row trip the circuit; half as many, rounded up, for an endpoint that is slow anyway."""
    return (policy.consecutive_failures + 1) // 2 if is_slow else policy.consecutive_failures


def after_answer(
    circuit: Circuit, outcome: Outcome, *, policy: CircuitPolicy, now: float, is_slow: bool = False
) -> Circuit:
    """The circuit after an ordinary attempt's answer; while it is not closed, an answer is only noted."""
    noted = _noted(circuit, outcome, now)
    if circuit.state is not CircuitState.CLOSED:
        return noted
    match outcome:
        case Outcome.ACCEPTED:
            slices = _counted(circuit.slices, policy, now)
            return msgspec.structs.replace(noted, failures=0, slices=slices)
        case Outcome.TRANSIENT:
            slices = _counted(circuit.slices, policy, now, failures=1)
            counted = msgspec.structs.replace(noted, failures=circuit.failures + 1, slices=slices)
            reason = _trips(counted, policy, is_slow=is_slow)
            return counted if reason is None else _opened(counted, policy.cooldown_s, reason, now)
        case _:
            return noted


def after_successes(circuit: Circuit, successes: int, *, policy: CircuitPolicy, now: float) -> Circuit:
    """The closed circuit after so many accepted attempts, all within the same moment of the window."""
    return msgspec.structs.replace(
        circuit,
        failures=0,
        slices=_counted(circuit.slices, policy, now, attempts=successes),
        last_success_at=now,
    )


def begin_probe(circuit: Circuit, *, until: float) -> Circuit:
    """The circuit with one probe under way; if its sender dies, the next probe may go at `until`."""
    return msgspec.structs.replace(circuit, state=CircuitState.HALF_OPEN, probe_at=until)


def after_probe(
    circuit: Circuit, outcome: Outcome, *, policy: CircuitPolicy, now: float, asked: float | None = None
) -> Circuit:
    """The circuit after its probe's answer."""
    noted = _noted(circuit, outcome, now)
    cooldown = circuit.cooldown or policy.cooldown_s
    match outcome:
        case Outcome.TRANSIENT:
            longer = min(cooldown * 2, policy.max_cooldown_s)
            return _opened(noted, longer, circuit.reason or "the probe failed", now)
        case Outcome.THROTTLED:
            reopened = _opened(noted, cooldown, circuit.reason or "the probe was throttled", now)
            if asked is None:
                return reopened
            # Limited like a cooldown: no endpoint rests for longer than the policy says.
            wait = min(max(asked, SOONEST_PROBE), policy.max_cooldown_s)
            return msgspec.structs.replace(reopened, probe_at=now + wait)
        case _:
            return Circuit(last_success_at=noted.last_success_at, last_failure_at=noted.last_failure_at)


def reset(circuit: Circuit) -> Circuit:
    """The circuit, closed by an operator."""
    return Circuit(last_success_at=circuit.last_success_at, last_failure_at=circuit.last_failure_at)


def _noted(circuit: Circuit, outcome: Outcome, now: float) -> Circuit:
    if outcome is Outcome.ACCEPTED:
        return msgspec.structs.replace(circuit, last_success_at=now)
    if outcome is Outcome.TRANSIENT:
        return msgspec.structs.replace(circuit, last_failure_at=now)
    return circuit


def _opened(circuit: Circuit, cooldown: float, reason: str, now: float) -> Circuit:
    return msgspec.structs.replace(
        circuit,
        state=CircuitState.OPEN,
        cooldown=cooldown,
        opened_at=now,
        probe_at=now + cooldown,
        reason=reason,
    )


def _trips(circuit: Circuit, policy: CircuitPolicy, *, is_slow: bool) -> str | None:
    if circuit.failures >= threshold(policy, is_slow=is_slow):
        return f"{circuit.failures} failures in a row"
    attempts = sum(part.attempts for part in circuit.slices)
    failures = sum(part.failures for part in circuit.slices)
    if attempts >= policy.min_attempts and failures >= policy.failure_rate * attempts:
        return f"{failures} of {attempts} attempts failed within {policy.window_s:g} s"
    return None


def _counted(
    slices: tuple[CircuitSlice, ...],
    policy: CircuitPolicy,
    now: float,
    *,
    attempts: int = 1,
    failures: int = 0,
) -> tuple[CircuitSlice, ...]:
    index = int(now // (policy.window_s / SLICES))
    kept = [part for part in slices if index - SLICES < part.index <= index]
    if kept and kept[-1].index == index:
        last = kept.pop()
        kept.append(CircuitSlice(index, last.attempts + attempts, last.failures + failures))
    else:
        kept.append(CircuitSlice(index, attempts, failures))
    return tuple(kept)
