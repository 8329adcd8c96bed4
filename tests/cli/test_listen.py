"""What the local receiver shows, answers and forwards."""

import contextlib
import http.client
import http.server
import re
import signal
import socket
import subprocess
import threading
import time

import httpx
import pytest

from answering import eventually, receiving
from hookline.crypto.signing import Mac, key_of, sign_classic, sign_standard
from hookline.model import Signing
from listener_process import ListenerProcess
from server_process import CEILING_S, COMMAND, ServerProcess, environment, run
from terminal import Terminal

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"id":  42}'


def standard(event: str = "evt_1", body: bytes = BODY, secret: str = SECRET) -> dict[str, str]:
    now = int(time.time())
    return {
        "webhook-id": event,
        "webhook-timestamp": str(now),
        "webhook-signature": sign_standard(Mac(key_of(secret, Signing.STANDARD)), event, now, body),
        "webhook-event": "order.paid",
        "webhook-attempt": "1",
    }


def classic(event: str = "evt_1", body: bytes = BODY, secret: str = SECRET) -> dict[str, str]:
    signature = sign_classic(Mac(key_of(secret, Signing.CLASSIC)), body)
    return {"x-event-id": event, "x-webhook-signature": signature, "x-webhook-event": "order.paid"}


def post(url: str, headers: dict[str, str], body: bytes = BODY) -> httpx.Response:
    return httpx.post(url, content=body, headers=headers, trust_env=False, timeout=CEILING_S)


def port_of(ear: ListenerProcess) -> int:
    return int(ear.url.rstrip("/").rpartition(":")[2])


def test_it_registers_itself_shows_what_arrives_and_leaves_nothing_behind(tmp_path):
    with ServerProcess("--dev", cwd=tmp_path) as server:
        env = {"HOOKLINE_URL": server.url}
        with (
            ListenerProcess(
                "--register", "--event", "order.*", "--account", "acme", cwd=tmp_path, env=env
            ) as ear,
            httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
        ):
            (endpoint,) = client.get("/v1/endpoints").json()["data"]
            assert (endpoint["url"], endpoint["events"], endpoint["account"]) == (
                ear.url,
                ["order.*"],
                "acme",
            )
            event = run(
                "send", "order.paid", '{"id":  42}', "--account", "acme", cwd=tmp_path, env=env
            ).stdout.strip()
            shown = ear.shown()
            assert (shown["event_id"], shown["event_type"], shown["attempt"]) == (event, "order.paid", "1")
            assert shown["signature"] == {"is_good": True, "detail": ""}
            assert (shown["method"], shown["path"], shown["body"]) == ("POST", "/", '{"id":  42}')
            assert shown["status"] == 200
            states = {"pending": 0, "delivered": 1, "dead": 0, "cancelled": 0}
            eventually(lambda: client.get(f"/v1/events/{event}").json()["deliveries"] == states or None)
            assert ear.end() == 0
            assert client.get("/v1/endpoints").json()["data"] == []
            assert ear.said.splitlines()[-2:] == [f"{endpoint['id']} is deleted.", "1 request."]
        assert server.stop() == 0


def test_both_styles_are_checked_and_what_is_not_signed_is_refused(tmp_path):
    (tmp_path / "secret").write_text(SECRET)
    with ListenerProcess("--secret-file", "secret", cwd=tmp_path) as ear:
        for headers in (standard(), classic()):
            assert post(ear.url, headers).status_code == 200
            assert ear.shown()["signature"]["is_good"]
        assert post(ear.url, standard(body=b"{}")).status_code == 401
        assert "does not match" in ear.shown()["signature"]["detail"]
        assert post(ear.url, {}).status_code == 401
        assert "no header webhook-id" in ear.shown()["signature"]["detail"]
        twice = [*standard().items(), ("webhook-id", "evt_2")]
        assert (
            httpx.post(ear.url, content=BODY, headers=twice, trust_env=False, timeout=30).status_code == 401
        )
        assert "more than once" in ear.shown()["signature"]["detail"]
        assert ear.end(signal.SIGTERM) == 0


def test_without_a_secret_nothing_is_checked_and_that_is_said(tmp_path):
    with ListenerProcess(cwd=tmp_path) as ear:
        assert "signatures are not checked" in ear.said
        assert post(ear.url + "any/path?x=1", {}, b"\xff\x00").status_code == 200
        shown = ear.shown()
        assert (shown["signature"], shown["path"], shown["body_base64"]) == (None, "/any/path?x=1", "/wA=")
        assert httpx.head(ear.url, trust_env=False, timeout=30).status_code == 200
        assert ear.end() == 0


