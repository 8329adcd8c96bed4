"""Tries every URL of the corpus on a real server inside a namespace, and writes what became of each.

It is the program that runs in the namespace (`python -m tests.security.egress_trial FOLDER`). The server has its default
settings. The environment names proxies and there is a .netrc, as on many machines: both lead to the canary. A URL
that the API refuses is written into the database by hand, so that the check before each connection stands alone.
"""

import http.client
import json
import os
import socket
import sqlite3
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trustme

from security.canary import RECEIVER, Canary
from security.name_server import Trouble
from security.namespace import connections_begun, own_every_address, put_over
from server_process import CEILING_S, ServerProcess, run

CORPUS = Path(__file__).parents[1] / "corpus" / "bad-input.jsonl"
CASES = {row["id"]: row for row in map(json.loads, CORPUS.read_text().splitlines()) if row["area"] == "url"}
LITERAL = [f"U{number:02}" for number in range(1, 84)]  # their input is the URL itself
NAMED = [f"U{number:02}" for number in range(84, 92)]  # their input begins with the URL
URLS = {id: CASES[id]["input"] for id in LITERAL} | {id: CASES[id]["input"].partition(" ")[0] for id in NAMED}
CODES = (301, 302, 303, 307, 308)
REBOUND = 100  # names that point inside from their second lookup on
AT_ONCE = 4  # commands
LOST = ("silent", "failing", "cut-off", "unknown")  # how lookups of names end
OF_EACH = 25
PROXY, SOCKS = "http://10.1.1.1:3128", "socks5h://10.1.1.1:1080"
KEY = "egress-trial-key"
ONCE = {"schedule": [0], "jitter": "none"}
TWICE = {"schedule": [0, 6], "jitter": "none"}  # the second after a name's answer is forgotten
OWN_PORT = 18_081
# Where a request would arrive if a guard failed; each is tried before there is anything to guard.
WITHIN_REACH = (
    ("127.0.0.1", 80),
    ("10.0.0.1", 80),
    ("172.16.0.1", 8080),
    ("192.168.0.1", 80),
    ("100.64.0.1", 80),
    ("100.100.100.200", 80),
    ("169.254.169.254", 80),
    ("192.0.0.192", 80),
    ("198.18.0.1", 80),
    ("10.1.1.1", 3128),
    ("10.1.1.1", 1080),
    ("127.0.0.1", 6379),
    ("::1", 80),
    ("fd00:ec2::254", 80),
    ("::ffff:169.254.169.254", 80),
    ("64:ff9b::a9fe:a9fe", 80),
    ("64:ff9b:1::7f00:1", 80),
    ("2002:7f00:1::", 80),
    ("2001:0:7f00:1::", 80),
    ("2001:db8::1", 443),
    ("fec0::1", 80),
)
ZONE: dict[str, Any] = {
    "hooks.example.com": [RECEIVER],
    "xn--bcher-kva.example": [RECEIVER],
    "localhost": ["127.0.0.1", "::1"],
    "foo.localhost": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "postgres": ["10.0.0.5"],
    "rebind.test": lambda times: [RECEIVER] if times == 0 else ["127.0.0.1"],
    "*.rebind.test": lambda times: [RECEIVER] if times == 0 else ["127.0.0.1"],
    "mixed.test": [RECEIVER, "10.0.0.1"],
    "cname.test": "metadata.google.internal",
    "aaaa.test": ["::ffff:127.0.0.1"],
    "v6only.test": ["64:ff9b::7f00:1"],
    "redir.test": [RECEIVER],
    "redir2.test": [RECEIVER],
    "hookline-self.test": ["127.0.0.1"],
    "own-public.test": ["93.184.216.40"],
    "turned.test": ["127.0.0.1"],
    "*.silent.test": Trouble.SILENCE,
    "*.failing.test": Trouble.SERVER_FAILURE,
    "*.cut-off.test": Trouble.CUT_OFF,
}


