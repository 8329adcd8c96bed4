"""What an endpoint's page says is decided by its figures alone."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from hookline import rfc3339
from hookline.dashboard.pages.endpoints.endpoint_facts import Knot, circuit_history, condition
from hookline.model import CircuitPolicy
from hookline.reports.stats import LatencyFigures, StatsPhases, StatsPoint, StatsReport
from hookline.reports.views import (
    AlertReport,
    CircuitReport,
    EndpointCountsReport,
    EndpointProblem,
    EndpointReport,
)

NOW = 1_763_348_400.0  # a full hour
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
NONE = LatencyFigures(samples=0, p50_ms=None, p95_ms=None, p99_ms=None, mean_ms=None)
OPEN = {
    "state": "open",
    "opened_at": rfc3339.show(NOW - 600),
    "reason": "5 failures in a row",
    "cooldown_s": 300.0,
}


def an_endpoint(circuit: Mapping[str, Any] | None = None, **fields: Any) -> EndpointReport:
    state = CircuitReport(
        state="closed",
        consecutive_failures=0,
        opened_at=None,
        cooldown_s=None,
        next_probe_at=None,
        last_success_at=None,
        last_failure_at=None,
        reason=None,
    )
    given: dict[str, Any] = {
        "id": "ep_1",
        "account": "default",
        "url": "https://a.example/",
        "events": ("*",),
        "description": "",
        "enabled": True,
        "disabled_reason": None,
        "headers": {},
        "client_certificate": None,
        "metadata": {},
        "filter": None,
        "signing": "standard",
        "signature": "v1",
        "timeout_ms": 10_000,
        "max_redirects": 0,
        "max_in_flight": 5,
        "rate_limit": None,
        "ordering": "parallel",
        "paused": False,
        "retry": {"preset": "patient"},
        "retry_statuses": ("5xx",),
        "circuit": CircuitPolicy(),
        "circuit_state": msgspec.structs.replace(state, **(circuit or {})),
        "slow": False,
        "counts": EndpointCountsReport(0, 0, 0, 0),
        "problems": (),
        "created_at": rfc3339.show(NOW - 30 * DAY),
        "updated_at": rfc3339.show(NOW - 30 * DAY),
    }
    return EndpointReport(**(given | fields))


def stats(window: float, step: float, *points: tuple[float, int, int], **answers: int) -> StatsReport:
    """Points are seconds ago, attempts and how many were accepted; answers as `s503=2`."""
    by_status = {name.removeprefix("s"): count for name, count in answers.items()}
    whole = sum(by_status.values())
    return StatsReport(
        **msgspec.structs.asdict(NONE),
        endpoint_id="ep_1",
        since=rfc3339.show(NOW - window),
        until=rfc3339.show(NOW),
        as_of=rfc3339.show(NOW),
        precision_s=60,
        success_rate=by_status.get("200", 0) / whole if whole else None,
        slow=False,
        pending=0,
        dead=0,
        by_status=by_status,
        queue_wait=NONE,
        end_to_end=NONE,
        phases=StatsPhases(dns=NONE, connect=NONE, tls=NONE, first_byte=NONE),
        series=tuple(
            StatsPoint(
                at=rfc3339.show(NOW - ago), samples=samples, accepted=good, p50_ms=1.0, p95_ms=1.0, p99_ms=1.0
            )
            for ago, samples, good in points
        ),
        step_s=int(step),
    )


def an_alert(since: float, *, resolved_at: float | None = None) -> AlertReport:
    return AlertReport(
        id="alr_1",
        kind="circuit_open",
        account="default",
        endpoint_id="ep_1",
        state="firing" if resolved_at is None else "resolved",
        since=rfc3339.show(since),
        resolved_at=None if resolved_at is None else rfc3339.show(resolved_at),
        value=None,
        threshold=None,
        message="The circuit of a.example/ is open: 5 failures in a row.",
    )


NOTHING = stats(HOUR, MINUTE)


@pytest.mark.parametrize(
    ("endpoint", "answers", "state"),
    [
        (an_endpoint(), {}, "idle"),
        (an_endpoint(counts=EndpointCountsReport(1, 0, 0, 0)), {}, "healthy"),
        (an_endpoint(), {"s200": 5, "s503": 5}, "healthy"),
        (an_endpoint(), {"s200": 1, "s503": 3}, "healthy"),  # too few to tell
        (an_endpoint(), {"s200": 2, "s503": 3}, "failing"),
        (an_endpoint(slow=True), {"s200": 9}, "slow"),
        (an_endpoint(OPEN), {"s200": 9}, "failing"),
        (an_endpoint(OPEN, paused=True), {}, "paused"),
        (an_endpoint(OPEN, paused=True, enabled=False), {}, "disabled"),
        (an_endpoint(enabled=False, problems=(EndpointProblem("url", "is none"),)), {}, "broken"),
    ],
)
def test_the_first_state_that_holds(endpoint: EndpointReport, answers: dict[str, int], state: str):
    given = stats(HOUR, MINUTE, **answers)
    found = condition(endpoint, quarter=given, hour=given, day=given, alert=None)
    assert found.state == state


def test_it_fails_since_its_first_failure_after_its_last_good_answer():
    hour = stats(HOUR, MINUTE, (1_800, 4, 4), (1_200, 3, 0), (600, 3, 0), s200=4, s503=6)
    found = condition(an_endpoint(OPEN), quarter=NOTHING, hour=hour, day=hour, alert=None)
    assert (found.since, found.answer, found.cause) == (
        NOW - 1_200,
        "503 Service Unavailable",
        "It fails now and then.",
    )


def test_a_failure_that_began_before_the_hour_is_dated_by_the_day():
    hour = stats(HOUR, MINUTE, (600, 1, 0), s503=1)
    day = stats(DAY, HOUR, (10 * HOUR, 9, 9), (5 * HOUR, 9, 0), (HOUR, 1, 0), s200=9, s503=10)
    found = condition(an_endpoint(OPEN), quarter=NOTHING, hour=hour, day=day, alert=None)
    assert found.since == NOW - 5 * HOUR


def test_one_that_accepted_all_of_its_newest_minute_answers_again():
    hour = stats(HOUR, MINUTE, (600, 9, 0), (60, 2, 2), s200=2, s503=9)
    found = condition(an_endpoint(), quarter=hour, hour=hour, day=hour, alert=None)
    assert found.state == "back"


def test_the_circuit_tells_what_it_did_newest_first():
    endpoint = an_endpoint({**OPEN, "next_probe_at": rfc3339.show(NOW + 300)})
    alerts = [an_alert(NOW - 1_200), an_alert(NOW - DAY, resolved_at=NOW - DAY + 600)]
    after = "after 5 failures in a row."
    assert circuit_history(endpoint, alerts) == [
        Knot(
            is_open=True, what="Tried again:", text="it failed. Rests 5 min.", at=NOW - 600, until=NOW + 300
        ),
        Knot(is_open=True, what="Opened", text=after, at=NOW - 1_200),
        Knot(is_open=False, what="Closed", at=NOW - DAY + 600),
        Knot(is_open=True, what="Opened", text=after, at=NOW - DAY),
    ]


def test_an_opening_is_told_once():
    endpoint = an_endpoint({**OPEN, "next_probe_at": rfc3339.show(NOW + 300)})
    [knot] = circuit_history(endpoint, [an_alert(NOW - 590)])
    assert (knot.what, knot.at) == ("Opened", NOW - 600)
