"""An endpoint's statistics over a window, and who is slow."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

from hookline import ids
from tests.api.conftest import Service


def test_an_endpoint_without_attempts_has_figures_that_are_null(service: Service):
    endpoint = service.create(account="stats")["id"]
    answer = service.call("GET", f"/v1/endpoints/{endpoint}/stats")
    assert answer.status_code == 200
    stats = answer.json()
    assert {name: stats[name] for name in ("samples", "p50_ms", "p95_ms", "p99_ms", "mean_ms")} == {
        "samples": 0,
        "p50_ms": None,
        "p95_ms": None,
        "p99_ms": None,
        "mean_ms": None,
    }
    assert (stats["success_rate"], stats["slow"], stats["by_status"]) == (None, False, {})
    assert (stats["pending"], stats["dead"], stats["series"]) == (0, 0, [])
    assert stats["precision_s"] == 60


@pytest.mark.parametrize("window", ["1m", "15m", "1h", "24h", "7d", "90d"])
def test_windows_of_up_to_ninety_days_are_answered(service: Service, window: str):
    endpoint = service.create(account="stats")["id"]
    assert service.call("GET", f"/v1/endpoints/{endpoint}/stats?window={window}").status_code == 200


@pytest.mark.parametrize("window", ["0h", "0", "-1h", "10y", "3650d", "91d", "24", "h", "1.5h", "24H", ""])
def test_other_windows_are_refused_with_what_is_allowed(service: Service, window: str):
    endpoint = service.create(account="stats")["id"]
    answer = service.call("GET", f"/v1/endpoints/{endpoint}/stats?window={window}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_parameter")
    assert "from 1m to 90d" in answer.text


def test_there_are_no_statistics_of_an_unknown_endpoint(service: Service):
    unknown = ids.show("endpoint", bytes(16))
    assert service.call("GET", f"/v1/endpoints/{unknown}/stats").status_code == 404


def test_slow_is_shown_from_what_is_stored(service: Service):
    """Whichever process answers: none of them has to own the lane."""
    slow, slower, fast = (service.create(account="slow")["id"] for _ in range(3))
    for id, p95 in ((slow, 2.5), (slower, 3.5), (fast, 1.5)):
        literal = ids.read("endpoint", id).hex()
        store_day(service, literal, p95)
    found = service.call("GET", "/v1/endpoints?account=slow").json()["data"]
    assert {each["id"]: each["slow"] for each in found} == {slow: True, slower: True, fast: False}
    assert service.call("GET", f"/v1/endpoints/{slow}").json()["slow"]
    path = "/v1/endpoints?account=slow&slow=true"
    assert [each["id"] for each in service.call("GET", path).json()["data"]] == [slower, slow]
    page = service.call("GET", f"{path}&limit=1").json()
    rest = service.call("GET", f"{path}&limit=1&cursor={page['next_cursor']}").json()
    assert [each["id"] for each in page["data"] + rest["data"]] == [slower, slow]
    assert rest["next_cursor"] is None
    others = service.call("GET", "/v1/endpoints?account=slow&slow=false").json()["data"]
    assert [each["id"] for each in others] == [fast]


def store_day(service: Service, endpoint: str, p95: float) -> None:
    """A day that is newer than any that the server reckons."""
    row = f"4102444800, 100, 90, 0.1, {p95}, 9"
    if service.database.startswith("sqlite"):
        with closing(sqlite3.connect(service.database.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute(f"INSERT INTO latency_days VALUES (x'{endpoint}', {row})")
    else:
        row = row.replace("4102444800", "to_timestamp(4102444800)")
        with psycopg.connect(service.database) as session:
            session.execute(f"INSERT INTO hookline.latency_days VALUES ('{endpoint}', {row})")  # type: ignore[arg-type]
