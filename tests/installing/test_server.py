"""`pip install 'hookline[server]'` serves on SQLite, and names the extras of PostgreSQL and of schemas."""

import asyncio
import json
import subprocess
import sys

import httpx
import pytest

from hookline.errors import EXTRAS
from hookline.testing import running_hookline
from installing.environments import PROJECT
from listener_process import ListenerProcess
from server_process import ServerProcess, environment

NO_POSTGRES = "a PostgreSQL database needs asyncpg, which is not installed: pip install 'hookline[postgres]'."
POSTGRES = "postgresql://user:canary@127.0.0.1:1/x"
NO_SCHEMAS = "needs jsonschema_rs, which is not installed: pip install 'hookline[schema]'."
# The names that are imported, where they are not the package's own.
IMPORTED = {"jsonschema-rs": "jsonschema_rs", "prometheus-client": "prometheus_client"}


def call(url: str, method: str, path: str, **given) -> httpx.Response:
    return httpx.request(method, url + path, trust_env=False, timeout=60, **given)


def test_a_server_delivers_and_refuses_to_be_set_a_schema(server, base, tmp_path):
    with ServerProcess("--dev", cwd=tmp_path, command=server.command) as process:
        env = {"HOOKLINE_URL": process.url, "XDG_STATE_HOME": str(tmp_path)}
        with ListenerProcess("--register", cwd=tmp_path, env=env, command=base.command) as ear:
            sent = base.run("send", "order.paid", '{"id": 42}', "--wait", cwd=tmp_path, env=env)
            assert sent.returncode == 0, sent.stderr
            assert ear.shown()["signature"]["is_good"]
            (endpoint,) = call(process.url, "GET", "/v1/endpoints").json()["data"]
            path = f"/v1/endpoints/{endpoint['id']}"
            filtered = call(process.url, "PATCH", path, json={"filter": "id == `1`"})
            assert filtered.status_code == 200  # every server can
        for path in ("/", "/docs", "/metrics", "/v1/status", "/openapi.json"):
            assert call(process.url, "GET", path).status_code == 200, path
        refused = call(process.url, "PUT", "/v1/event-types/order.paid", json={"schema": {"type": "object"}})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_field")
        assert refused.json()["detail"] == f"The server cannot check schemas: it {NO_SCHEMAS}"
        named = call(process.url, "PUT", "/v1/event-types/order.paid", json={"description": "Paid."})
        assert named.status_code == 200
        assert process.stop() == 0


@pytest.mark.parametrize("command", [("serve",), ("worker",), ("migrate",), ("keys", "list")])
def test_a_postgresql_database_names_its_extra(server, tmp_path, command):
    done = server.run(*command, "--database", POSTGRES, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert NO_POSTGRES in line
    assert "canary" not in line


def test_the_doctor_finds_that_an_extra_is_missing(server, tmp_path):
    done = server.run("doctor", "--json", "--database", POSTGRES, cwd=tmp_path)
    assert done.returncode == 1
    (found,) = [each for each in json.loads(done.stdout) if each["check"] == "database"]
    assert found["level"] == "bad"
    assert f"{found['detail']}: {found['step']}." == NO_POSTGRES


def test_a_server_does_not_start_beside_a_schema_that_it_cannot_check(server, tmp_path):
    database = f"sqlite:///{tmp_path}/x.db"

    async def describe() -> None:
        async with running_hookline(database) as hooks:
            await hooks.put_event_type("order.paid", schema={"type": "object"})

    asyncio.run(describe())
    for command in ("serve", "worker"):
        done = server.run(command, "--database", database, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"the schema of order.paid {NO_SCHEMAS}" in done.stderr
        assert "Traceback" not in done.stderr


SET_MEANWHILE = """
import sys
sys.modules["jsonschema_rs"] = None  # as if it were not installed
from hookline.logs import keep_plain
from hookline.model import EventType
from hookline.pipeline.catalogue.payload_rules import PayloadRules
from hookline.rules.loop_budget import LoopBudget
keep_plain()
rules = PayloadRules()
made = EventType(name="order.paid", description="", schema='{"type":"object"}', created_at=1.0, updated_at=1.0)
rules.describe([made])
try:
    next(rules.judge(1, "order.paid", b"{}", (), LoopBudget()))
except StopIteration as end:
    print(end.value.wanted.code, *end.value.wanted.errors)
"""


def test_a_schema_that_another_process_sets_refuses_events_instead_of_letting_them_through():
    done = subprocess.run(
        [sys.executable, "-c", SET_MEANWHILE], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("schema_mismatch ")
    assert NO_SCHEMAS in done.stdout
    assert "event_type.not_checked" in done.stderr


def test_the_table_of_extras_is_what_pyproject_says():
    found = {}
    for extra, wanted in PROJECT["optional-dependencies"].items():
        for each in wanted:
            name = each.partition(">")[0]
            if not name.startswith("hookline["):
                found[IMPORTED.get(name, name)] = extra
    assert found == EXTRAS
