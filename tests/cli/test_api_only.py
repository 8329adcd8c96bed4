"""A server without a worker accepts events and delivers none."""

import httpx
import pytest

from answering import eventually, receiving
from server_process import ServerProcess, run

FLAGS = ("--dev", "--database")


def call(server: ServerProcess, method: str, path: str, body=None) -> dict:
    answer = httpx.request(method, server.url + path, json=body, trust_env=False, timeout=30)
    assert answer.is_success, answer.text
    found: dict = answer.json()
    return found


def add_endpoint(server: ServerProcess, url: str, **fields) -> str:
    return str(call(server, "POST", "/v1/endpoints", {"url": url, "events": ["*"], **fields})["id"])


@pytest.mark.parametrize("several", [(), ("--processes", "2")], ids=["one", "two"])
def test_what_it_accepts_is_delivered_by_others_at_once(tmp_path, postgres_url, several):
    flags = (*FLAGS, postgres_url)
    with (
        receiving() as receiver,
        ServerProcess(*flags, "--no-worker", *several, cwd=tmp_path) as api,
    ):
        add_endpoint(api, f"{receiver.url}/200/x")
        first = call(api, "POST", "/v1/events", {"type": "a", "payload": 1})
        shown = call(api, "GET", "/v1/workers")["data"]
        assert {(each["kind"], each["lanes"], each["state"]) for each in shown} == {("api", 0, "running")}
        assert receiver.requests == []
        with ServerProcess(*flags, cwd=tmp_path) as server:
            eventually(lambda: [each.event_id for each in receiver.requests] == [first["id"]] or None)
            # The other one sleeps on a lane without work until it is woken.
            for n in range(5):
                published = call(api, "POST", "/v1/events", {"type": "a", "payload": n})
                # A lane that is not woken sleeps until the next sweep, for minutes.
                eventually(lambda id=published["id"]: receiver.requests[-1].event_id == id or None)
            assert server.stop() == 0
        assert api.stop() == 0
    assert len(receiver.requests) == 6


def test_an_sqlite_file_is_still_served_by_one_process(tmp_path):
    flags = (*FLAGS, "sqlite:///x.db")
    with receiving() as receiver:
        with ServerProcess(*flags, "--no-worker", cwd=tmp_path) as api:
            second = run("serve", *flags, "--port", "0", cwd=tmp_path)
            assert (second.returncode, "one process serves an SQLite file" in second.stderr) == (1, True)
            add_endpoint(api, f"{receiver.url}/200/x")
            call(api, "POST", "/v1/events", {"type": "a", "payload": 1})
            assert api.stop() == 0
        assert receiver.requests == []
        with ServerProcess(*flags, cwd=tmp_path) as server:
            eventually(lambda: receiver.at("/200/x") or None)
            assert server.stop() == 0
