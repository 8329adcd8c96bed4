"""docs/cli.md is true: its reference is compared, and its examples are run."""

import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from answering import Receiver, eventually, receiving
from cli_reference import PAGE, TITLE, commands, reference
from refused_rows import add_refused_row, note_source
from server_process import CEILING_S, COMMAND, ServerProcess, environment

GUIDE, _, REFERENCE = PAGE.read_text("utf-8").partition(TITLE)
EXAMPLES = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
STAY = (
    "hookline serve",
    "hookline worker",
    "hookline listen",
)  # run until they are stopped; they have tests of their own
VERDICTS = (
    "hookline status",
    "hookline endpoints recover",
    "hookline alerts test",
)  # the receiver here refuses, and no mail is sent: they exit with 1, as they have to
# They do not wait for long, and a busy machine may need longer, or not be ready at that moment.
IMPATIENT = ("hookline doctor", "hookline status", "hookline top")
SEALING = {"HOOKLINE_SECRET_KEY": "docs" * 8}
REMOVED_OUTBOX = "postgresql://db.example/shop"
PENDING = ("hookline deliveries retry", "hookline deliveries cancel")


def test_the_reference_is_that_of_the_commands():
    assert reference() == TITLE + REFERENCE, "run `python tests/cli_reference.py`, which writes it anew"


@pytest.mark.parametrize("words", [" ".join(path) for path, _ in commands()])
def test_every_command_has_an_example(words):
    assert any(line == words or line.startswith(words + " ") for line in EXAMPLES)


def test_every_example_is_a_command_with_options_that_there_are():
    known = {" ".join(path): command for path, command in commands()}
    for line in EXAMPLES:
        words = shlex.split(line)
        command = next(
            known[" ".join(words[:length])] for length in (3, 2) if " ".join(words[:length]) in known
        )
        options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= options, line


class World:
    """A server, a receiver that refuses, and one of everything for the examples to name."""

    def __init__(self, server: ServerProcess, receiver: Receiver, folder: Path) -> None:
        self.folder = folder
        self._server = server
        self._receiver = receiver
        self._client = httpx.Client(base_url=server.url, trust_env=False, timeout=30)

    def run(self, line: str) -> "subprocess.CompletedProcess[str]":
        command = line.replace("hookline ", shlex.join(COMMAND) + " ", 1)
        if "…" in line:
            command = self._with_ids(command, pending=line.startswith(PENDING))
        return subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=environment({"HOOKLINE_URL": self._server.url} | (SEALING if "secrets" in line else {})),
            capture_output=True,
            text=True,
            timeout=CEILING_S,
            check=False,
        )

    def _with_ids(self, command: str, *, pending: bool) -> str:
        if " outbox " in command:
            return command.replace("evt_…", add_refused_row(f"sqlite:///{self.folder}/hookline.db"))
        endpoint = self._client.post(
            "/v1/endpoints", json={"url": f"{self._receiver.url}/404/x", "events": ["*"], "account": "docs"}
        ).json()["id"]
        later = {"deliver_at": (datetime.now(UTC) + timedelta(hours=1)).isoformat()} if pending else {}
        body = {"type": "order.paid", "payload": {}, "account": "docs", **later}
        event = self._client.post("/v1/events", json=body).json()["id"]
        wanted = "pending" if pending else "dead"

        def look() -> str | None:
            query = f"/v1/deliveries?event_id={event}&endpoint_id={endpoint}&state={wanted}"
            return next((each["id"] for each in self._client.get(query).json()["data"]), None)

        delivery = eventually(look)
        key = self._client.post("/v1/keys", json={"scopes": ["read"]}).json()["id"]
        command = command.replace("key_…", key)
        return command.replace("ep_…", endpoint).replace("evt_…", event).replace("dlv_…", delivery)

    def close(self) -> None:
        self._client.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "order.json").write_text('{"id": 42}')
    (folder / "schema.json").write_text('{"type": "object"}')
    (folder / "secret.txt").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    with receiving() as receiver, ServerProcess("--dev", cwd=folder) as server:
        world = World(server, receiver, folder)
        note_source(f"sqlite:///{folder}/hookline.db", REMOVED_OUTBOX, looked_at=time.time() - 900)
        yield world
        world.close()
        assert server.stop() == 0


def ended(world: World, line: str, *codes: int) -> "subprocess.CompletedProcess[str] | None":
    """How the example ended, if it was with one of these codes."""
    result = world.run(line)
    return result if result.returncode in codes else None


def test_every_example_works(world):
    for line in EXAMPLES:
        if not line.startswith(STAY):
            good = (0, 1) if line.startswith(VERDICTS) else (0,)
            if line.startswith(IMPATIENT):
                result = eventually(lambda: ended(world, line, *good))  # noqa: B023 - called at once
            else:
                result = world.run(line)
            assert result.returncode in good, (line, result.stderr)
            assert "Traceback" not in result.stderr, line
    assert json.loads((world.folder / "order.json").read_text()) == {"id": 42}
