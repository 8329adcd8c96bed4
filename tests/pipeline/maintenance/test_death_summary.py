"""The summary of deaths has a bound, whatever dies."""

from structlog.testing import capture_logs

from factories import a_settlement, an_attempt
from hookline.model import EndpointId, ErrorKind, Reason, State
from hookline.pipeline.maintenance.death_summary import CAUSES, ENDPOINTS, DeathSummary
from hookline.testing.clock import ManualClock


def a_death(endpoint: int, status: int = 500):
    attempt = an_attempt(status=status, error=ErrorKind.HTTP_5XX)
    return a_settlement(
        attempt.delivery_id,
        EndpointId(endpoint.to_bytes(16)),
        attempt=attempt,
        state=State.DEAD,
        reason=Reason.EXHAUSTED,
    )


def flushed(deaths: DeathSummary):
    with capture_logs() as lines:
        deaths.flush()
    return lines


def test_endpoints_beyond_the_bound_share_a_line():
    deaths = DeathSummary(ManualClock())
    for endpoint in range(ENDPOINTS + 5):
        deaths.settled(a_death(endpoint))
    lines = flushed(deaths)
    assert len(lines) == ENDPOINTS + 1
    assert (lines[-1]["endpoint_id"], lines[-1]["count"]) == (None, 5)
    assert flushed(deaths) == []


def test_causes_beyond_the_bound_are_counted_and_not_told_apart():
    deaths = DeathSummary(ManualClock())
    for status in range(500, 500 + 10 * CAUSES):
        deaths.settled(a_death(1, status=status))
    deaths.settled(a_death(1, status=500))
    deaths.condemned(EndpointId(bytes(16)), 3)
    deaths.condemned(EndpointId(bytes(16)), 0)
    one, crashed = flushed(deaths)
    assert (one["count"], one["status"]) == (10 * CAUSES + 1, None)
    assert (crashed["count"], crashed["reason"]) == (3, "crash_limit")
