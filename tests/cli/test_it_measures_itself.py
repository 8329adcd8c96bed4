"""Three receivers (fast, slow, failing): figures match the attempts, one alert arrives on every channel and is resolved."""

import http.server
import json
import math
import threading
import time
from collections import defaultdict
from contextlib import contextmanager

import httpx
import pytest

from answering import eventually
from mail_server import PASSWORD, USER, mail_server
from server_process import ServerProcess, run

EVENTS = 120  # to each receiver
SLOW_S = 0.03
ONE_PERCENT = 0.0101


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256  # with the default of 5, a burst of connections counts as failures

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.bodies: dict[str, list] = defaultdict(list)
        self.answers = {"/failing": 500}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/slow":
            time.sleep(SLOW_S)  # what a receiver does with its time
        self.server.bodies[self.path].append(json.loads(body))
        self.send_response(self.server.answers.get(self.path, 200))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def receivers():
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def exact(values: list[float], percent: float) -> float:
    return sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request) -> str:
    return "sqlite:///x.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def test_an_operator_is_told_once_and_the_figures_are_those_of_the_attempts(tmp_path, database):
    with receivers() as received, mail_server(tmp_path, login=True) as mail:
        env = {
            "HOOKLINE_ALERT_EVERY_S": "0.5",
            "HOOKLINE_SMTP_HOST": "127.0.0.1",
            "HOOKLINE_SMTP_PORT": str(mail.port),
            "HOOKLINE_SMTP_USERNAME": USER,
            "HOOKLINE_SMTP_PASSWORD": PASSWORD,
            "HOOKLINE_MAIL_FROM": "hookline@example.com",
            "SSL_CERT_FILE": str(mail.authority),
        }
        with (
            ServerProcess("--dev", "--database", database, cwd=tmp_path, env=env) as server,
            httpx.Client(base_url=server.url, trust_env=False, timeout=120) as client,
        ):
            Story(tmp_path, server, client, received, mail).tell()
            assert server.stop() == 0
            assert PASSWORD not in server.stderr


class Story:
    def __init__(self, folder, server, client, received, mail) -> None:
        self.folder, self.server, self.client = folder, server, client
        self.received, self.mail = received, mail
        self.url = f"http://127.0.0.1:{received.server_port}"

    def tell(self) -> None:
        slack = f"{self.url}/chat"
        self.cli("accounts", "set", "hookline", "--email", "ops@example.com", "--slack", slack)
        self.cli("alerts", "test", "hookline")
        assert self.mail.subjects() == ["[hookline] Test of the alerts for account hookline"]
        assert "This is a test" in self.received.bodies["/chat"][0]["text"]
        self.create("/own", "alert.*", account="hookline")
        fast, slow, failing = (self.create(f"/{name}", name) for name in ("fast", "slow", "failing"))
        for name in ("fast", "slow", "failing"):
            events = [{"type": name, "payload": n} for n in range(EVENTS)]
            assert self.client.post("/v1/events/batch", json={"events": events}).status_code == 202
        self.is_told("Alert", "fired", failing)
        assert run("status", cwd=self.folder, env=self.env).returncode == 1
        self.received.answers["/failing"] = 200
        self.cli("endpoints", "recover", failing, "--no-replay")
        self.is_told("Resolved", "resolved", failing)
        for endpoint in (fast, slow):
            self.figures_match(endpoint, EVENTS)
        alerts = self.client.get("/v1/alerts", params={"kind": "circuit_open"}).json()["data"]
        assert [(each["endpoint_id"], each["state"]) for each in alerts] == [(failing, "resolved")]
        eventually(lambda: run("status", cwd=self.folder, env=self.env).returncode == 0 or None)

    @property
    def env(self) -> dict[str, str]:
        return {"HOOKLINE_URL": self.server.url}

    def cli(self, *arguments: str) -> str:
        result = run(*arguments, cwd=self.folder, env=self.env)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def create(self, path: str, events: str, **fields) -> str:
        given = {
            "circuit": {"consecutive_failures": 3},
            "retry": {"schedule": [0, 1, *[60] * 9], "jitter": "none"},
        }
        body = {"url": self.url + path, "events": [events], **given, **fields}
        answer = self.client.post("/v1/endpoints", json=body)
        assert answer.status_code == 201, answer.text
        id: str = answer.json()["id"]
        return id

    def is_told(self, word: str, verb: str, endpoint: str) -> None:
        """Once by mail, once by chat, once as an own event."""

        def own():
            return [each for each in self.received.bodies["/own"] if each["type"] == f"alert.{verb}"]

        def mails():
            return [each for each in self.mail.messages if each["Subject"].startswith(f"[hookline] {word}:")]

        def chats():
            return [each for each in self.received.bodies["/chat"] if each["text"].startswith(f"*{word}:")]

        eventually(lambda: (own() and mails() and chats()) or None)
        assert [len(own()), len(mails()), len(chats())] == [1, 1, 1]
        [told] = own()
        assert (told["data"]["kind"], told["data"]["endpoint_id"]) == ("circuit_open", endpoint)
        assert endpoint in mails()[0].get_content()
        assert self.mail.was_encrypted[-1]

    def figures_match(self, endpoint: str, number: int) -> None:
        def stats():
            found = self.client.get(f"/v1/endpoints/{endpoint}/stats").json()
            return found if found["samples"] == number else None

        found = eventually(stats)
        durations = self.durations(endpoint)
        assert len(durations) == number
        assert (found["success_rate"], found["by_status"]) == (1.0, {"200": number})
        for percent in (50, 95, 99):
            wanted = exact(durations, percent)
            # An attempt shows microseconds.
            assert abs(found[f"p{percent}_ms"] - wanted) <= wanted * ONE_PERCENT + 0.001
        mean = sum(durations) / number
        assert abs(found["mean_ms"] - mean) <= mean * ONE_PERCENT + 0.001

    def durations(self, endpoint: str) -> list[float]:
        found, cursor = [], None
        while True:
            params = {"limit": 200, **({"cursor": cursor} if cursor else {})}
            page = self.client.get(f"/v1/endpoints/{endpoint}/deliveries", params=params).json()
            for delivery in page["data"]:
                attempts = self.client.get(f"/v1/deliveries/{delivery['id']}/attempts").json()["data"]
                found += [each["duration_ms"] for each in attempts]
            cursor = page["next_cursor"]
            if cursor is None:
                return found
