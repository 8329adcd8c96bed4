"""Several server processes run under one parent."""

import contextlib
import json
import os
import re
import signal
import socket
import ssl
from collections.abc import Iterator

import httpx
import psutil
import pytest

from answering import eventually, receiving
from hookline.cli.server.processes import Parent
from hookline.clock import SystemClock
from scraping import Figures, figures
from server_process import CEILING_S, ServerProcess, run
from slow_receiver import Slow, serving

CONTEXT = (
    ssl.create_default_context()
)  # one for all: each client would load the CA certificates itself, which takes longer than its requests
# What each has under way soon shows. No test waits for the end of a drain.
QUICK = {"HOOKLINE_HEARTBEAT_S": "0.2", "HOOKLINE_DRAIN_S": "1800"}
# Only where one dies: on a busy machine a live process can be silent for a second, and is then taken for dead.
IMPATIENT = {"HOOKLINE_TAKEOVER_S": "1"}


def several(database: str, tmp_path, *, count: int = 2, dev: bool = True, env=None) -> ServerProcess:
    flags = ["--dev"] if dev else []
    return ServerProcess(
        *flags, "--database", database, "--processes", str(count), cwd=tmp_path, env={**QUICK, **(env or {})}
    )


def children(process: ServerProcess) -> list[psutil.Process]:
    return psutil.Process(process.process.pid).children(recursive=True)


def ask(process: ServerProcess, method: str, path: str, body=None, **headers: str) -> httpx.Response:
    """Send a request on its own connection, which any of the processes may accept."""
    with httpx.Client(base_url=process.url, trust_env=False, timeout=30, verify=CONTEXT) as client:
        return client.request(method, path, json=body, headers=headers)


def workers(process: ServerProcess) -> dict[int, dict]:
    return {each["pid"]: each for each in ask(process, "GET", "/v1/workers").json()["data"]}


def publish(process: ServerProcess, n: int) -> str | None:
    """The event's id once it is accepted; None when the process that accepted the connection died."""
    event = {"type": f"t{n}", "payload": n, "idempotency_key": f"key-{n}"}
    try:
        answer = ask(process, "POST", "/v1/events", event)
    except httpx.TransportError:
        return None
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def add_endpoints(process: ServerProcess, url: str, count: int) -> None:
    for n in range(count):
        endpoint = {"url": f"{url}/200/{n}", "events": [f"t{n}"], "timeout_ms": 60_000}
        assert ask(process, "POST", "/v1/endpoints", endpoint).status_code == 201


@pytest.fixture
def slow() -> Iterator[Slow]:
    with serving(Slow()) as server:
        yield server


def busy_on_both(process: ServerProcess, slow: Slow) -> list[str]:
    """Publish, each time for another endpoint, until both processes have requests under way."""
    events: list[str] = []

    def both() -> bool | None:
        n = len(events)
        endpoint = {"url": f"{slow.url}/{n}", "events": [f"t{n}"], "timeout_ms": 60_000}
        assert ask(process, "POST", "/v1/endpoints", endpoint).status_code == 201
        event = publish(process, n)
        assert event is not None
        events.append(event)
        found = workers(process).values()
        return True if len(found) == 2 and all(each["in_flight"] for each in found) else None

    eventually(both)
    eventually(lambda: len(slow.events) == len(events) or None)
    return events


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:
        pass  # closed at this moment: the next try is refused
    return True


def test_all_of_them_answer_and_deliver(tmp_path, postgres_url):
    with receiving() as receiver, several(postgres_url, tmp_path, count=3) as process:
        [said] = process.messages
        assert re.fullmatch(
            r"hookline \S+ listening on http://127\.0\.0\.1:\d+ with 3 processes \(development mode: .*\) - dashboard: http\S+",
            said,
        )
        pids = {child.pid for child in children(process)}
        assert len(pids) == 3
        assert workers(process).keys() == pids
        add_endpoints(process, receiver.url, 40)
        for n in range(40):
            assert publish(process, n) is not None
        eventually(lambda: len(receiver.requests) >= 40 or None)

        def spread() -> bool | None:
            found = workers(process)
            return True if sum(each["lanes"] for each in found.values()) == 40 else None

        eventually(spread)
        assert sorted(each.body for each in receiver.requests) == sorted(b"%d" % n for n in range(40))
        assert process.stop() == 0


