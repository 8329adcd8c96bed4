"""What a server logs: JSON in every line, the cause of every failure, and nothing confidential."""

import json
import subprocess
import sys
from urllib.parse import urlsplit, urlunsplit

import httpx
import psycopg
import pytest

from answering import eventually, receiving
from server_process import ServerProcess
from terminal import Terminal
from worker_process import WorkerProcess

KEY = "hlk_canary_the_key_of_these_tests"
ENV = {
    "HOOKLINE_API_KEY": KEY,
    "HOOKLINE_SECRET_KEY": "canary" * 8,
    "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8",
    "HOOKLINE_DRAIN_S": "60",
}
ONCE = {"schedule": [0], "jitter": "none"}


def with_password(url: str) -> str:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}:canary@{place}"))


def client_of(server: ServerProcess) -> httpx.Client:
    return httpx.Client(
        base_url=server.url, headers={"authorization": f"Bearer {KEY}"}, trust_env=False, timeout=60
    )


def create(client: httpx.Client, url: str, type: str, **fields) -> str:
    endpoint = {
        "url": f"{url}?token=canary",
        "events": [type],
        "headers": {"x-token": "canary"},
        "secret": "whsec_" + "canary00" * 4,
        "retry": ONCE,
        **fields,
    }
    answer = client.post("/v1/endpoints", json=endpoint)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def publish(client: httpx.Client, type: str) -> httpx.Response:
    headers = {"idempotency-key": f"canary-{type}-{id(object())}", "x-canary": "canary"}
    return client.post("/v1/events", json={"type": type, "payload": {"card": "canary"}}, headers=headers)


def test_every_line_is_json_and_none_holds_anything_confidential(tmp_path, postgres_server):
    with postgres_server.fresh_database() as plain:
        database = with_password(plain)
        with (
            receiving() as receiver,
            ServerProcess("--database", database, cwd=tmp_path, env=ENV) as server,
            WorkerProcess("--database", database, cwd=tmp_path, env=ENV) as worker,
            client_of(server) as client,
        ):
            failing = create(client, f"{receiver.url}/500/x", "failing", circuit={"consecutive_failures": 1})
            gone = create(client, f"{receiver.url}/410/x", "gone")
            for type in ("failing", "gone"):
                assert publish(client, type).status_code == 202

            def events() -> set[str]:
                return {line["event"] for each in (server, worker) for line in each.lines}

            eventually(lambda: {"circuit.opened", "endpoint.disabled"} <= events() or None)
            with psycopg.connect(plain, autocommit=True) as session:
                session.execute("ALTER TABLE hookline.idempotency RENAME TO elsewhere")
                refused = publish(client, "failing")
                session.execute("ALTER TABLE hookline.elsewhere RENAME TO idempotency")
            assert refused.status_code == 503
            assert (server.stop(), worker.stop()) == (0, 0)
            lines = [line for each in (server, worker) for line in each.lines]
            text = server.stderr + worker.stderr + server.stdout + worker.stdout
    assert "canary" not in text
    assert all({"event", "level", "timestamp"} <= set(line) for line in lines)
    [failed] = [line for line in lines if line["event"] == "request.failed"]
    assert failed["request_id"] == refused.json()["request_id"] == refused.headers["request-id"]
    assert [failed[name] for name in ("method", "path", "status", "code")] == [
        "POST",
        "/v1/events",
        503,
        "unavailable",
    ]
    assert "42P01" in failed["error"]
    [opened] = [line for line in lines if line["event"] == "circuit.opened"]
    assert (opened["endpoint_id"], opened["reason"]) == (failing, "1 failures in a row")
    [disabled] = [line for line in lines if line["event"] == "endpoint.disabled"]
    assert disabled["endpoint_id"] == gone
    died = {line["endpoint_id"]: line["count"] for line in lines if line["event"] == "deliveries.died"}
    assert died == {failing: 1, gone: 1}


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/endpoints"), ("POST", "/v1/events/batch"), ("GET", "/v1/workers")]
)
def test_every_5xx_is_logged_with_its_cause_and_request_id(tmp_path, postgres_server, method, path):
    with (
        postgres_server.fresh_database() as database,
        ServerProcess("--database", database, cwd=tmp_path, env=ENV) as server,
        client_of(server) as client,
        psycopg.connect(database, autocommit=True) as session,
    ):
        for table in ("endpoints", "events", "workers"):
            session.execute(f"ALTER TABLE hookline.{table} RENAME TO {table}_elsewhere")  # type: ignore[arg-type]
        body = {"events": [{"type": "a", "payload": 1}]} if method == "POST" else None
        answer = client.request(method, path, json=body)
        assert answer.status_code == 503
        lines = [line for line in server.lines if line["event"] == "request.failed"]
        assert [line["request_id"] for line in lines] == [answer.headers["request-id"]]
        assert (lines[0]["path"], "does not exist" in lines[0]["error"]) == (path, True)
        server.kill()


WARN = """
import asyncio, sys, threading, warnings, logging
from hookline.cli.server import logs

logs.configure()
warnings.warn("a canary of a library")
logging.getLogger("some.library").warning("%s", "said")

class Broken:
    def __del__(self):
        raise RuntimeError("in cleanup")

Broken()
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()

async def work():
    asyncio.get_running_loop().call_soon(lambda secret: 1 / 0, b"confidential")
    await asyncio.sleep(0)
    await asyncio.sleep(0)

logs.in_loop(work())
raise ValueError("the end")
"""


def test_lines_of_libraries_warnings_and_errors_that_nobody_caught_are_json_too(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WARN], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == [
        "library.logged",
        "library.logged",
        "cleanup.failed",
        "thread.failed",
        "callback.failed",
        "process.failed",
    ]
    assert (lines[1]["logger"], lines[1]["message"]) == ("some.library", "said")
    assert "confidential" not in done.stderr
    assert done.returncode == 1


def test_on_a_terminal_there_is_no_json(tmp_path):
    with Terminal("serve", "--dev", "--port", "0", cwd=tmp_path) as terminal:
        terminal.wait_for("listening on http://")
        terminal.type(b"\x03")
        assert terminal.end() == 0
    assert "hookline has stopped." in terminal.seen
    assert "{" not in terminal.seen
