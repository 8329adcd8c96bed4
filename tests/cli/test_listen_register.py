"""A listener that registers itself has the same endpoint and the same secret at every start."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from answering import eventually
from listener_process import ListenerProcess
from server_process import ServerProcess, run


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[ServerProcess]:
    with ServerProcess("--dev", cwd=tmp_path_factory.mktemp("server")) as server:
        yield server


class Place:
    """A folder, a port of its own, and a server: what a listener's endpoint is kept for."""

    def __init__(self, folder: Path, url: str, **env: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.folder = folder
        self.url = url
        self.env = {"HOOKLINE_URL": url, "XDG_STATE_HOME": str(folder / "state"), **env}

    def listening(self, *arguments: str) -> ListenerProcess:
        return ListenerProcess(
            "--port", str(self.port), "--register", *arguments, cwd=self.folder, env=self.env
        )

    def run(self, *arguments: str):
        return run(*arguments, cwd=self.folder, env=self.env)

    def unregister(self):
        return self.run("listen", "--port", str(self.port), "--unregister")

    def call(self, method: str, path: str, **given) -> dict:
        answer = httpx.request(method, f"{self.url}/v1{path}", trust_env=False, timeout=60, **given)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else {}

    def endpoints(self) -> list[dict]:
        """Those that send to the listener."""
        found = self.call("GET", "/endpoints?limit=200")["data"]
        return [each for each in found if f":{self.port}/" in each["url"]]

    def files(self) -> list[Path]:
        return list((self.folder / "state/hookline/listen").glob("*"))


@pytest.fixture
def place(tmp_path, server) -> Place:
    return Place(tmp_path, server.url)


def secret_said(ear: ListenerProcess) -> str:
    [line] = [each for each in ear.said.splitlines() if each.startswith("signing secret: ")]
    return line.removeprefix("signing secret: ")


def arrives(place: Place, ear: ListenerProcess) -> None:
    """An event reaches the listener, and its signature is good."""
    event = place.run("send", "order.paid", "{}").stdout.strip()
    while (shown := ear.shown())["event_id"] != event:
        pass
    assert shown["signature"] == {"is_good": True, "detail": ""}


def test_a_restart_uses_the_same_endpoint_and_the_same_secret(place):
    with place.listening("--event", "order.*") as ear:
        arrives(place, ear)
        secret = secret_said(ear)
        assert ear.end() == 0
    [endpoint] = place.endpoints()
    assert (endpoint["url"], endpoint["events"]) == (ear.url, ["order.*"])
    assert ear.said.splitlines()[-2] == (
        f"{endpoint['id']} is kept. Until the next start, deliveries to it fail, are retried, and are dead after "
        "their last attempt. --unregister deletes it."
    )
    with place.listening() as again:
        arrives(place, again)
        assert secret_said(again) == secret
    [same] = place.endpoints()
    assert (same["id"], same["events"]) == (endpoint["id"], ["*"])


def test_the_file_is_for_this_user_alone_and_another_port_has_another(place, server):
    with place.listening():
        [file] = place.files()
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    other = Place(place.folder, server.url)
    with other.listening() as ear:
        assert secret_said(ear) != json.loads(file.read_text())["secret"]
    assert len(place.files()) == 2
    assert len(place.endpoints()) == len(other.endpoints()) == 1


def test_a_server_that_lost_its_database_gets_the_same_secret_again(place):
    with place.listening() as ear:
        secret = secret_said(ear)
    [endpoint] = place.endpoints()
    place.call("DELETE", f"/endpoints/{endpoint['id']}")
    with place.listening() as again:
        assert secret_said(again) == secret
        arrives(place, again)
    [new] = place.endpoints()
    assert new["id"] != endpoint["id"]


@pytest.mark.parametrize("left", [None, b"", b"[]", b'{"id": 1, "secret": null}'])
def test_without_a_readable_file_the_endpoint_is_found_by_its_url(place, left):
    with place.listening() as ear:
        secret = secret_said(ear)
    [file] = place.files()
    if left is None:
        file.unlink()
    else:
        file.write_bytes(left)
    with place.listening() as again:
        assert secret_said(again) == secret
    assert len(place.endpoints()) == 1
    assert json.loads(file.read_text())["secret"] == secret


def test_a_secret_that_was_rotated_is_the_new_one_after_the_restart(place):
    with place.listening() as ear:
        old = secret_said(ear)
    [endpoint] = place.endpoints()
    place.call("POST", f"/endpoints/{endpoint['id']}/secret/rotate", json={"overlap_s": 0})
    with place.listening() as again:
        assert secret_said(again) != old
        arrives(place, again)


def test_what_the_server_gave_up_meanwhile_it_takes_up_again(place):
    with place.listening():
        [endpoint] = place.endpoints()
        path = f"/endpoints/{endpoint['id']}"
        place.call("PATCH", path, json={"circuit": {"consecutive_failures": 1}})
    place.run("send", "order.paid", "{}")
    eventually(lambda: place.call("GET", path)["circuit_state"]["state"] == "open" or None)
    place.call("POST", f"{path}/disable")
    with place.listening() as ear:
        arrives(place, ear)
        # While it listens: a request that is under way at its end would open the circuit again.
        eventually(lambda: place.call("GET", path)["circuit_state"]["state"] == "closed" or None)


def test_a_listener_that_is_kept_starts_without_its_server(tmp_path):
    with ServerProcess("--dev", cwd=tmp_path) as server:
        place = Place(tmp_path, server.url)
        with place.listening() as ear:
            said = ear.said.splitlines()[:2]
        [endpoint] = place.endpoints()
    with place.listening() as again:
        assert "cannot reach" in again.said
        assert f"Once the server is back, it goes on with {endpoint['id']}." in again.said
        assert said[1] in again.said  # the secret
        assert httpx.post(again.url, content=b"{}", trust_env=False, timeout=60).status_code == 401
    (file,) = place.files()
    file.unlink()
    failed = place.run("listen", "--port", str(place.port), "--register")
    assert (failed.returncode, failed.stdout) == (3, "")
    assert f"cannot reach {server.url} (HOOKLINE_URL, --url)" in failed.stderr


def test_unregister_deletes_the_endpoint_and_forgets_the_secret(place):
    with place.listening() as ear:
        secret = secret_said(ear)
    [endpoint] = place.endpoints()
    gone = place.unregister()
    assert (gone.returncode, gone.stderr) == (0, f"{endpoint['id']} is deleted.\n")
    assert (place.endpoints(), place.files()) == ([], [])
    again = place.unregister()
    assert (again.returncode, again.stderr) == (0, f"No endpoint sends to {ear.url}.\n")
    with place.listening() as new:
        assert secret_said(new) != secret


def test_unregister_names_the_endpoint_of_another_users_listener_and_leaves_it(place):
    with place.listening() as ear:
        [endpoint] = place.endpoints()
        place.env["XDG_STATE_HOME"] = str(place.folder / "another user's")
        refused = place.unregister()
        assert (refused.returncode, refused.stdout) == (4, "")
        assert refused.stderr == (
            f"hookline: {endpoint['id']} sends to {ear.url}, but is not the one that is kept here: another listener "
            f"may be using it. If none is: hookline endpoints delete {endpoint['id']}\n"
        )
        arrives(place, ear)


def test_unregister_leaves_the_endpoint_that_came_after_the_one_that_is_kept(place):
    with place.listening():
        [kept] = place.endpoints()
    place.call("DELETE", f"/endpoints/{kept['id']}")
    own, place.env["XDG_STATE_HOME"] = place.env["XDG_STATE_HOME"], str(place.folder / "another user's")
    with place.listening():
        [other] = place.endpoints()
        place.env["XDG_STATE_HOME"] = own
        refused = place.unregister()
        assert (refused.returncode, other["id"] in refused.stderr) == (4, True)
        assert place.files() == []  # the secret of an endpoint that is gone
        assert place.endpoints() == [other]


def test_a_file_that_cannot_be_written_is_said_with_what_it_means(place):
    (place.folder / "state").write_text("no folder")
    with place.listening() as ear:
        assert (
            "cannot be written (Not a directory): the next start finds the endpoint by its URL.\n" in ear.said
        )


def test_a_server_that_refuses_says_what_to_set(tmp_path):
    key = "hlk_" + "a" * 40
    with ServerProcess(cwd=tmp_path, env={"HOOKLINE_API_KEY": key}) as server:
        place = Place(tmp_path, server.url)
        arguments = ("listen", "--port", str(place.port), "--register")
        without = place.run(*arguments)
        assert (without.returncode, without.stdout) == (5, "")
        assert without.stderr == f"hookline: {server.url} needs an API key: set HOOKLINE_API_KEY.\n"
        place.env["HOOKLINE_API_KEY"] = key
        outside = place.run(*arguments)
        assert (outside.returncode, outside.stdout) == (5, "")
        assert (
            "need --dev, or their networks in HOOKLINE_ALLOW_NETWORKS; in a program Settings(dev=True), or "
            "Settings(allow_networks=…)." in outside.stderr
        )
        assert place.files() == []


def test_register_and_unregister_do_not_go_together(place):
    refused = place.run("listen", "--register", "--unregister")
    assert (refused.returncode, "cannot be combined" in refused.stderr) == (2, True)
