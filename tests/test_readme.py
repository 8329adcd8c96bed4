"""The README is true: its commands are run as they stand, except for ports and paths."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec
import pytest

from hookline.config import PREFIX, Settings
from server_process import CEILING_S, environment

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PATIENCE_S = 90.0  # the second attempt waits up to 30 seconds


def blocks(title: str, language: str) -> list[str]:
    """The code blocks of the section with this title, up to the next title of any level."""
    section = re.split(r"^#+ ", README.partition(f"# {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def free_ports() -> tuple[int, int]:
    """Two that are not the same."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return int(one.getsockname()[1]), int(other.getsockname()[1])


class Shell:
    """A shell that stays open, as a reader's does: what one block sets, the next one sees."""

    def __init__(self, terminal: "Terminal", **env: str) -> None:
        self._terminal = terminal
        self._process = subprocess.Popen(
            ["bash"],
            cwd=terminal.folder,
            env={**terminal.env, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, commands: str) -> str:
        """What the commands print; each of them has to succeed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"set -euo pipefail\n{self._terminal.adapted(commands)}\necho; echo END\n")
        self._process.stdin.flush()
        printed = ""
        while not printed.endswith("\nEND\n"):
            line = self._process.stdout.readline()
            assert line, f"the shell ended after:\n{printed}"
            printed += line
        return printed.removesuffix("\nEND\n")

    def until(self, commands: str, text: str, *, times: int = 1) -> str:
        """What the commands print once it has this text in it, so many times."""
        deadline = time.monotonic() + CEILING_S
        while (printed := self.run(commands)).count(text) < times:
            assert time.monotonic() < deadline, printed
        return printed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.terminate()


class Terminal:
    """A folder like a checkout's, and ports of its own."""

    def __init__(self, folder: Path, env: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.api, self.receiver = free_ports()
        self.env = environment({"XDG_STATE_HOME": str(folder / "state"), **(env or {})})
        (folder / "examples").symlink_to(ROOT / "examples")

    def adapted(self, commands: str) -> str:
        python = shlex.quote(sys.executable)
        return (
            commands.replace("make run", self._recipe())
            .replace(".venv/bin/hookline", f"{python} -m hookline")
            .replace("python3 examples/receiver.py", f"{python} examples/receiver.py {self.receiver}")
            .replace("python3 ", f"{python} ")
            .replace("127.0.0.1:8080", f"127.0.0.1:{self.api}")
            .replace("127.0.0.1:9000", f"127.0.0.1:{self.receiver}")
            .replace("127.0.0.1:9001", f"127.0.0.1:{self.receiver}")
            .replace("hookline listen", f"hookline listen --port {self.receiver}")
            .replace(
                'export PATH="$PWD/.venv/bin:$PATH"', f'hookline() {{ {python} -m hookline "$@"; }}; export'
            )
        )

    def _recipe(self) -> str:
        """What `make run` starts, without its set-up: the tests run in one already."""
        printed = subprocess.run(
            ["make", "--dry-run", "--no-print-directory", "run", f"PORT={self.api}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        (recipe,) = [line for line in printed.splitlines() if "hookline serve" in line]
        return recipe

    def run(self, commands: str) -> str:
        return subprocess.run(
            ["bash", "-euc", self.adapted(commands)],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            text=True,
            timeout=CEILING_S,
            check=True,
        ).stdout

    @contextmanager
    def running(self, commands: str, *, until: str) -> Iterator[Path]:
        """Commands that go on until Ctrl-C; the file of what they print."""
        output = self.folder / f"output-{time.monotonic_ns()}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-euc", self.adapted(commands)],
                cwd=self.folder,
                env=self.env,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_for(output, until, alive=process)
            yield output
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(CEILING_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise


def wait_for(
    output: Path, text: str, *, seconds: float = CEILING_S, alive: "subprocess.Popen[bytes] | None" = None
) -> None:
    deadline = time.monotonic() + seconds
    while text not in output.read_text():
        assert time.monotonic() < deadline, output.read_text()
        assert alive is None or alive.poll() is None, output.read_text()
        time.sleep(0.02)


def test_the_quick_start_and_the_worst_moment_go_as_told(tmp_path):
    start, receive, publish, look = blocks("Quick start", "sh")
    (crash,) = blocks("The worst moment", "sh")
    terminal = Terminal(tmp_path)
    terminal.env["HOOKLINE_URL"] = f"http://127.0.0.1:{terminal.api}"
    with terminal.running(start, until="listening on"):
        with terminal.running(receive, until="listening on") as received:
            (secret,) = re.findall(r"signing secret: (whsec_\S+)", received.read_text())
            terminal.run(publish)
            wait_for(received, 'attempt 1  signature ok  answered 200\n  {"id": 42}')
            deadline = time.monotonic() + CEILING_S
            while "delivered" not in (shown := terminal.run(look)):
                assert time.monotonic() < deadline, shown
        terminal.run(crash)
    # The receiver first: an attempt that is due by then is the server's first act, and the third would wait for minutes.
    with (
        terminal.running(receive, until="listening on") as received,
        terminal.running(start, until="listening on"),
    ):
        assert f"signing secret: {secret}\n" in received.read_text()
        wait_for(received, '{"id": 43}', seconds=PATIENCE_S)
        assert "signature ok" in received.read_text()


@pytest.fixture
def tour(tmp_path) -> Iterator[tuple[Terminal, Path]]:
    """A terminal beside the tour's server, and what the server prints."""
    (start,) = blocks("A tour", "sh")
    terminal = Terminal(tmp_path)
    terminal.env["HOOKLINE_PORT"] = str(terminal.api)
    with terminal.running(start, until="listening on") as output:
        yield terminal, output


def test_the_tour_works_with_the_command_line_alone(tour):
    terminal, _ = tour
    prepare, listen, send, fail, replay = blocks("With the command line", "sh")
    with Shell(terminal, HOOKLINE_URL=f"http://127.0.0.1:{terminal.api}") as shell:
        shell.run(prepare)
        with terminal.running(listen, until="listening on") as received:
            sent, _, inspect = send.strip().splitlines()
            shell.run(sent)
            wait_for(received, '{"id": 42}')
            shell.until(inspect, "order.paid")
            assert "order.paid" in shell.run("hookline events list")
        assert "signature ok" in received.read_text()
        sent, inspect = fail.strip().splitlines()
        shell.run(sent)
        shell.until(inspect, "exhausted")
        with terminal.running(listen, until="listening on") as received:
            again, inspect = replay.strip().splitlines()
            shell.run(again)
            wait_for(received, '{"id": 43}')
            assert shell.until(inspect, "order.paid", times=2).count("order.paid") == 2


def test_the_tour_works_with_curl_alone(tour):
    terminal, output = tour
    prepare, publish, fail, replay = blocks("With curl", "sh")
    (first_key,) = re.findall(r"hlk_\S{43}", output.read_text())
    with Shell(terminal, KEY=first_key) as shell:
        shell.run(prepare)
        listen = f"SECRET={shlex.quote(shell.run('echo $SECRET').strip())} python3 examples/receiver.py"
        with terminal.running(listen, until="receiving on") as received:
            sent, inspect = publish.strip().splitlines()
            assert '"deliveries":1' in shell.run(sent)
            wait_for(received, 'signature ok: {"id": 44}')
            shell.until(inspect, '"state":"delivered"')
        sent, inspect = fail.strip().splitlines()
        shell.run(sent)
        shell.until(inspect, '"reason":"exhausted"')
        with terminal.running(listen, until="receiving on") as received:
            again, inspect = replay.strip().splitlines()
            assert '"id":"rpl_' in shell.run(again)
            wait_for(received, 'signature ok: {"id": 45}')
            shell.until(inspect, '"replays":1')


def test_the_postgresql_commands_work(tmp_path, postgres_server):
    (commands,) = blocks("On PostgreSQL", "sh")
    terminal = Terminal(tmp_path, {"HOOKLINE_PORT": "0"})
    name = postgres_server.create_database()
    here = re.sub(r"postgresql://\S+", postgres_server.url(name), commands)
    assert here != commands
    with terminal.running(here, until="listening on") as output:
        assert "0001_tables\n" in output.read_text()
    postgres_server.drop_database(name)


def test_the_library_s_lines_work(tmp_path):
    (lines,) = blocks("As a library", "python")
    body = lines.replace("async with", "async def main():\n  async with", 1).replace("\n    ", "\n      ")
    program = f"import asyncio\n{body}\n      print(event.deliveries)\nasyncio.run(main())\n"
    # A name that is never resolved: the test is about the lines, and nothing is to leave this machine.
    program = program.replace("example.com", "hooks.example")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_the_library_example_delivers(tmp_path):
    terminal = Terminal(tmp_path, {"SECRET": "whsec_" + "A" * 43 + "="})
    with terminal.running("python3 examples/receiver.py", until="receiving on") as received:
        printed = terminal.run("python3 examples/library.py http://127.0.0.1:9000/")
        assert re.fullmatch(r"evt_\w{26} is stored and goes to 1 endpoint\(s\)\ndelivered\n", printed)
        wait_for(received, 'signature ok: {"id":42}')


def test_the_table_of_settings_is_complete():
    rows = dict(re.findall(rf"^\| `{PREFIX}(\w+)` \| (?:`(.*?)`)? ?\|", README, re.MULTILINE))
    fields = {field.name.upper(): field.default for field in msgspec.structs.fields(Settings)}
    assert rows == {name: as_text(default) for name, default in fields.items()}


def as_text(default: object) -> str:
    if default in (None, ()):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!http|#)([^)]+)\)", README))))
def test_a_link_points_at_a_file_and_a_heading_in_it(link):
    path, _, heading = link.partition("#")
    assert (ROOT / path).exists()
    if heading:
        assert heading in {
            re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", (ROOT / path).read_text(), re.MULTILINE)
        }
