"""docs/python.md is true: its programs are run as they stand, except that nothing leaves this machine."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hookline import SyncHookline, client, errors
from hookline.client import OpenWord
from hookline.testing import WebhookReceiver, serving_hookline
from server_process import environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/python.md").read_text()


def blocks(title: str) -> list[str]:
    """The programs of a section and what is below it."""
    section = re.split(r"^## ", PAGE.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


LIBRARY = blocks("The library")
CLIENTS = blocks("The clients")
ERRORS = blocks("Errors")
KIT = blocks("The testing kit")


def test_every_program_of_the_page_is_run_here():
    assert len(LIBRARY + CLIENTS + ERRORS + KIT) == PAGE.count("```python") == 8


def run(program: str, folder: Path, **env: str) -> str:
    """A program's output; lines that await are put into a coroutine, as a reader would."""
    program = program.replace("example.com", "hooks.example")  # a name that is never resolved
    if "async with" in program:
        head, _, body = program.partition("async with")
        inner = textwrap.indent("async with" + body, "    ")
        program = f"import asyncio\n{head}async def main():\n{inner}\nasyncio.run(main())\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_library_s_programs_work(tmp_path):
    asynchronous, with_settings, synchronous = LIBRARY
    assert run(f"{asynchronous}    print(event.deliveries)\n", tmp_path) == "1\n"
    assert re.fullmatch(r"\[(<DeliveryState.PENDING: 'pending'>(, )?){2}\]\n", run(synchronous, tmp_path))
    local = 'await hooks.create_endpoint("http://127.0.0.1:9000/", "order.*")'
    assert (
        run(
            f"{with_settings}async with hooks:\n    {local}\n    print(hooks.settings.max_in_flight)",
            tmp_path,
        )
        == "50\n"
    )


def test_the_program_about_errors_says_what_it_prints(tmp_path):
    [program] = ERRORS
    said = "url_invalid /url\n"
    assert f"# {said}" in program
    assert run(program, tmp_path) == said


def table(title: str) -> set[str]:
    """The names in the first column of the tables of a section."""
    section = re.split(r"^## ", PAGE.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return {
        name
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }


def test_every_method_is_in_the_table_of_methods():
    section = PAGE.partition("\n## Methods\n")[2].partition("\n\nEach is")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert named == {name for name in dir(SyncHookline) if name[0] != "_"} - {"start", "stop", "send"}


def test_every_exception_of_the_table_is_there():
    assert {name for name in table("Errors") if not hasattr(errors, name) and not hasattr(client, name)} == {
        "OutboxError"
    }


def test_every_word_is_named():
    assert [each.__name__ for each in OpenWord.__subclasses__() if f"`{each.__name__}`" not in PAGE] == []


@pytest.fixture
def server():
    with serving_hookline() as server:
        yield server


def test_the_clients_programs_work(tmp_path, server):
    asynchronous, synchronous = CLIENTS
    env = {"HOOKLINE_URL": server.url}
    assert run(asynchronous, tmp_path, **env).startswith("pending")
    assert run(f"{synchronous}    print(len(first.data))\n", tmp_path, **env) == "10\n"


def test_the_kit_s_programs_work(tmp_path):
    test, coroutine = KIT
    (tmp_path / "test_of_the_page.py").write_text(test)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "error"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    run(coroutine, tmp_path)


def test_the_example_publishes(tmp_path, server):
    env = environment({"HOOKLINE_URL": server.url})
    command = [sys.executable, str(ROOT / "examples/publish.py"), "order.paid"]

    def publish(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    with WebhookReceiver() as receiver:
        server.subscribe(receiver, "order.*")
        first, again = publish('{"id": 42}', "order-42"), publish('{"id": 42}', "order-42")
        assert re.match(r"evt_\w+ goes to 1 endpoint\(s\)\n  ep_\w+ (pending|delivered)\n", first.stdout), (
            first
        )
        assert again.stdout.splitlines()[0] == first.stdout.splitlines()[0] + ", again"
        server.settle()
        receiver.assert_received("order.paid", b'{"id": 42}')
        assert len(receiver.requests) == 1
    refused = publish('{"id": 43}', "order-42")
    assert (refused.returncode, refused.stderr[:30]) == (1, "refused (idempotency_conflict)")


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!http|#)([^)#]+)", PAGE))))
def test_a_link_points_at_a_file(link):
    assert (ROOT / "docs" / link).exists()
