"""Clients generated from a live server's description compile, and publish, list and replay there.

The programs are in `go/client`, `javascript/client.ts` and `java/Client.java`. They use the names that a user would see.
"""

import json
import os
import queue
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from answering import Receiver, eventually, receiving
from languages.toolchains import (
    CEILING_S,
    HERE,
    SMALL_JVM,
    generator,
    go,
    java_path,
    needed,
    node_modules,
    run,
)
from server_process import ServerProcess

GUIDE = (HERE.parents[1] / "docs" / "api.md").read_text()
KEY = "hlk_the_key_of_these_tests"
SEEN = {
    "secret": "whsec_",
    "deliveries": 1,
    "duplicate": [False, True],
    "listed": 1,
    "died": ["dead", "rejected", 400],
    "replayed": "pending",
    "in the end": "delivered",
    "at the last": True,
    "refused": ["invalid_field", "/type"],
}


class Service(NamedTuple):
    """A server, and what receives what it sends."""

    url: str
    client: httpx.Client
    receiver: Receiver


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("server")
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8"}
    with (
        receiving() as receiver,
        ServerProcess("--database", "sqlite:///hooks.db", cwd=folder, env=env) as server,
        httpx.Client(
            base_url=server.url, headers={"authorization": f"Bearer {KEY}"}, trust_env=False, timeout=60
        ) as client,
    ):
        yield Service(server.url, client, receiver)
        assert server.stop() == 0


@pytest.fixture(scope="module")
def generated(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each language with the client in it, made by the commands that docs/api.md prints."""
    folder = tmp_path_factory.mktemp("generated")
    description = service.client.get("/openapi.json").content
    java = needed("java", what="the generated clients")
    commands = re.findall(r"^    openapi-generator-cli (generate .* -g (\S+)(?: .*)?)$", GUIDE, re.MULTILINE)
    for command, name in commands:
        place = folder / name
        place.mkdir()
        (place / "openapi.json").write_bytes(description)
        run([java, *SMALL_JVM, "-jar", generator(), *command.split()], cwd=place)
    assert [name for _, name in commands] == ["go", "java", "typescript-fetch"]
    return folder


def golang(folder: Path) -> list[str]:
    """The client is a package of the module of the tests."""
    shutil.copytree(HERE / "go", folder, dirs_exist_ok=True)
    go("build", "-o", "client-program", "./client", cwd=folder)
    return [str(folder / "client-program")]


def javascript(folder: Path) -> list[str]:
    shutil.copytree(HERE / "javascript", folder, dirs_exist_ok=True)
    (folder / "node_modules").symlink_to(node_modules())
    run([folder / "node_modules" / ".bin" / "tsc", "--project", "."], cwd=folder)
    return [needed("node", what="TypeScript"), str(folder / "compiled" / "client.js")]


def java(folder: Path) -> list[str]:
    shutil.copytree(HERE / "java", folder, dirs_exist_ok=True)
    sources = [*(folder / "hookline" / "src" / "main").rglob("*.java"), folder / "Client.java"]
    path = java_path(folder / "classes")
    compiler = [needed("javac", what="Java"), *(f"-J{option}" for option in SMALL_JVM)]
    run([*compiler, "-proc:none", "-nowarn", "-cp", path, "-d", "classes", *sources], cwd=folder)
    return [needed("java", what="Java"), *SMALL_JVM, "-cp", path, "Client"]


@pytest.mark.parametrize(
    ("name", "build"),
    [("go", golang), ("java", java), ("typescript-fetch", javascript)],
    ids=["go", "java", "typescript"],
)
def test_a_generated_client_publishes_lists_and_replays(name, build, service, generated):
    with Program(build(generated / name), service) as program:
        program.wait_for("waiting")
        delivery = delivery_in(service, name, state="dead")
        good = {"url": f"{service.receiver.url}/200"}
        assert service.client.patch(f"/v1/endpoints/{delivery['endpoint_id']}", json=good).is_success
        program.go_on()
        program.wait_for("waiting")
        delivery_in(service, name, state="delivered")
        program.go_on()
        assert json.loads(program.line()) == SEEN


def delivery_in(service: Service, account: str, *, state: str) -> dict[str, Any]:
    """The only delivery of the account, once it is in this state."""

    def look() -> dict[str, Any] | None:
        [found] = service.client.get("/v1/deliveries", params={"account": account}).json()["data"]
        return found if found["state"] == state else None

    return eventually(look)


class Program:
    """A program that says where it waits; ended when left."""

    def __init__(self, command: list[str], service: Service) -> None:
        env = {
            "HOOKLINE_URL": service.url,
            "HOOKLINE_API_KEY": KEY,
            "RECEIVER_URL": f"{service.receiver.url}/400",
        }
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **env, "NO_PROXY": "*"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)

    def __enter__(self) -> "Program":
        self._reader.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def wait_for(self, line: str) -> None:
        assert (found := self.line()) == line, "\n".join([found, *self._rest()])

    def line(self) -> str:
        """The next line that it prints."""
        return self._lines.get(timeout=CEILING_S)

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def _rest(self) -> list[str]:
        """What it says besides, when it has failed."""
        self._process.wait(CEILING_S)
        self._reader.join()
        return list(self._lines.queue)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put("")  # it has ended
