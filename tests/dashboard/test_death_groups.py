"""The diagnosis of dead letters decides which buttons stand beside them."""

from types import SimpleNamespace

import pytest

from hookline.dashboard.pages.dead_letters.death_groups import accepts_again, group
from hookline.reports.views import DeathsReport

ENDPOINT = "ep_" + "1" * 26
DIED = "2026-11-17T02:00:00Z"
BEFORE, AFTER = "2026-11-17T01:00:00Z", "2026-11-17T03:00:00Z"


def deaths(pattern: str, advice: str = "Do `this`.") -> DeathsReport:
    return DeathsReport(
        endpoint_id=ENDPOINT,
        url="https://hooks.example.com/in",
        count=1_204,
        error=None,
        status=503,
        first_at=BEFORE,
        last_at=DIED,
        mean_attempts=3.0,
        pattern=pattern,
        advice=advice,
    )


def endpoint(*, enabled: bool = True, paused: bool = False, circuit: str = "closed") -> SimpleNamespace:
    return SimpleNamespace(enabled=enabled, paused=paused, circuit_state=SimpleNamespace(state=circuit))


@pytest.mark.parametrize(
    ("pattern", "accepted", "labels", "word"),
    [
        ("outage", BEFORE, ["List", "Test and recover"], "Outage"),
        ("outage", AFTER, ["List", "Replay 1,204…"], "Outage, over"),
        ("credentials", None, ["List", "Replay 1,204…", "Change the header"], "Credentials"),
        ("credentials", AFTER, ["List", "Replay 1,204…"], "Credentials, over"),
        ("throttled", None, ["List", "Replay 1,204…", "Set a rate limit…"], "Throttled"),
        ("intermittent", None, ["List", "Replay 1,204…", "Change the schedule"], "Intermittent"),
        ("rejected", AFTER, ["List"], "Rejected"),
        ("gone", None, ["List", "Discard 1,204…"], "Gone"),
        ("mixed", None, ["List", "Replay 1,204…"], "Mixed"),
    ],
)
def test_a_pattern_has_its_buttons(pattern: str, accepted: str | None, labels: list[str], word: str):
    found = group(deaths(pattern), endpoint(), accepted, window="7d")
    assert [each.label for each in found.buttons] == labels
    assert found.look.word == word
    assert sum(each.kind == "primary" for each in found.buttons) <= 1


def test_a_rate_is_taken_from_the_advice():
    found = group(
        deaths("throttled", "Set it: `hookline endpoints update x --rate 2.5`."),
        endpoint(),
        None,
        window="7d",
    )
    assert found.buttons[-1].label == "Set 2.5 per second…"


def test_what_a_deleted_endpoint_left_can_only_be_discarded():
    found = group(deaths("outage"), None, None, window="7d")
    assert [each.label for each in found.buttons] == ["List", "Discard 1,204…"]
    assert not found.can_go


@pytest.mark.parametrize(
    ("fields", "accepted", "accepts"),
    [
        ({}, AFTER, True),
        ({}, BEFORE, False),
        ({}, None, False),
        ({"circuit": "open"}, AFTER, False),
        ({"paused": True}, AFTER, False),
        ({"enabled": False}, AFTER, False),
    ],
)
def test_an_endpoint_accepts_again_if_it_did_so_after_the_last_death(
    fields: dict[str, bool], accepted: str | None, accepts: bool
):
    assert accepts_again(endpoint(**fields), accepted, DIED) == accepts
