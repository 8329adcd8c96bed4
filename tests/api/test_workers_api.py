"""What `/v1/workers` shows."""

import os
import socket
from datetime import datetime

from answering import eventually, receiving
from hookline.version import VERSION


def test_the_server_shows_itself(service):
    before = service.call("GET", "/v1/workers").json()
    [worker] = before["data"]
    assert worker["id"].startswith("wrk_")
    assert (worker["host"], worker["pid"], worker["version"], worker["kind"], worker["state"]) == (
        socket.gethostname(),
        service.process.process.pid,
        VERSION,
        "serve",
        "running",
    )
    assert worker["pid"] != os.getpid()
    assert datetime.fromisoformat(worker["started_at"]) <= datetime.fromisoformat(worker["heartbeat_at"])
    assert before["next_cursor"] is None

    def beaten():
        [now] = service.call("GET", "/v1/workers").json()["data"]
        return True if now["heartbeat_at"] > worker["heartbeat_at"] else None

    eventually(beaten)


def test_it_says_how_many_lanes_it_owns_and_how_fast_it_delivers(service):
    rates = []

    def seen():
        [worker] = service.call("GET", "/v1/workers").json()["data"]
        rates.append(worker["delivered_per_s"])
        return True if worker["lanes"] >= 1 and max(rates) > 0 else None

    with receiving() as receiver:
        service.create(url=f"{receiver.url}/200/x", events=["pace.told"])
        for _ in range(5):
            service.publish("pace.told")
        eventually(seen)


def test_limits_and_unknown_parameters_are_minded(service):
    for query, code in (("limit=0", "invalid_parameter"), ("state=stale", "unknown_parameter")):
        answer = service.call("GET", f"/v1/workers?{query}")
        assert (answer.status_code, answer.json()["code"]) == (422, code)
