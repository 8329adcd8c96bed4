"""Reads what an endpoint's page says from the API's figures of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from markupsafe import Markup

from hookline.dashboard.look import figures, words
from hookline.reports.stats import StatsReport
from hookline.reports.views import AlertReport, CircuitReport, EndpointReport
from hookline.rules.death_pattern import Pattern
from hookline.rules.failure_cause import cause, commonest_failure, pattern_of_answers

QUIET = 60.0  # seconds without a failure
FEWEST = 5  # attempts in a quarter of an hour, to call an endpoint failing by them
_FIXES = {
    Pattern.CREDENTIALS: ("headers", "Change the header"),
    Pattern.THROTTLED: ("rate", "Set a rate limit"),
    Pattern.INTERMITTENT: ("retry", "Change the schedule"),
}
State = Literal["broken", "disabled", "paused", "failing", "back", "slow", "idle", "healthy"]


class EndpointCondition(NamedTuple):
    """How an endpoint is."""

    state: State
    answer: str = ""  # the commonest failure, in words
    cause: str | None = None
    fix: tuple[str, str] | None = None  # where its settings are changed, and what is pressed there
    since: float | None = None  # of a failing one: its first failure after its last good answer
    last_good: float | None = None  # about when it last accepted something


def condition(
    endpoint: EndpointReport,
    *,
    quarter: StatsReport,
    hour: StatsReport,
    day: StatsReport,
    alert: AlertReport | None,
    is_back: bool = False,
) -> EndpointCondition:
    """The first state that holds; what a person did to an endpoint wins over how it answers."""
    if endpoint.problems:
        return EndpointCondition("broken")
    if not endpoint.enabled:
        return EndpointCondition("disabled")
    if endpoint.paused:
        return EndpointCondition("paused")
    circuit = endpoint.circuit_state
    last_good = _last_good(circuit, hour, day)
    rate = quarter.success_rate
    fails_much = rate is not None and rate < 0.5 and sum(quarter.by_status.values()) >= FEWEST
    if is_back or (fails_much and circuit.state == "closed" and _all_good_now(hour, circuit)):
        return EndpointCondition("back", last_good=last_good)
    if circuit.state != "closed" or fails_much:
        answers = next(
            (each.by_status for each in (quarter, hour, day) if commonest_failure(each.by_status)), {}
        )
        failure, pattern = commonest_failure(answers), pattern_of_answers(answers)
        return EndpointCondition(
            "failing",
            "" if failure is None else _answer(failure),
            cause(answers, None),
            None if pattern is None else _FIXES.get(pattern),
            _since(circuit, hour, day, alert, accepted=last_good or 0.0),
            last_good,
        )
    if endpoint.slow:
        return EndpointCondition("slow")
    if not day.by_status and not _waiting(endpoint):
        return EndpointCondition("idle", last_good=last_good)
    return EndpointCondition("healthy", last_good=last_good)


def _last_good(circuit: CircuitReport, hour: StatsReport, day: StatsReport) -> float | None:
    """When it last accepted something; by the figures if its circuit has not noted it, to the minute or hour."""
    moments = [words.moment(circuit.last_success_at) or 0.0]
    for stats in (day, hour):
        moments += [words.moment(point.at) or 0.0 for point in stats.series if point.accepted]
    return max(moments) or None


def _all_good_now(hour: StatsReport, circuit: CircuitReport) -> bool:
    """Whether it accepted everything in its newest minute, or something, and failed nothing for a minute."""
    newest = hour.series[-1] if hour.series else None
    if newest is None or not newest.accepted:
        return False
    failed_at = words.moment(circuit.last_failure_at)
    until = words.moment(hour.until)
    is_over = failed_at is not None and until is not None and failed_at < until - QUIET
    return is_over or newest.samples == newest.accepted


def _since(
    circuit: CircuitReport,
    hour: StatsReport,
    day: StatsReport,
    alert: AlertReport | None,
    *,
    accepted: float,
) -> float | None:
    """The first failure after the last good answer, as exactly as the figures tell."""
    for stats in (hour, day):
        began = words.moment(stats.since) or 0.0
        if stats is hour and accepted < began and _has_points(day, until=began):
            continue  # it began before the hour
        for point in stats.series:
            at = words.moment(point.at) or 0.0
            if at + stats.step_s > accepted and point.samples > point.accepted:
                return max(at, accepted)
    return words.moment(alert.since if alert is not None else circuit.opened_at)


def _has_points(stats: StatsReport, *, until: float) -> bool:
    return any((words.moment(point.at) or 0.0) + stats.step_s <= until for point in stats.series)


def waits_for(endpoint: EndpointReport, newest: str | None) -> str:
    """What its waiting deliveries wait for, in a few words."""
    if not _waiting(endpoint):
        return "nothing waits"
    if not endpoint.enabled:
        return "until it is enabled"
    if endpoint.paused:
        return "until it is resumed"
    if endpoint.circuit_state.state != "closed":
        return "for its circuit"
    if endpoint.counts.awaiting_retry:
        return f"{words.number(endpoint.counts.awaiting_retry)} to be retried"
    return f"for {words.WAITS_FOR.get(newest or '', 'their turn')}"


def _waiting(endpoint: EndpointReport) -> int:
    return endpoint.counts.pending + endpoint.counts.awaiting_retry


class AnswerCounts(NamedTuple):
    """How often it gave an answer."""

    label: str
    attempts: int
    share: str
    bar: Markup
    is_good: bool


def answers(stats: StatsReport) -> list[AnswerCounts]:
    """The answers of a window, the commonest first."""
    whole = sum(stats.by_status.values())
    found = []
    for answer, count in sorted(stats.by_status.items(), key=lambda each: -each[1]):
        is_good = len(answer) == 3 and answer.startswith("2")
        share = f"{words.percent(count / whole)} %"
        label = _answer(answer)
        bar = figures.bar([("c-ok" if is_good else "c-bad", count)], whole, share)
        found.append(AnswerCounts(f"{label[:1].upper()}{label[1:]}", count, share, bar, is_good))
    return found


class PhaseFigures(NamedTuple):
    """How long a phase of a request took."""

    label: str
    p50: str
    p95: str
    bar: Markup | None


def phases(stats: StatsReport) -> list[PhaseFigures]:
    """The phases on one scale; those of a connection happen only when one is opened."""
    given = (
        ("DNS", "c-dns", stats.phases.dns),
        ("Connect", "c-con", stats.phases.connect),
        ("TLS", "c-tls", stats.phases.tls),
        ("First byte", "c-fb", stats.phases.first_byte),
    )
    whole = max((each.p95_ms or 0.0 for _, _, each in given), default=0.0)
    found = []
    for label, name, each in given:
        p50, p95 = words.milliseconds(each.p50_ms), words.milliseconds(each.p95_ms)
        title = f"{label}: half within {p50}, 95 % within {p95}"
        shown = None if each.p50_ms is None else figures.bar([(name, each.p50_ms)], whole, title)
        found.append(PhaseFigures(label, p50, p95, shown))
    return found


def reused(stats: StatsReport) -> float | None:
    """The share of requests that went over a connection that was open already."""
    requests = stats.phases.first_byte.samples
    if not requests:
        return None
    return max(0.0, 1.0 - stats.phases.connect.samples / requests)


class Knot(NamedTuple):
    """A moment in a circuit's history."""

    is_open: bool
    what: str
    text: str = ""
    at: float | None = None
    until: float | None = None