def test_one_that_is_killed_is_started_again_and_loses_nothing(tmp_path, postgres_url):
    with receiving() as receiver, several(postgres_url, tmp_path, env=IMPATIENT) as process:
        add_endpoints(process, receiver.url, 20)
        accepted = [publish(process, n) for n in range(20)]

        def an_owner() -> int | None:
            return next((pid for pid, worker in workers(process).items() if worker["lanes"]), None)

        victim = eventually(an_owner)
        before = {child.pid for child in children(process)}
        psutil.Process(victim).kill()
        # Its lanes get new work while nobody owns them.
        again = {}
        for n in range(20):
            event = {"type": f"t{n}", "payload": 100 + n, "idempotency_key": f"again-{n}"}
            while n not in again:
                with contextlib.suppress(httpx.TransportError):
                    again[n] = ask(process, "POST", "/v1/events", event).json()["id"]
        wanted = {*accepted, *again.values()}
        eventually(lambda: wanted <= {each.event_id for each in receiver.requests} or None)
        eventually(lambda: len(children(process)) == 2 or None)
        assert victim not in {child.pid for child in children(process)}
        assert len(before & {child.pid for child in children(process)}) == 1
        lines = [json.loads(line) for line in process.stderr.splitlines() if "process.died" in line]
        [line] = lines
        assert (line["pid"], line["signal"], line["restart_in_s"]) == (victim, "SIGKILL", 0.1)
        eventually(lambda: workers(process).keys() == {child.pid for child in children(process)} or None)
        assert process.stop() == 0


@pytest.mark.parametrize("to_all", [False, True], ids=["to the parent", "to the whole group"])
def test_a_signal_drains_all_of_them(tmp_path, postgres_url, slow, to_all):
    with several(postgres_url, tmp_path) as process:
        events = busy_on_both(process, slow)
        family = children(process)
        if to_all:  # as terminals and service managers do
            for child in family:
                child.send_signal(signal.SIGINT)
        process.send(signal.SIGINT)
        eventually(lambda: not accepts(process.port) or None)
        assert process.process.poll() is None
        assert all(child.is_running() for child in family)
        slow.release.set()
        assert process.wait() == 0
        assert not any(child.is_running() for child in family)
        assert process.messages[1:] == [
            "hookline is stopping 2 processes; a second signal stops them at once.",
            "hookline has stopped.",
        ]
    assert sorted(slow.events) == sorted(events)  # nothing was sent twice
    with several(postgres_url, tmp_path) as process:
        assert workers(process).keys() == {child.pid for child in children(process)}
        for event in events:
            assert ask(process, "GET", f"/v1/events/{event}").json()["deliveries"]["delivered"] == 1


def test_a_signal_that_comes_after_the_parent_let_go_is_no_second_one(tmp_path, postgres_url, slow):
    with several(postgres_url, tmp_path) as process:
        events = busy_on_both(process, slow)
        family = children(process)
        process.send(signal.SIGINT)
        eventually(lambda: not accepts(process.port) or None)  # so the parent has let go of both
        for child in family:
            child.send_signal(signal.SIGINT)
        slow.release.set()
        assert process.wait() == 0
    assert sorted(slow.events) == sorted(events)
    with several(postgres_url, tmp_path) as process:
        for event in events:
            assert ask(process, "GET", f"/v1/events/{event}").json()["deliveries"]["delivered"] == 1


def test_one_that_answers_after_the_signal_is_not_greeted():
    greeted: list[bool] = []
    parent = Parent(
        1,
        SystemClock(),
        prepare=lambda: None,
        serve=lambda child: True,
        on_up=lambda: greeted.append(True),
        on_leave=lambda: None,
        within=CEILING_S,
    )
    parent._signals = 1  # the signal came while the child was at work
    parent._places[0].pid = os.getpid()
    parent._hear(os.getpid().to_bytes(4))
    assert greeted == []


def test_processes_that_could_not_finish_in_time_end_with_1(tmp_path, postgres_url, slow):
    with several(postgres_url, tmp_path, env={"HOOKLINE_DRAIN_S": "0.1"}) as process:
        busy_on_both(process, slow)
        assert process.stop() == 1
        assert process.messages[-1].startswith("hookline has stopped before all requests were answered")


def test_a_second_signal_ends_them_at_once(tmp_path, postgres_url, slow):
    with several(postgres_url, tmp_path) as process:
        busy_on_both(process, slow)
        family = children(process)
        process.send(signal.SIGTERM)
        eventually(lambda: not accepts(process.port) or None)
        process.send(signal.SIGTERM)
        assert process.wait() == 1  # long before the end of the drain
        assert not any(child.is_running() for child in family)
        assert process.messages[-1].startswith("hookline has stopped before all requests were answered")


def test_no_process_outlives_a_parent_that_is_killed(tmp_path, postgres_url):
    with several(postgres_url, tmp_path) as process:
        family = children(process)
        assert len(family) == 2
        process.kill()
        _, alive = psutil.wait_procs(family, timeout=CEILING_S)
        assert alive == []
        assert not accepts(process.port)