class Api:
    """The server's API over one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=CEILING_S)
        self.connections = 0

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        if self._connection.sock is None:
            self.connections += 1
        content = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        try:
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):  # it was idle for too long
            self._connection.close()
            return self(method, path, body)
        text = answer.read()
        return answer.status, json.loads(text) if text else None


class Trial:
    """The steps, and what each of them found."""

    def __init__(self, folder: Path, canary: Canary, authorities: Path) -> None:
        self.found: dict[str, Any] = {}
        self._folder = folder
        self._canary = canary
        proxies = {"http_proxy": PROXY, "https_proxy": PROXY, "all_proxy": SOCKS}
        self._env = {
            **{name: value for each, value in proxies.items() for name in (each, each.upper())},
            "HOME": str(folder),
            "SSL_CERT_FILE": str(authorities),
            "HOOKLINE_API_KEY": KEY,
        }
        (folder / ".netrc").write_text("default login canary password canary\n")
        self._ids: dict[str, str] = {}  # endpoints by what they are about

    # --- the steps ---

    def try_the_canary(self) -> None:
        """Show that it hears a connection to each of these addresses."""
        for address, port in WITHIN_REACH:
            socket.create_connection((address, port), timeout=CEILING_S).close()
        _until(lambda: len(self._canary.hits) >= len(WITHIN_REACH))
        self.found["within_reach"] = len(self._canary.hits)
        self._canary.hits.clear()

    def accept_and_refuse(self) -> None:
        """Create and patch with each URL, over the API and with the command line."""
        with self._server() as (server, api):
            with self._watched("writing", api):
                self.found["created"] = {
                    id: self._create(api, id, url, retry=TWICE if id == "U84" else ONCE)
                    for id, url in URLS.items()
                }
                self.found["patched"] = {id: self._patch(api, url) for id, url in URLS.items()}
            with ThreadPoolExecutor(AT_ONCE) as commands:
                told = commands.map(lambda url: self._by_command(server.url, url), URLS.values())
                self.found["commands"] = dict(zip(URLS, told, strict=True))
            own = f"http://127.0.0.1:{server.port}/"
            self.found["own_literal"] = self._create(api, "own", own)[:2]
            for id in LITERAL:
                if self.found["created"][id][0] != 201:
                    self._create(api, id, "https://hooks.example.com/planted")
            for n in range(REBOUND):
                url = f"http://r{n}.rebind.test/"
                self._create(api, f"rebound {n}", url, retry=TWICE, events=["case.rebound"])
            for code in CODES:
                for kind in ("", "named/", "line-break/"):
                    for most in (0, 3):
                        self._create(
                            api,
                            f"redirect {kind}{code} {most}",
                            f"http://redir.test/{kind}{code}",
                            max_redirects=most,
                        )
            self._create(api, "followed", "http://redir2.test/", max_redirects=1)
            self._create(api, "turned", "http://turned.test/", events=["case.nothing"])
            self._create(api, "own", f"http://hookline-self.test:{OWN_PORT}/v1/events")
        self._plant()

    def deliver(self) -> None:
        """Send to each, as an event and as a test; then see that the canary would have heard it."""
        with self._server("--port", str(OWN_PORT)) as (_, api):
            with self._watched("sending", api):
                events = [self._publish(api, kind) for kind in ("case.all", "case.rebound")]
                _, sent = api("POST", f"/v1/endpoints/{self._ids['turned']}/test")
                self.found["test_call"] = sent
                tests = {
                    id: api("POST", f"/v1/endpoints/{self._ids[id]}/test")[1]["event_id"] for id in LITERAL
                }
                notify = {"notify": {"webhook": "http://turned.test/", "slack": "http://cname.test/"}}
                api("PUT", "/v1/accounts/alerted", notify)
                self.found["alert"] = api("POST", "/v1/accounts/alerted/test-alert")
                by_endpoint = {endpoint: about for about, endpoint in self._ids.items()}
                self.found["delivered"] = {
                    by_endpoint[each["endpoint_id"]]: self._result(api, each)
                    for event in events
                    for each in self._settled(api, event)
                }
                self.found["tested"] = {
                    id: self._result(api, self._settled(api, event)[0]) for id, event in tests.items()
                }
                [turned] = self._settled(api, sent["event_id"])
                self.found["turned"] = self._result(api, turned)
            self.found["arrivals"] = [each._asdict() for each in self._canary.arrivals]
            asked = self._canary.names.asked
            self.found["rebound_lookups"] = max(asked[f"r{n}.rebind.test", 1] for n in range(REBOUND))
            self.found["asked"] = sorted({name for name, _ in asked})

    def look_up_in_vain(self) -> None:
        """Send to names that are not found, in every way there is, and to one that is."""
        with self._server() as (_, api):
            for kind in LOST:
                for n in range(OF_EACH):
                    self._create(api, f"{kind} {n}", f"http://n{n}.{kind}.test/", events=["case.lost"])
            self._create(api, "healthy", "http://hooks.example.com/healthy", events=["case.lost"])
            event = self._publish(api, "case.lost")
            by_endpoint = {endpoint: about for about, endpoint in self._ids.items()}
            self.found["lost"] = {
                by_endpoint[each["endpoint_id"]]: self._result(api, each)
                for each in self._settled(api, event)
            }

    def deliver_to_itself(self) -> None:
        """A public address of the server itself, as a literal and as a name."""
        port = OWN_PORT + 1
        with self._server("--port", str(port), "--host", "0.0.0.0") as (_, api), self._watched("own", api):
            self.found["own_public_literal"] = self._create(
                api, "own literal", f"http://93.184.216.40:{port}/v1/events"
            )[:2]
            self._create(api, "own public", f"http://own-public.test:{port}/v1/events", events=["case.own"])
            [delivery] = self._settled(api, self._publish(api, "case.own"))
            self.found["own_public"] = self._result(api, delivery)

    def without_the_guard(self) -> None:
        """In development mode every address may be dialled: then the same endpoints reach the canary."""
        before = len(self._canary.hits)
        with self._server("--dev") as (_, api):
            event = api("POST", f"/v1/endpoints/{self._ids['U38']}/test")[1]["event_id"]
            self._settled(api, event)
        self.found["unguarded"] = [tuple(each) for each in self._canary.hits[before:]]

    # --- their parts ---

    @contextmanager
    def _server(self, *arguments: str) -> Iterator[tuple[ServerProcess, Api]]:
        with ServerProcess(*arguments, cwd=self._folder, env=self._env) as server:
            yield server, Api(server.port)
            assert server.stop() == 0, server.stderr

    @contextmanager
    def _watched(self, step: str, api: Api) -> Iterator[None]:
        """Count the connections that this step begins, but for those to the API, and those that arrive."""
        hits, began = len(self._canary.hits), connections_begun() - api.connections
        accepted, asked = self._canary.accepted, self._canary.names.asked.total()
        yield
        self.found[f"{step}_begun"] = connections_begun() - api.connections - began
        self.found[f"{step}_received"] = self._canary.accepted - accepted
        self.found[f"{step}_lookups"] = self._canary.names.asked.total() - asked
        self.found[f"{step}_hits"] = [tuple(each) for each in self._canary.hits[hits:]]

    def _create(self, api: Api, about: str, url: str, **fields: Any) -> tuple[int, Any, Any]:
        body = {"url": url, "events": ["case.all"], "retry": ONCE, "circuit": None, "timeout_ms": 30_000}
        status, made = api("POST", "/v1/endpoints", {**body, "description": about, **fields})
        if status != 201:
            return status, made["code"], made["detail"]
        self._ids[about] = made["id"]
        return status, made["url"], None

    def _patch(self, api: Api, url: str) -> tuple[int, Any, Any]:
        if "patched" not in self._ids:
            self._create(api, "patched", "https://hooks.example.com/before", events=["case.nothing"])
        path = f"/v1/endpoints/{self._ids['patched']}"
        api("PATCH", path, {"url": "https://hooks.example.com/before"})
        status, said = api("PATCH", path, {"url": url})
        return status, said.get("code"), api("GET", path)[1]["url"]

    def _by_command(self, server: str, url: str) -> tuple[int, str]:
        words = ("endpoints", "create", url, "--event", "case.nothing", "--account", "commands", "--json")
        done = run(*words, cwd=self._folder, env={**self._env, "HOOKLINE_URL": server})
        return done.returncode, json.loads(done.stdout)["url"] if done.returncode == 0 else done.stderr

    def _plant(self) -> None:
        """Write what the API refuses into the database."""
        with sqlite3.connect(self._folder / "hookline.db") as database:
            for id in LITERAL:
                if self.found["created"][id][0] != 201:
                    statement = "UPDATE endpoints SET url = ? WHERE description = ?"
                    assert database.execute(statement, (URLS[id], id)).rowcount == 1
        database.close()

    def _publish(self, api: Api, kind: str) -> str:
        status, event = api("POST", "/v1/events", {"type": kind, "payload": {"id": 42}})
        assert status == 202, event
        return str(event["id"])

    def _settled(self, api: Api, event: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []

        def is_over() -> bool:
            found[:] = api("GET", f"/v1/events/{event}/deliveries?limit=200")[1]["data"]
            return bool(found) and all(each["state"] != "pending" for each in found)

        _until(is_over)
        return found

    def _result(self, api: Api, delivery: dict[str, Any]) -> dict[str, Any]:
        attempts = api("GET", f"/v1/deliveries/{delivery['id']}/attempts")[1]["data"]
        return {
            "state": delivery["state"],
            "reason": delivery["reason"],
            "attempts": [
                {
                    "kind": (each["error"] or {}).get("kind"),
                    "detail": (each["error"] or {}).get("detail"),
                    "status": each["status"],
                    "final_url": each["final_url"],
                    "body": each["response_body"],
                }
                for each in sorted(attempts, key=lambda each: each["number"])
            ],
        }


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + CEILING_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not come to an end")
        time.sleep(0.05)


def main(folder: Path) -> None:
    own_every_address()
    put_over("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n", folder)
    put_over("/etc/nsswitch.conf", "hosts: files dns\n", folder)
    put_over("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n", folder)
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("hooks.example.com").configure_cert(tls)
    authorities = folder / "authorities.pem"
    authority.cert_pem.write_to_path(authorities)
    with Canary(ZONE, tls) as canary:
        trial = Trial(folder, canary, authorities)
        trial.try_the_canary()
        trial.accept_and_refuse()
        trial.deliver()
        trial.deliver_to_itself()
        trial.look_up_in_vain()
        trial.found["hits"] = [tuple(each) for each in canary.hits]
        trial.without_the_guard()
    (folder / "found.json").write_text(json.dumps(trial.found))


if __name__ == "__main__":
    os.umask(0o077)
    main(Path(sys.argv[1]))
