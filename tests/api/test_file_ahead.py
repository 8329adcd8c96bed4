"""The API shows and reads times by the right clock although its file's time is a year ahead."""

import sqlite3
from contextlib import closing

import httpx

from answering import eventually, receiving
from hookline import rfc3339
from hookline.clock import SystemClock
from server_process import ServerProcess

HOUR = 3_600.0
YEAR = 365 * 24 * HOUR


def test_moments_are_shown_and_asked_for_by_the_right_clock_while_the_file_is_a_year_ahead(tmp_path):
    file = tmp_path / "hookline.db"
    database = f"sqlite:///{file}"
    with ServerProcess("--dev", "--database", database, cwd=tmp_path) as server:
        assert server.stop() == 0
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE clock SET at = ?", (SystemClock().wall() + YEAR,))
    with (
        receiving() as receiver,
        ServerProcess("--dev", "--database", database, cwd=tmp_path) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
    ):
        now = SystemClock().wall()

        def is_now(shown: str) -> bool:
            return abs(rfc3339.read(shown) - now) < HOUR

        endpoint = client.post(
            "/v1/endpoints",
            json={"url": f"{receiver.url}/404/x", "events": ["*"]},
        ).json()
        assert is_now(endpoint["created_at"])
        event = client.post("/v1/events", json={"type": "a", "payload": 1}).json()
        later = client.post(
            "/v1/events", json={"type": "later", "payload": 1, "deliver_at": rfc3339.show(now + 2 * HOUR)}
        ).json()
        assert is_now(event["created_at"])

        def found(path: str, **asked: float) -> list[dict[str, str]]:
            query = {name: rfc3339.show(at) for name, at in asked.items()}
            answer = client.get(path, params=query)
            assert answer.status_code == 200, answer.text
            listed: list[dict[str, str]] = answer.json()["data"]
            return listed

        [letter] = eventually(lambda: found("/v1/dead-letters") or None)
        assert is_now(letter["dead_at"])
        assert is_now(letter["created_at"])
        [attempt] = found(f"/v1/deliveries/{letter['id']}/attempts")
        assert is_now(attempt["at"])
        [scheduled] = found(f"/v1/events/{later['id']}/deliveries")
        assert abs(rfc3339.read(scheduled["due_at"]) - (now + 2 * HOUR)) < 60
        for path, number in (("/v1/events", 2), ("/v1/deliveries", 2), ("/v1/dead-letters", 1)):
            assert len(found(path)) == number
            assert len(found(path, since=now - HOUR, until=now + HOUR)) == number
            assert found(path, since=now + HOUR) == []
            assert found(path, until=now - HOUR) == []
        job = client.post(
            "/v1/discards",
            json={"filter": {"since": rfc3339.show(now - HOUR), "until": rfc3339.show(now + HOUR)}},
        ).json()
        assert job["matched"] == 1
        assert is_now(job["created_at"])
        assert job["filter"] == {"since": rfc3339.show(now - HOUR), "until": rfc3339.show(now + HOUR)}
        assert server.stop() == 0
