"""Says what became of a delivery, and of each of its attempts."""

from typing import Any, NamedTuple

from markupsafe import Markup

from hookline.dashboard.look import figures, words
from hookline.rules.retry import DEFAULT_POLICY, policy_of

_HELD_BACK = ("circuit", "receiver", "rate", "slot", "order", "paused", "disabled")

WAITS_SHORT = {  # as a list says it
    "due": "its time",
    "circuit": "its circuit",
    "receiver": "the receiver’s rest",
    "rate": "its rate limit",
    "slot": "a free slot",
    "order": "its turn",
    "paused": "until resumed",
    "disabled": "until enabled",
}


def sentence(delivery: Any) -> str:
    """What became of it: `order.paid waits for attempt 6`."""
    name = delivery.event_type
    match delivery.state:
        case "delivered":
            return f"{name} was delivered"
        case "dead":
            return f"{name} is dead: {words.REASONS.get(delivery.reason, 'it was given up')}"
        case "cancelled":
            why = words.REASONS.get(delivery.reason or "", "cancelled")
            return f"{name} was {why}" if why.endswith("by a person") else f"{name} was cancelled: {why}"
        case _ if delivery.in_flight:
            return f"{name} is being sent, attempt {delivery.attempts + 1}"
        case _ if not delivery.attempts:
            return f"{name} waits for its first attempt"
        case _:
            return f"{name} waits for attempt {delivery.attempts + 1}"


class Next(NamedTuple):
    """What comes next for a delivery that waits."""

    number: int
    at: float | None  # of the attempt; None: nobody knows
    due: float | None  # by its own schedule
    is_later: bool  # than its schedule says
    then: float | None  # seconds that the one after it waits at most; None: it is the last one
    last: int  # the number of the last one


def next_of(delivery: Any, endpoint: Any, *, now: float) -> Next | None:
    """The attempt that comes next, and the one after it; None for a delivery that is over."""
    if delivery.state != "pending":
        return None
    number = delivery.attempts + 1
    due = words.moment(delivery.due_at)
    at: float | None = max(now, due) if due is not None else None
    if delivery.waiting_for == "circuit" and endpoint is not None:
        probe = words.moment(endpoint.circuit_state.next_probe_at)
        at = probe if probe is None or at is None else max(at, probe)
    elif delivery.waiting_for in ("rate", "slot", "order", "paused", "disabled", "receiver"):
        at = None
    then = None
    if endpoint is not None and number < delivery.max_attempts:
        policy = policy_of(endpoint.retry, DEFAULT_POLICY)
        if number < len(policy.waits):
            then = policy.waits[number] * (1.0 + policy.jitter.above)
    is_later = delivery.waiting_for in _HELD_BACK and due is not None
    return Next(number, at, due, is_later, then, delivery.max_attempts)


class AttemptLine(NamedTuple):
    """An attempt as it is shown."""

    report: Any
    is_accepted: bool
    outcome: str
    detail: str
    bar: Markup | None
    phases: str
    is_open: bool


def attempt_lines(attempts: list[Any]) -> tuple[list[AttemptLine], float]:
    """Attempts on a scale that all share, and where it ends, in milliseconds."""
    whole = max((each.duration_ms or 0.0 for each in attempts), default=0.0)
    opened = next((each.id for each in attempts if each.error is not None), None)
    lines = []
    for each in attempts:
        parts, said = _phases(each)
        lines.append(
            AttemptLine(
                report=each,
                is_accepted=each.error is None,
                outcome=words.answer(each.status, each.error.kind if each.error else None),
                detail=_detail(each),
                bar=figures.bar(parts, whole, said) if whole and parts else None,
                phases=said,
                is_open=each.id == opened,
            )
        )
    return lines, whole


def _detail(attempt: Any) -> str:
    if attempt.error is None:
        return ""
    kind, detail = attempt.error.kind, attempt.error.detail
    if attempt.status is not None and not kind.startswith("http_"):
        kind_words = words.ERRORS.get(kind, kind)
        return f"{kind_words[:1].upper()}{kind_words[1:]}. {detail or ''}".strip()
    return detail or ""


def _phases(attempt: Any) -> tuple[list[tuple[str, float]], str]:
    """The parts of its bar, and the same in words."""
    phases = attempt.phases_ms
    named = [
        ("c-dns", "DNS", phases.dns),
        ("c-con", "connect", phases.connect),
        ("c-tls", "TLS", phases.tls),
        ("c-fb", "first byte", phases.first_byte),
    ]
    parts = [(name, value) for name, _, value in named if value is not None]
    said = [f"{word} {words.milliseconds(value)}" for _, word, value in named if value is not None]
    if phases.first_byte is not None and phases.connect is None and phases.dns is None:
        said.insert(0, "connection reused")
    rest = (attempt.duration_ms or 0.0) - sum(value for _, value in parts)
    if rest >= max(0.5, 0.01 * (attempt.duration_ms or 0.0)):
        is_vain = attempt.status is None
        parts.append(("c-bad" if is_vain else "c-rest", rest))
        nothing = "then nothing for" if said else "nothing for"
        said.append(f"{nothing if is_vain else 'reading the answer'} {words.milliseconds(rest)}")
    text = ", ".join(said)
    return parts, text[:1].upper() + text[1:] if text else "No phase was measured"
