"""Lanes move between real processes."""

from collections.abc import Iterator

import httpx
import pytest

from answering import eventually
from server_process import ServerProcess
from slow_receiver import Slow, serving
from worker_process import WorkerProcess

LANES = 6
SLOTS = 4  # half of them for endpoints that a worker has not sent to yet: the two lanes that are left
TAKEOVER_S = 6.0  # none is taken for dead on a busy machine; the chaos row F05 measures the takeover
NEVER_S = 300.0  # a takeover time longer than any test
PATIENT_S = 60.0


@pytest.fixture
def slow() -> Iterator[Slow]:
    with serving(Slow()) as server:
        yield server


class Scene:
    """An API without a worker, workers, and endpoints that answer when the test says so."""

    def __init__(self, database: str, tmp_path, slow: Slow, *, takeover_s: float, **env: str) -> None:
        self._flags = ("--dev", "--database", database)
        self._cwd = tmp_path
        # A worker's beat says what it holds; rare enough for the takeover time, often enough to be read.
        self._env = {"HOOKLINE_HEARTBEAT_S": "0.4", "HOOKLINE_TAKEOVER_S": str(takeover_s), **env}
        self._slow = slow
        self.api = ServerProcess(*self._flags, "--no-worker", cwd=tmp_path, env=self._env)

    def worker(self) -> WorkerProcess:
        return WorkerProcess(*self._flags, cwd=self._cwd, env=self._env)

    def publish(self, *, first: int = 0) -> list[str]:
        """Publish one event for each lane; returns their ids."""
        return [self._call("/v1/events", {"type": f"t{n}", "payload": first + n})["id"] for n in range(LANES)]

    def add_endpoints(self) -> None:
        for n in range(LANES):
            endpoint = {"url": f"{self._slow.url}/{n}", "events": [f"t{n}"], "timeout_ms": 60_000}
            self._call("/v1/endpoints", endpoint)

    def lanes_of(self, worker: WorkerProcess) -> int | None:
        """How many it holds, as it says itself."""
        answer = httpx.get(f"{self.api.url}/v1/workers", trust_env=False, timeout=30)
        return next(
            (each["lanes"] for each in answer.json()["data"] if each["pid"] == worker.process.pid), None
        )

    def are_delivered(self, events: list[str]) -> bool:
        return all(
            httpx.get(f"{self.api.url}/v1/events/{event}", trust_env=False, timeout=30).json()["deliveries"][
                "delivered"
            ]
            for event in events
        )

    def _call(self, path: str, body: dict) -> dict:
        answer = httpx.post(self.api.url + path, json=body, trust_env=False, timeout=30)
        assert answer.is_success, answer.text
        found: dict = answer.json()
        return found


def test_what_a_killed_worker_had_under_way_is_sent_again_by_another(tmp_path, postgres_url, slow):
    scene = Scene(postgres_url, tmp_path, slow, takeover_s=TAKEOVER_S)
    with scene.api, scene.worker() as victim:
        scene.add_endpoints()
        events = scene.publish()
        eventually(lambda: len(slow.events) == LANES or None)
        with scene.worker() as heir:
            eventually(lambda: scene.lanes_of(heir) == 0 or None)
            victim.kill()
            slow.release.set()

            def all_came_again() -> bool:
                return all(slow.events.count(event) > 1 for event in events)

            eventually(lambda: all_came_again() or None, seconds=PATIENT_S)
            eventually(lambda: scene.lanes_of(heir) == LANES or None)
            assert heir.stop() == 0


def test_a_worker_that_is_told_to_stop_hands_its_lanes_back_at_once(tmp_path, postgres_url, slow):
    scene = Scene(postgres_url, tmp_path, slow, takeover_s=NEVER_S)
    slow.release.set()
    with scene.api, scene.worker() as leaving:
        scene.add_endpoints()
        events = scene.publish()
        eventually(lambda: scene.lanes_of(leaving) == LANES or None)
        with scene.worker() as staying:
            assert leaving.stop() == 0
            events += scene.publish(first=100)
            eventually(lambda: sorted(slow.events) == sorted(events) or None, seconds=PATIENT_S)
            eventually(lambda: scene.lanes_of(staying) == LANES or None)
            # Lanes without work are released after a quarter of a minute.
            eventually(lambda: scene.lanes_of(staying) == 0 or None, seconds=PATIENT_S)
            assert staying.stop() == 0


def test_lanes_that_wait_for_a_saturated_worker_go_to_one_that_has_room(tmp_path, postgres_url, slow):
    scene = Scene(postgres_url, tmp_path, slow, takeover_s=NEVER_S, HOOKLINE_MAX_IN_FLIGHT=str(SLOTS))
    slow.release.set()
    with scene.api, scene.worker() as saturated:
        scene.add_endpoints()
        events = scene.publish()
        eventually(lambda: scene.are_delivered(events) or None)  # so none of them waits to be answered
        slow.release.clear()  # endpoints that have answered before may use every slot
        events += scene.publish(first=100)
        eventually(lambda: len(slow.events) == LANES + SLOTS or None)
        with scene.worker():
            eventually(lambda: sorted(slow.events) == sorted(events) or None, seconds=PATIENT_S)
            assert saturated.process.poll() is None
