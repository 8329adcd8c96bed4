"""May an endpoint be sent to, given how it has answered lately?

A circuit per lane. It trips on failures in a row or on their share in a window, stays open for a cooldown,
then lets one single probe through; what the probe meets with closes or reopens it. Failures are the transient
outcomes: a refusal or a request to slow down says that the endpoint is there.
"""

import msgspec

from hookline.model import Circuit, CircuitPolicy, CircuitSlice, CircuitState, Outcome

SLICES = 10  # the window is counted in this many slices


def threshold(policy: CircuitPolicy, *, is_slow: bool) -> int:
    """Failures in a row that trip; half as many, rounded up, for an endpoint that is slow anyway."""
    return (policy.consecutive_failures + 1) // 2 if is_slow else policy.consecutive_failures


def after_answer(
    circuit: Circuit, outcome: Outcome, *, policy: CircuitPolicy, now: float, is_slow: bool = False
) -> Circuit:
    """The circuit after an ordinary attempt's answer; while it is not closed such answers are only noted."""
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
    """One probe is under way; should its sender die, the next may go at `until`."""
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
            # Like a cooldown: nobody is left alone for longer than the policy says.
            return msgspec.structs.replace(reopened, probe_at=now + min(asked, policy.max_cooldown_s))
        case _:
            return Circuit(last_success_at=noted.last_success_at, last_failure_at=noted.last_failure_at)


def reset(circuit: Circuit) -> Circuit:
    """Closed by hand."""
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
