"""A field is added to endpoints by the steps that CONTRIBUTING.md lists, each of which is needed.

A copy of the source gets a made-up field. Real processes then run from the copy.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from hookline.store.migrations import read_migrations
from server_process import CEILING_S, ServerProcess, environment, run

ROOT = Path(__file__).parents[2]
MOST_FILES = 7
LEVEL = len(read_migrations("hookline.store.sqlite.migrations"))
# The line that stands before the new one, and the new one.
ADDED = {
    "src/hookline/model.py": ("    max_in_flight: int = 5\n", "    priority: int | None = None\n"),
    "src/hookline/validate/endpoint_fields.py": (
        "FIELDS: tuple[EndpointField, ...] = (\n",
        "    EndpointField(\n"
        '        name="priority",\n'
        '        check=_whole("priority", 1, 9),\n'
        "        schema=api_schema.whole(1, 9),\n"
        '        text="how important it is",\n'
        "    ),\n",
    ),
    "src/hookline/reports/views.py": ("    max_in_flight: int\n", "    priority: int | None\n"),
    "src/hookline/store/endpoint_columns.py": ("COLUMNS = {\n", '    "priority": Form.PLAIN,\n'),
}
MIGRATIONS = ("src/hookline/store/sqlite/migrations/", "src/hookline/store/postgres/migrations/")
STEPS = {*ADDED, *MIGRATIONS}

THROUGH_THE_LIBRARY = """
import asyncio, sys
from hookline.app import Hookline
from hookline.config import Settings

async def main():
    async with Hookline(sys.argv[1], settings=Settings(dev=True)) as hooks:
        made = await hooks.create_endpoint(url="https://example.com/", events=["*"], priority=3)
        kept = await hooks.update_endpoint(made.id, description="the priority stays")
        changed = await hooks.update_endpoint(made.id, priority=4)
        reset = await hooks.update_endpoint(made.id, priority=None)
        print([each.priority for each in (made, kept, changed, reset)])

asyncio.run(main())
"""
THROUGH_THE_CLIENT = """
import sys
from hookline.client import SyncHooklineClient

with SyncHooklineClient(sys.argv[1]) as client:
    made = client.create_endpoint("https://example.com/", ["*"], priority=3)
    read = client.endpoint(made.id)
    changed = client.update_endpoint(made.id, priority=4)
    [listed] = [each for each in client.endpoints() if each.id == made.id]
    reset = client.update_endpoint(made.id, priority=None)
    print([each.priority for each in (made, read, changed, listed, reset)])
"""


class Copy:
    """The source with the field added, but for one step."""

    def __init__(self, folder: Path, *, without: str | None = None) -> None:
        for name in ("src", "scripts"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        for step in STEPS - {without}:
            if step in MIGRATIONS:
                file = folder / step / f"{LEVEL + 1:04}_priority.sql"
                file.write_text(
                    f"-- serves: {LEVEL:04}\nALTER TABLE endpoints ADD COLUMN priority integer;\n"
                )
            else:
                before, line = ADDED[step]
                text = (folder / step).read_text()
                assert text.count(before) == 1, step
                (folder / step).write_text(text.replace(before, before + line))
        self.folder = folder
        paths = [str(folder / "src"), os.environ.get("PYTHONPATH", "")]
        self.env = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def python(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment(self.env),
            capture_output=True,
            text=True,
            timeout=CEILING_S,
            check=False,
        )


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    return "sqlite:///hooks.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def test_contributing_lists_these_steps_and_no_more_than_seven():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("## Add a field to endpoints\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\d\. `([^`]+)`", section, re.MULTILINE)) == STEPS
    assert len(STEPS) <= MOST_FILES
    assert "python scripts/mirror_client.py" in section


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """The copy after every step."""
    copy = Copy(tmp_path_factory.mktemp("field") / "copy")
    checked = copy.python("scripts/mirror_client.py", "--check")
    assert (checked.returncode, "client/endpoint.py" in checked.stdout) == (1, True), checked
    assert copy.python("scripts/mirror_client.py").returncode == 0
    return copy


def test_these_steps_are_enough(copy: Copy, database: str):
    used = copy.python("-c", THROUGH_THE_LIBRARY, database)
    assert used.stdout == "[3, 3, 4, None]\n", used
    with ServerProcess("--dev", "--database", database, cwd=copy.folder, env=copy.env) as server:
        through_the_api(server.url)
        through_the_command_line(copy, server.url)
        used = copy.python("-c", THROUGH_THE_CLIENT, server.url)
        assert used.stdout == "[3, 3, 4, 4, None]\n", used


def through_the_api(url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False, timeout=CEILING_S) as client:
        endpoint = {"url": "https://example.com/", "events": ["*"], "priority": 10}
        refused = client.post("/v1/endpoints", json=endpoint).json()
        assert (refused["code"], refused["errors"][0]["pointer"]) == ("invalid_field", "/priority")
        made = client.post("/v1/endpoints", json={**endpoint, "priority": 3}).json()
        changed = client.patch(f"/v1/endpoints/{made['id']}", json={"priority": 4}).json()
        read = client.get(f"/v1/endpoints/{made['id']}").json()
        listed = client.get("/v1/endpoints", params={"limit": 1}).json()["data"][0]  # the newest
        assert [each["priority"] for each in (made, changed, read, listed)] == [3, 4, 4, 4]
        schemas = client.get("/openapi.json").json()["components"]["schemas"]
        said = {"type": ["integer", "null"], "minimum": 1, "maximum": 9, "description": "how important it is"}
        assert [schemas[name]["properties"]["priority"] for name in ("EndpointInput", "EndpointPatch")] == [
            said,
            said,
        ]
        assert "priority" in schemas["Endpoint"]["required"]


def through_the_command_line(copy: Copy, url: str) -> None:
    def told(*arguments: str) -> Any:
        done = run("endpoints", *arguments, "--json", cwd=copy.folder, env={**copy.env, "HOOKLINE_URL": url})
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    made = told("create", "https://example.com/", "--event", "*", "--field", "priority=3")
    changed = told("update", made["id"], "--field", "priority=4")
    read = told("show", made["id"])
    assert [each["priority"] for each in (made, changed, read)] == [3, 4, 4]


@pytest.mark.parametrize("step", sorted(STEPS - {"src/hookline/store/postgres/migrations/"}))
def test_each_step_is_needed(tmp_path: Path, step: str):
    copy = Copy(tmp_path / "copy", without=step)
    used = copy.python("-c", THROUGH_THE_LIBRARY, "sqlite:///hooks.db")
    assert used.stdout != "[3, 3, 4, None]\n"


def test_the_migration_of_postgresql_is_needed(tmp_path: Path, postgres_url: str):
    copy = Copy(tmp_path / "copy", without="src/hookline/store/postgres/migrations/")
    used = copy.python("-c", THROUGH_THE_LIBRARY, postgres_url)
    assert used.returncode == 1
    assert "priority" in used.stderr