def circuit_history(endpoint: EndpointReport, alerts: Sequence[AlertReport]) -> list[Knot]:
    """What the circuit did, newest first: its state now, then when it opened and closed."""
    circuit, knots = endpoint.circuit_state, []
    opened_at = words.moment(circuit.opened_at)
    rest = f"Rests {words.length(circuit.cooldown_s)}." if circuit.cooldown_s else ""
    firing = next((alert for alert in alerts if alert.state == "firing"), None)
    began = None if firing is None else words.moment(firing.since)
    if circuit.state == "half_open":
        knots.append(Knot(is_open=True, what="Tries one request", text="now.", at=opened_at))
    elif circuit.state == "open":
        until = words.moment(circuit.next_probe_at)
        if began is not None and opened_at is not None and opened_at > began:
            text = f"it failed. {rest}"
            knots.append(Knot(is_open=True, what="Tried again:", text=text, at=opened_at, until=until))
        else:
            text = f"after {circuit.reason or 'failures'}. {rest}"
            knots.append(Knot(is_open=True, what="Opened", text=text, at=opened_at, until=until))
            firing = None
    for alert in alerts:
        if alert.state == "firing" and alert is not firing:
            continue
        if alert.resolved_at is not None:
            knots.append(Knot(is_open=False, what="Closed", at=words.moment(alert.resolved_at)))
        reason = alert.message.rpartition(" is open: ")[2].rstrip(".")
        knots.append(Knot(is_open=True, what="Opened", text=f"after {reason}.", at=words.moment(alert.since)))
    return knots


def settings(endpoint: EndpointReport) -> list[tuple[str, str | Sequence[str], str]]:
    """What is set, in a few lines: name, text or codes, and what else is to be said."""
    headers = [f"{name}: ***" for name in endpoint.headers]
    rate = endpoint.rate_limit
    limit = (
        "no limit" if rate is None else f"{rate.per_second:g} a second, {rate.burst} at once to begin with"
    )
    policy = endpoint.circuit
    circuit = (
        "none: it is sent to, however much fails"
        if policy is None
        else f"opens after {policy.consecutive_failures} failures in a row, or when "
        f"{policy.failure_rate * 100:g} % of {policy.min_attempts} fail within {words.length(policy.window_s)}"
    )
    gets: Sequence[str] = endpoint.events
    strict = ", in order" if endpoint.ordering == "strict" else ""
    return [
        (
            "Gets",
            "all events" if "*" in gets else gets,
            f"where {endpoint.filter}" if endpoint.filter else "",
        ),
        ("Headers", headers or "none of its own", f"signed: {endpoint.signing}"),
        (
            "Sending",
            f"{endpoint.max_in_flight} at once{strict}; {limit}; timeout {words.length(endpoint.timeout_ms / 1_000)}",
            "",
        ),
        ("Retries", _retries(endpoint.retry), ""),
        ("Circuit", circuit, ""),
    ]


def _retries(retry: Mapping[str, Any]) -> str:
    if "preset" in retry:
        return f"the schedule “{retry['preset']}”"
    if "schedule" in retry:
        waits = retry["schedule"]
        if len(waits) == 1:
            return "one attempt, none after it"
        return words.attempts_within(len(waits), float(sum(waits)))
    return (
        f"{words.counted(retry['attempts'], 'attempt')}; the first wait is {words.length(float(retry['base']))}, "
        f"each next one {retry['factor']:g} times as long"
    )


def _answer(answer: str) -> str:
    return words.answer(int(answer), None) if answer.isdigit() else words.answer(None, answer)
