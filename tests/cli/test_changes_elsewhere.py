"""How soon does a process that owns a lane go by what another one was told about its endpoint?

Nothing is published between the change and the delivery: a publish would bring the owner up to date by itself.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from answering import Receiver, eventually, receiving
from server_process import ServerProcess

SOON_S = 1.0
AHEAD_S = 2.0  # when the deliveries are due that a change has to be known for


class Pair:
    """Two servers on one database; the first owns the lanes of the endpoints `old` and `beside`."""

    def __init__(self, owner: ServerProcess, other: ServerProcess, receiver: Receiver) -> None:
        self.receiver = receiver
        self._owner = owner
        self._other = other
        ids = [
            self._tell(
                owner, "POST", "/v1/endpoints", {"url": f"{receiver.url}/200/{name}", "events": [name]}
            )
            for name in ("old", "beside")
        ]
        self.path = f"/v1/endpoints/{ids[0]['id']}"
        for name in ("old", "beside"):
            self._publish(name)
        eventually(lambda: len(receiver.requests) == 2 or None)
        assert eventually(self._owned) == {owner.process.pid: 2, other.process.pid: 0}

    def _owned(self) -> dict[int, int] | None:
        found = {each["pid"]: each["lanes"] for each in self._tell(self._owner, "GET", "/v1/workers")["data"]}
        return found if sum(found.values()) == 2 else None

    def _publish(self, type: str, **fields: str) -> str:
        return str(
            self._tell(self._owner, "POST", "/v1/events", {"type": type, "payload": 1, **fields})["id"]
        )

    def _tell(self, server: ServerProcess, method: str, path: str, body=None) -> dict:
        answer = httpx.request(method, server.url + path, json=body, trust_env=False, timeout=30)
        assert answer.is_success, answer.text
        found: dict = answer.json() if answer.content else {}
        return found

    def change(self, method: str, path: str = "", body=None) -> str:
        """Schedule an event, tell the other process about the endpoint, wait for what comes after the event."""
        now, at = datetime.now(UTC), time.monotonic()
        scheduled = self._publish("old", deliver_at=(now + timedelta(seconds=AHEAD_S)).isoformat())
        after = self._publish("beside", deliver_at=(now + timedelta(seconds=AHEAD_S + 0.7)).isoformat())
        self._tell(self._other, method, self.path + path, body)
        assert time.monotonic() - at < AHEAD_S - SOON_S  # or the owner has less than a second to hear of it
        eventually(lambda: after in {each.event_id for each in self.receiver.requests} or None)
        return scheduled

    def where(self, event: str) -> list[str]:
        return [each.path for each in self.receiver.requests if each.event_id == event]


@pytest.fixture
def pair(tmp_path, postgres_url) -> Iterator[Pair]:
    flags = ("--dev", "--database", postgres_url)
    quick = {"HOOKLINE_HEARTBEAT_S": "0.2"}
    with (
        receiving() as receiver,
        ServerProcess(*flags, cwd=tmp_path, env=quick) as owner,
        ServerProcess(*flags, cwd=tmp_path, env=quick) as other,
    ):
        yield Pair(owner, other, receiver)


def test_another_url_is_sent_to_after_a_second(pair):
    event = pair.change("PATCH", body={"url": f"{pair.receiver.url}/200/new"})
    assert pair.where(event) == ["/200/new"]


def test_a_paused_endpoint_gets_nothing_after_a_second(pair):
    event = pair.change("POST", "/pause")
    assert pair.where(event) == []


def test_a_deleted_endpoint_gets_nothing_after_a_second(pair):
    event = pair.change("DELETE")
    assert pair.where(event) == []