def test_an_empty_database_is_brought_up_and_gets_one_first_key(tmp_path, postgres_server):
    name = postgres_server.create_database()
    try:
        with several(postgres_server.url(name), tmp_path, count=3, dev=False) as process:
            key = process.stdout.strip()
            for _ in range(10):
                assert ask(process, "GET", "/v1/workers", authorization=f"Bearer {key}").status_code == 200
            assert len(ask(process, "GET", "/v1/keys", authorization=f"Bearer {key}").json()["data"]) == 1
            assert process.stop() == 0
    finally:
        postgres_server.drop_database(name)


def test_what_keeps_them_from_starting_is_said_once(tmp_path, postgres_url):
    flags = ("--database", postgres_url, "--processes", "3", "--port", "0", "--dev")
    sealed = {"HOOKLINE_SECRET_KEY": "a" * 32}
    with ServerProcess("--dev", "--database", postgres_url, cwd=tmp_path, env=sealed) as process:
        assert process.stop() == 0
    wrong = run("serve", *flags, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": "b" * 32})
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    away = run(
        "serve", "--processes", "2", "--database", "postgresql://me:canary@127.0.0.1:1/x", cwd=tmp_path
    )
    assert (away.returncode, away.stderr.count("\n"), "canary" in away.stderr) == (3, 1, False)


def test_a_port_that_is_taken_is_said_before_anything_is_started(tmp_path, postgres_url):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        flags = ("--database", postgres_url, "--processes", "2", "--port", str(taken.getsockname()[1]))
        result = run("serve", "--dev", *flags, cwd=tmp_path)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "cannot listen" in result.stderr


def scraped(port: int) -> Figures:
    with httpx.Client(trust_env=False, timeout=CEILING_S, verify=CONTEXT) as client:
        return figures(client.get(f"http://127.0.0.1:{port}/metrics").text)


def test_the_metrics_of_each_process_are_on_a_port_of_its_own(tmp_path, postgres_url):
    env = {"HOOKLINE_METRICS_PORT": "0"}
    with receiving() as receiver, several(postgres_url, tmp_path, count=3, env=env) as process:
        [ports] = [line["metrics_ports"] for line in process.lines if line["event"] == "server.started"]
        assert len(set(ports)) == 3
        assert process.port not in ports
        add_endpoints(process, receiver.url, 30)
        for n in range(30):
            assert publish(process, n) is not None

        def all_of(name: str) -> float:
            return sum(scraped(port)[name] for port in ports)

        delivered = 'hookline_deliveries_total{outcome="delivered"}'
        eventually(lambda: all_of(delivered) == 30 or None)
        assert all_of("hookline_publish_seconds_count") == 30
        assert all_of("hookline_end_to_end_seconds_count") == 30
        began = [scraped(port)["process_start_time_seconds"] for port in ports]
        children(process)[-1].kill()

        def replaced() -> int | None:
            try:
                now = [scraped(port)["process_start_time_seconds"] for port in ports]
            except httpx.TransportError:
                return None
            return sum(here != before for here, before in zip(now, began, strict=True)) or None

        assert eventually(replaced) == 1, "the one that replaces it has its port, and the others keep theirs"
        assert process.stop() == 0


def test_a_single_process_has_a_port_for_its_metrics_too(tmp_path):
    with ServerProcess("--dev", cwd=tmp_path, env={"HOOKLINE_METRICS_PORT": "0"}) as process:
        [[port]] = [line["metrics_ports"] for line in process.lines if line["event"] == "server.started"]
        eventually(lambda: scraped(port)["hookline_ready"] == 1 or None)
        assert process.stop() == 0


def test_a_port_for_metrics_that_is_taken_is_said_before_anything_is_started(tmp_path, postgres_url):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = ("--database", postgres_url, "--port", "0")
        result = run("serve", "--dev", *flags, cwd=tmp_path, env={"HOOKLINE_METRICS_PORT": str(port)})
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert f"port {port} (--host, HOOKLINE_METRICS_PORT)" in result.stderr


def test_a_port_for_metrics_that_leaves_none_for_the_others_is_refused(tmp_path, postgres_url):
    flags = ("--database", postgres_url, "--processes", "3")
    result = run("serve", "--dev", *flags, cwd=tmp_path, env={"HOOKLINE_METRICS_PORT": "65534"})
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "leaves no port for each of the 3 processes" in result.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--processes", "2"), "--processes: 2 processes need PostgreSQL; an SQLite file is served by one."),
        (("--processes", "0"), "a whole number from 1 to 64"),
        (("--processes", "many"), "a whole number from 1 to 64"),
    ],
)
def test_numbers_that_will_not_do_are_refused(tmp_path, flags, said):
    result = run("serve", "--dev", *flags, cwd=tmp_path)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []
