"""The pytest plugin: its fixtures are there without a line, and cost nothing where nobody uses them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from server_process import CEILING_S, environment

USES = """
from hookline import SyncHooklineClient

def test_paying(hookline_server, webhook_receiver):
    hookline_server.subscribe(webhook_receiver, "order.*")
    with SyncHooklineClient(hookline_server.url) as hooks:
        hooks.publish("order.paid", {"id": 42})
    hookline_server.settle()
    webhook_receiver.assert_received("order.paid", {"id": 42})
"""
OLD_LINE = 'pytest_plugins = ["hookline.testing.fixtures"]\n'
LOADED = """
import sys

def test_what_is_loaded():
    print("ours:", *sorted(name for name in sys.modules if name.split(".")[0] == "hookline"))
    print("others:", *sorted({"asyncio", "msgspec", "structlog", "starlette", "http.server"} & set(sys.modules)))
"""
OWN = """
import pytest

@pytest.fixture
def webhook_receiver():
    return "ours"

def test_a_fixture_of_the_project_wins(webhook_receiver):
    assert webhook_receiver == "ours"
"""


def pytest_in(folder: Path, *arguments: str, env: dict[str, str] | None = None, **files: str) -> str:
    """What pytest prints in a project with these files."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "error", "-rA", *arguments],
        cwd=folder,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=CEILING_S,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_new_project_has_the_fixtures(tmp_path):
    assert "1 passed" in pytest_in(tmp_path, test_shop=USES)


@pytest.mark.parametrize("env", [{}, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}])
def test_the_line_in_conftest_still_works_and_is_how_it_is_done_without_plugins(tmp_path, env):
    assert "1 passed" in pytest_in(tmp_path, env=env, conftest=OLD_LINE, test_shop=USES)


def test_it_can_be_turned_off(tmp_path):
    assert "fixture 'hookline_server' not found" in pytest_in(tmp_path, "-p", "no:hookline", test_shop=USES)


def test_a_project_that_does_not_use_it_loads_neither_server_nor_receiver(tmp_path):
    # Without other plugins: what those load is not ours to say.
    others = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    printed = pytest_in(tmp_path, "-p", "hookline.testing.plugin", env=others, test_it=LOADED)
    assert "1 passed" in printed
    (ours,) = re.findall(r"ours: (.*)", printed)
    light = {"hookline", "hookline.errors", "hookline.version", "hookline.testing"}
    assert set(ours.split()) - light == {"hookline.testing.fixtures", "hookline.testing.plugin"}
    assert re.findall(r"others:(.*)", printed) == [""]


def test_a_fixture_of_the_project_s_own_wins(tmp_path):
    assert "1 passed" in pytest_in(tmp_path, test_own=OWN)
