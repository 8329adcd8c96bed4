"""What became of a delivery, in words."""

from typing import Any

import pytest

from hookline.dashboard.pages.deliveries.delivery_words import Next, attempt_lines, next_of, sentence
from hookline.reports.views import AttemptReport, DeliveryReport, ErrorReport, PhasesReport, RequestReport

AT = "2026-11-17T02:00:00Z"
NOW = 1_794_880_800.0  # the same moment


class _Circuit:
    def __init__(self, next_probe_at: str | None) -> None:
        self.next_probe_at = next_probe_at


class _Endpoint:
    def __init__(self, next_probe_at: str | None = None) -> None:
        self.retry = {"schedule": [0, 60, 3_600], "jitter": "full"}
        self.circuit_state = _Circuit(next_probe_at)


def a_delivery(**fields: Any) -> DeliveryReport:
    given: dict[str, Any] = {
        "id": "dlv_1", "event_id": "evt_1", "endpoint_id": "ep_1", "account": "a", "event_type": "order.paid",
        "state": "pending", "attempts": 0, "max_attempts": 3, "due_at": AT, "in_flight": False,
        "waiting_for": "due", "last_status": None, "last_duration_ms": None, "last_error": None, "reason": None,
        "created_at": AT, "delivered_at": None, "dead_at": None, "replays": 0, "last_death": None,
    }  # fmt: skip
    return DeliveryReport(**{**given, **fields})


def an_attempt(number: int = 1, **fields: Any) -> AttemptReport:
    given: dict[str, Any] = {
        "id": f"att_{number}", "delivery_id": "dlv_1", "number": number, "at": AT, "status": 200,
        "duration_ms": 50.0, "phases_ms": PhasesReport(1.0, 18.0, 20.0, 11.0), "error": None,
        "request": RequestReport("https://a.example/", None), "response_headers": None, "response_body": "",
        "response_truncated": False, "final_url": None, "late": False,
    }  # fmt: skip
    return AttemptReport(**{**given, **fields})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "order.paid waits for its first attempt"),
        ({"attempts": 5}, "order.paid waits for attempt 6"),
        ({"attempts": 1, "in_flight": True}, "order.paid is being sent, attempt 2"),
        ({"state": "delivered"}, "order.paid was delivered"),
        ({"state": "dead", "reason": "exhausted"}, "order.paid is dead: attempts ran out"),
        ({"state": "dead", "reason": None}, "order.paid is dead: it was given up"),
        ({"state": "cancelled", "reason": "cancelled"}, "order.paid was cancelled by a person"),
        ({"state": "cancelled", "reason": "discarded"}, "order.paid was discarded by a person"),
        (
            {"state": "cancelled", "reason": "endpoint_deleted"},
            "order.paid was cancelled: its endpoint was deleted",
        ),
    ],
)
def test_the_sentence(fields: dict[str, Any], said: str):
    assert sentence(a_delivery(**fields)) == said


@pytest.mark.parametrize(
    ("fields", "endpoint", "expected"),
    [
        ({}, _Endpoint(), Next(1, NOW, NOW, False, 60.0, 3)),
        ({"attempts": 1}, _Endpoint(), Next(2, NOW, NOW, False, 3_600.0, 3)),
        ({"attempts": 2}, _Endpoint(), Next(3, NOW, NOW, False, None, 3)),
        ({}, None, Next(1, NOW, NOW, False, None, 3)),
        (
            {"waiting_for": "circuit"},
            _Endpoint("2026-11-17T02:16:00Z"),
            Next(1, NOW + 960, NOW, True, 60.0, 3),
        ),
        ({"waiting_for": "circuit"}, _Endpoint(None), Next(1, None, NOW, True, 60.0, 3)),
        ({"waiting_for": "paused"}, _Endpoint(), Next(1, None, NOW, True, 60.0, 3)),
        ({"state": "dead"}, _Endpoint(), None),
    ],
)
def test_what_comes_next(fields: dict[str, Any], endpoint: Any, expected: Next | None):
    assert next_of(a_delivery(**fields), endpoint, now=NOW) == expected


def test_the_newest_failed_attempt_is_open_and_all_share_a_scale():
    refused = ErrorReport("http_5xx", None)
    lines, whole = attempt_lines(
        [
            an_attempt(3),
            an_attempt(2, status=503, error=refused, duration_ms=200.0),
            an_attempt(1, status=503, error=refused),
        ]
    )
    assert [line.is_open for line in lines] == [False, True, False]
    assert [line.is_accepted for line in lines] == [True, False, False]
    assert whole == 200.0


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "DNS 1 ms, connect 18 ms, TLS 20 ms, first byte 11 ms"),
        (
            {"phases_ms": PhasesReport(None, None, None, 49.0), "duration_ms": 49.0},
            "Connection reused, first byte 49 ms",
        ),
        (
            {"status": None, "phases_ms": PhasesReport(1.0, 2.0, None, None), "duration_ms": 10_003.0},
            "DNS 1 ms, connect 2 ms, then nothing for 10 s",
        ),
        (
            {"phases_ms": PhasesReport(None, 1.0, None, 4.0), "duration_ms": 45.0},
            "Connect 1 ms, first byte 4 ms, reading the answer 40 ms",
        ),
        (
            {"phases_ms": PhasesReport(None, None, None, None), "duration_ms": None},
            "No phase was measured",
        ),
    ],
)
def test_phases_in_words(fields: dict[str, Any], said: str):
    ((line,), _) = attempt_lines([an_attempt(**fields)])
    assert line.phases == said
