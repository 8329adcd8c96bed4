"""An answer of hostile bytes can be read everywhere, and is obeyed nowhere."""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from server_process import run
from tests.dashboard.conftest import KEY, Service
from tests.dashboard.site import Site

TURNED = "safe\u202egpj.exe\u2066 \u2028 \x9b31m".encode()
BODY = bytes(range(256)) + TURNED + b"\x1b[2J\x1b]0;pwn\x07</pre><script>alert(1)</script>"
ANSWER = (
    b"HTTP/1.1 500 \xe2\x80\xaeOK\r\nX-Turned: "
    + TURNED
    + b"\r\nX-Bytes: \xff\xfe\x80\r\nX-Tag: </pre><script>alert(1)</script>\r\nX-Turned: twice\r\n"
    + b"X-Many: x\r\n" * 150
    + b"Content-Length: %d\r\n\r\n" % len(BODY)
    + BODY
)
# What a terminal or a page would obey: control characters but tabs and line ends, line separators, marks of direction.
OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")


@contextlib.contextmanager
def hostile_receiver() -> Iterator[str]:
    """The address of a receiver that sends ANSWER to everybody."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    with peer, contextlib.suppress(OSError):
                        peer.settimeout(60)
                        received = b""
                        while b"\r\n\r\n" not in received:
                            received += peer.recv(65_536)
                        peer.sendall(ANSWER)
                        while peer.recv(65_536):
                            pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        listener.shutdown(socket.SHUT_RDWR)  # wakes the thread, which closing alone does not
        thread.join(120)


def test_an_answer_of_hostile_bytes_is_shown_by_the_api_the_page_and_the_command(
    service: Service, site: Site, tmp_path: Path
) -> None:
    with hostile_receiver() as url:
        fields = {
            "url": url,
            "events": ["hostile.answer"],
            "retry": {"schedule": [0, 3_600]},
            "circuit": None,
        }
        endpoint = service.call("POST", "/v1/endpoints", fields)
        event = service.publish("hostile.answer")
        (delivery,) = service.call("GET", f"/v1/events/{event['id']}/deliveries")["data"]
        path = f"/deliveries/{delivery['id']}"
        page = site.until(path, lambda page: "Attempt 1: 500" in page.text)
        service.call("DELETE", f"/v1/endpoints/{endpoint['id']}")
    (attempt,) = service.call("GET", f"/v1{path}/attempts")["data"]
    assert attempt["response_body"] == BODY.decode("utf-8", "replace")
    assert attempt["error"]["kind"] == "http_5xx"
    assert "X-Tag" in attempt["response_headers"] or "x-tag" in attempt["response_headers"]
    assert OBEYED.search(page.html) is None
    assert "<script>alert" not in page.html
    assert '<span class="unseen">\\u202e</span>gpj.exe' in page.html
    for command in (
        ["deliveries", "attempts", delivery["id"]],
        ["deliveries", "attempts", delivery["id"], "--json"],
    ):
        env = {"HOOKLINE_URL": service.url, "HOOKLINE_API_KEY": KEY}
        done = run(*command, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        assert OBEYED.search(done.stdout) is None
        assert "gpj.exe" in done.stdout