def test_the_first_requests_of_each_event_can_fail(tmp_path):
    with ListenerProcess("--fail-first", "2", cwd=tmp_path) as ear:
        answers = [post(ear.url, standard(event)).status_code for event in ("a", "b", "a", "a", "b", "b")]
        assert answers == [503, 503, 503, 200, 503, 200]


@pytest.mark.parametrize("status", [204, 301, 503])
def test_it_answers_with_the_status_it_was_told(tmp_path, status):
    with ListenerProcess("--secret", SECRET, "--status", str(status), cwd=tmp_path) as ear:
        assert [post(ear.url, headers).status_code for headers in (standard(), {})] == [status, status]


def test_it_answers_as_late_as_it_was_told(tmp_path):
    with ListenerProcess("--delay", "700ms", cwd=tmp_path) as ear:
        began = time.monotonic()
        assert post(ear.url, {}).status_code == 200
        assert time.monotonic() - began >= 0.7


def test_a_delay_does_not_hold_up_the_end(tmp_path):
    with ListenerProcess("--delay", "10m", cwd=tmp_path) as ear, socket.socket() as connection:
        connection.connect(("127.0.0.1", port_of(ear)))
        connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        assert ear.end() == 0


def test_requests_are_passed_on_with_their_bytes_and_the_answer_comes_back(tmp_path):
    with (
        receiving() as receiver,
        ListenerProcess("--forward", f"{receiver.url}/418/x", "--secret", SECRET, cwd=tmp_path) as ear,
    ):
        assert post(ear.url, standard()).status_code == 418
        (passed,) = receiver.at("/418/x")
        assert (passed.body, passed.event_id) == (BODY, "evt_1")
        shown = ear.shown()
        assert (shown["status"], shown["forwarded"]["status"]) == (418, 418)
        # A request that is not signed is not forwarded.
        assert post(ear.url, {}).status_code == 401
        assert len(receiver.requests) == 1


class _Other(http.server.BaseHTTPRequestHandler):
    """An application of another kind: it keeps what it gets as it stands, and answers with headers of its own."""

    def do_PUT(self) -> None:
        self.server.got = self.headers.items(), self.rfile.read(int(self.headers["content-length"]))
        self.send_response_only(429)
        for name, value in ANSWERED:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"\x1f\x8b\x00")

    def log_message(self, *args: object) -> None:
        pass


ANSWERED = [("Retry-After", "7"), ("Content-Encoding", "gzip"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]


def test_headers_are_passed_on_as_they_stand_in_both_directions(tmp_path):
    sent = [("X-Two", "1"), ("X-Two", "2"), ("Accept-Encoding", "gzip"), ("X-Odd", "caf\u00e9 \t!")]
    with http.server.HTTPServer(("127.0.0.1", 0), _Other) as other:
        thread = threading.Thread(target=other.handle_request)
        thread.start()
        with ListenerProcess("--forward", f"http://127.0.0.1:{other.server_port}/x", cwd=tmp_path) as ear:
            connection = http.client.HTTPConnection("127.0.0.1", port_of(ear), timeout=CEILING_S)
            connection.putrequest("PUT", "/", skip_accept_encoding=True)
            for name, value in (*sent, ("content-length", "2")):
                connection.putheader(name, value)
            connection.endheaders(b"\xff\x00")
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (429, b"\x1f\x8b\x00")
            own = ("server", "date", "content-length")
            assert [each for each in answer.getheaders() if each[0].lower() not in own] == ANSWERED
            connection.close()
        thread.join()
        headers, body = other.got
    assert body == b"\xff\x00"
    assert [each for each in headers if each[0].lower() not in ("host", "content-length")] == sent


def test_a_receiver_that_does_not_answer_is_a_bad_gateway(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{closed.getsockname()[1]}"
        with ListenerProcess("--forward", f"http://{place}/", cwd=tmp_path) as ear:
            assert post(ear.url, {}).status_code == 502
            shown = ear.shown()
            assert (shown["status"], shown["forwarded"]["status"]) == (502, None)
            assert place in shown["forwarded"]["detail"]
        with Terminal("listen", "--port", "0", "--forward", f"http://{place}/", cwd=tmp_path) as terminal:
            terminal.wait_for("/;")
            url = terminal.seen.partition("listening on ")[2].split(";")[0]
            assert post(url, {}).status_code == 502
            said = f"not forwarded: cannot reach {place}: Connection refused;  \x1b[33manswered 502"
            terminal.wait_for(said)
            terminal.type(b"\x03")
            assert terminal.end() == 0


def test_it_ends_by_itself_after_so_many(tmp_path):
    with ListenerProcess("--count", "2", cwd=tmp_path) as ear:
        assert [post(ear.url, {}).status_code for _ in range(2)] == [200, 200]
        assert ear.wait() == 0
        assert ear.said.endswith("2 requests.\n")


def test_it_ends_when_it_cannot_show_what_arrives(tmp_path):
    said = tmp_path / "stderr"
    with open("/dev/full", "wb") as full, said.open("wb") as errors:
        ear = subprocess.Popen(
            [*COMMAND, "listen", "--port", "0"], cwd=tmp_path, env=environment(), stdout=full, stderr=errors
        )
    try:
        listening = eventually(lambda: re.search(r"listening on (http://\S+/);", said.read_text()))
        with contextlib.suppress(httpx.TransportError):  # it may be gone before it has answered
            post(listening[1], {})
        assert ear.wait(CEILING_S) == 1
    finally:
        ear.kill()
        ear.wait(CEILING_S)
    last = said.read_text().splitlines()[-1]
    assert last == "hookline: standard output cannot be written to: No space left on device."


def test_what_it_cannot_read_is_refused(tmp_path):
    with ListenerProcess(cwd=tmp_path) as ear:
        chunked = httpx.post(ear.url, content=iter([b"{}"]), trust_env=False, timeout=30)
        assert chunked.status_code == 411
        with socket.create_connection(("127.0.0.1", port_of(ear)), timeout=CEILING_S) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\n")
            assert connection.recv(65_536).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--forward", "localhost:3000"], 2, "--forward"),
        (["--forward", "http://user:canary@localhost/"], 2, "--forward"),
        (["--event", "*"], 2, "--register"),
        (["--secret-file", "nowhere"], 2, "nowhere"),
        (["--secret-file", "/dev/null"], 2, "--secret"),
        (["--secret", "short"], 2, "--secret"),
        (["--secret", "whsec_nobase64, and with blanks"], 2, "--secret"),
        (["--secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS"], 2, "padded base64"),
        (["--host", "192.0.2.1"], 1, "cannot listen"),
    ],
)
def test_what_will_not_do_is_said_at_once(tmp_path, arguments, code, words):
    result = run("listen", "--port", "0", *arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (code, "")
    assert result.stderr.startswith("hookline: ")
    assert words in result.stderr


def test_a_port_in_use_is_a_failure(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("listen", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert (result.returncode, "cannot listen" in result.stderr) == (1, True)
    assert "Is a receiver running already? --port 0 takes any free port." in result.stderr


def test_a_request_to_end_that_comes_twice_ends_it_in_order(tmp_path):
    with ListenerProcess(cwd=tmp_path) as ear:
        ear.process.send_signal(
            signal.SIGSTOP
        )  # while it stands still, signals gather: both are there at once
        ear.process.send_signal(signal.SIGINT)
        ear.process.send_signal(signal.SIGTERM)
        assert ear.end(signal.SIGCONT) == 0
        assert ear.said.splitlines()[-1] == "0 requests."


def test_a_person_sees_colours_and_no_control_characters_and_ends_it_with_ctrl_c(tmp_path):
    arguments = ("listen", "--port", "0", "--headers", "--secret", SECRET)
    with Terminal(*arguments, cwd=tmp_path) as terminal:
        terminal.wait_for("/\r\n")
        url = terminal.seen.partition("listening on ")[2].split()[0]
        assert post(url, standard(body=b'"\x1b[2J"'), b'"\x1b[2J"').status_code == 200
        terminal.wait_for("[2J")
        assert "\x1b[32msignature ok\x1b[0m" in terminal.seen
        assert "  webhook-event: order.paid" in terminal.seen
        assert "\x1b[2J" not in terminal.seen
        terminal.type(b"\x03")
        assert terminal.end() == 0
        assert terminal.seen.endswith("1 request.\r\n")
        assert "Traceback" not in terminal.seen
