"""The server process starts, serves and ends as it should."""

import signal
import socket
import sqlite3
import threading
import time

import httpx

from server_process import ServerProcess

KEY = {"HOOKLINE_API_KEY": "hlk_the_key_of_these_tests"}
PATIENT = {"HOOKLINE_DRAIN_S": "1800"}  # longer than any test takes


class Receiver:
    """Accepts one request at a time and answers when the test says so."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.arrived = threading.Event()
        self.release = threading.Event()
        self.requests = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                while connection.recv(65_536):
                    self.requests += 1
                    self.arrived.set()
                    self.release.wait(120)
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    def close(self) -> None:
        self.release.set()
        # Closing alone does not wake a thread that waits in accept().
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(30)


def publish(process: ServerProcess, receiver: Receiver) -> str:
    with httpx.Client(base_url=process.url, trust_env=False, timeout=30) as client:
        endpoint = {"url": f"http://127.0.0.1:{receiver.port}/", "events": ["*"], "timeout_ms": 60_000}
        assert client.post("/v1/endpoints", json=endpoint).status_code == 201
        answer = client.post("/v1/events", json={"type": "a", "payload": 1})
        assert answer.status_code == 202
        return str(answer.json()["id"])


def test_it_says_where_it_listens_and_in_which_mode(tmp_path):
    with ServerProcess("--dev", cwd=tmp_path) as process:
        assert process.messages == [
            f"hookline 0.1.0 listening on http://127.0.0.1:{process.port} "
            "(development mode: loopback only, no key needed, private networks allowed) "
            f"- dashboard: http://127.0.0.1:{process.port}/"
        ]
        assert process.stop() == 0
    with ServerProcess(cwd=tmp_path, env=KEY) as process:
        url = f"http://127.0.0.1:{process.port}"
        assert process.messages == [f"hookline 0.1.0 listening on {url} - dashboard: {url}/"]
        assert process.stop() == 0


def test_it_listens_on_ipv6_too(tmp_path):
    with ServerProcess("--dev", "--host", "::1", cwd=tmp_path) as process:
        assert httpx.get(f"{process.url}/healthz", trust_env=False, timeout=30).status_code == 200
        assert process.stop() == 0


def test_both_signals_stop_it_cleanly(tmp_path):
    for number in (signal.SIGTERM, signal.SIGINT):
        with ServerProcess("--dev", cwd=tmp_path) as process:
            process.send(number)
            assert process.wait() == 0
            assert process.messages[1:] == [
                "hookline is stopping; no request is in flight.",
                "hookline has stopped.",
            ]


def test_a_stopping_server_finishes_what_is_under_way_and_accepts_no_more(tmp_path):
    receiver = Receiver()
    with ServerProcess("--dev", "--database", "sqlite:///x.db", cwd=tmp_path) as process:
        publish(process, receiver)
        assert receiver.arrived.wait(120)
        process.send(signal.SIGTERM)
        deadline = time.monotonic() + 120
        while accepts(process.port):
            assert time.monotonic() < deadline
        assert process.process.poll() is None
        receiver.release.set()
        assert process.wait() == 0
        assert process.messages[1:] == [
            "hookline is stopping: waiting up to 30 s for 1 request in flight; a second signal stops it at once.",
            "hookline has stopped.",
        ]
    receiver.close()
    with sqlite3.connect(tmp_path / "x.db") as connection:
        states = connection.execute("SELECT state, attempts FROM deliveries").fetchall()
    connection.close()
    assert states == [("delivered", 1)]
    assert receiver.requests == 1


def test_a_second_signal_ends_it_at_once(tmp_path):
    receiver = Receiver()
    with ServerProcess("--dev", cwd=tmp_path, env=PATIENT) as process:
        publish(process, receiver)
        assert receiver.arrived.wait(120)
        process.send(signal.SIGTERM)
        deadline = time.monotonic() + 120
        while accepts(process.port):
            assert time.monotonic() < deadline
        process.send(signal.SIGTERM)
        assert process.wait() == 1
    receiver.close()


def test_what_was_accepted_is_delivered_after_a_kill(tmp_path):
    receiver = Receiver()
    with ServerProcess("--dev", "--database", "sqlite:///x.db", cwd=tmp_path) as process:
        event = publish(process, receiver)
        assert receiver.arrived.wait(120)
        process.kill()
    receiver.release.set()
    with (
        ServerProcess("--dev", "--database", "sqlite:///x.db", cwd=tmp_path) as process,
        httpx.Client(base_url=process.url, trust_env=False, timeout=30) as client,
    ):
        deadline = time.monotonic() + 120
        while client.get(f"/v1/events/{event}").json()["deliveries"]["delivered"] != 1:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert process.stop() == 0
    receiver.close()


def test_log_lines_are_json_without_a_terminal(tmp_path):
    receiver = Receiver()
    env = {"HOOKLINE_DRAIN_S": "0.1"}
    with ServerProcess("--dev", cwd=tmp_path, env=env) as process:
        publish(process, receiver)
        assert receiver.arrived.wait(120)
        assert process.stop() == 1  # something was left
        started, stopping, undrained, stopped = process.lines
    receiver.close()
    assert (started["event"], started["url"], started["dev"]) == ("server.started", process.url, True)
    assert (stopping["event"], stopping["in_flight"]) == ("process.stopping", 1)
    assert "waiting up to 0.1 s for 1 request in flight" in stopping["message"]
    assert undrained["event"] == "worker.undrained"
    assert {"level", "timestamp", "in_flight"} <= set(undrained)
    assert (stopped["event"], stopped["drained"]) == ("process.stopped", False)
    assert "the rest is sent again" in stopped["message"]


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:
        pass  # closed at this moment: the next try is refused
    return True
