"""Imports point down, and effects stay where they belong."""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from architecture import (
    API_CLIENTS,
    DIALLING,
    HTTP_CLIENTS,
    OTHER_CLIENTS,
    Rule,
    Violation,
    imported,
    name_is,
    violations,
)
from hookline.pipeline.lanes.circuit_breaker import CircuitBreaker
from hookline.pipeline.lanes.flow_control import FlowControl
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.read_position import ReadPosition
from hookline.pipeline.lanes.strict_order import StrictOrder

SOURCE = Path(__file__).parent.parent / "src"


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_breaks_no_rule(module):
    assert violations(module, MODULES[module].read_text()) == []


PLANTED = [
    (Rule.RELATIVE, "hookline.pipeline.settle", "from . import lanes"),
    (Rule.RELATIVE, "hookline.rules.retry", "from ..clock import Clock"),
    (Rule.UNKNOWN, "hookline.helpers", ""),
    (Rule.DIRECTION, "hookline.errors", "from hookline.model import State"),
    (Rule.DIRECTION, "hookline.model", "from hookline.ids import show"),
    (Rule.DIRECTION, "hookline.ids", "import hookline.store.contract"),
    (Rule.DIRECTION, "hookline.clock", "from hookline import pipeline"),
    (Rule.DIRECTION, "hookline.crypto.signing", "from hookline import Hookline"),
    (Rule.DIRECTION, "hookline.store.sqlite.store", "from hookline.rules.retry import decide"),
    (Rule.DIRECTION, "hookline.rules.retry", "from hookline.store.contract import Settlement"),
    (Rule.DIRECTION, "hookline.store.contract", "from hookline.pipeline.sending.contract import Answer"),
    (Rule.DIRECTION, "hookline.receiver", "from hookline.store.contract import Store"),
    (Rule.DIRECTION, "hookline.pipeline.intake.accept", "from hookline.app import Hookline"),
    (Rule.DIRECTION, "hookline.reports.queries", "from hookline.api import server"),
    (Rule.DIRECTION, "hookline.api.calls.events", "from hookline.dashboard import pages"),
    (Rule.DIRECTION, "hookline.api.calls.events", "from hookline.cli import main"),
    (Rule.DIRECTION, "hookline.cli.server.serve", "from hookline.testing import receiver"),
    (Rule.DIRECTION, "hookline.rules.retry", "def f():\n    from hookline.app import Hookline"),
    (Rule.DIRECTION, "hookline.validate.names", "from hookline.config import Settings"),
    (Rule.DIRECTION, "hookline.pipeline.settle", "from hookline.admin import keys"),
    (Rule.DIRECTION, "hookline.admin.keys", "from hookline.reports import queries"),
    (Rule.PIPELINE, "hookline.pipeline.sending.pool", "from hookline.pipeline.lanes.lane import Lane"),
    (Rule.PIPELINE, "hookline.pipeline.lanes.lane", "from hookline.pipeline.worker import Worker"),
    (Rule.PIPELINE, "hookline.pipeline.settle", "from hookline.pipeline.maintenance import jobs"),
    (Rule.PIPELINE, "hookline.pipeline.helpers", "from hookline.pipeline.lanes.lane import Lane"),
    (Rule.STORES, "hookline.store.sqlite.store", "from hookline.store.postgres import sql"),
    (Rule.STORES, "hookline.store.postgres.lanes", "import hookline.store.sqlite.lanes"),
    (Rule.CONTRACT, "hookline.pipeline.settle", "from hookline.store.sqlite.store import SqliteStore"),
    (Rule.CONTRACT, "hookline.pipeline.settle", "from hookline import store"),
    *[
        (Rule.PURE, "hookline.rules.retry", f"import {name}")
        for name in (
            "asyncio",
            "time",
            "random",
            "secrets",
            "socket",
            "os",
            "sqlite3",
            "asyncpg",
            "pathlib",
            "logging",
        )
    ],
    (Rule.PURE, "hookline.rules", "from os.path import exists"),
    (Rule.PURE, "hookline.rules.retry", "from hookline.clock import Clock"),
    (Rule.PURE, "hookline.rules.retry", "from hookline.pipeline.sending import net"),
    (Rule.PURE, "hookline.rules.retry", "def f():\n    return open('x')"),
    (Rule.CLOCK, "hookline.pipeline.settle", "import time\nat = time.time()"),
    (Rule.CLOCK, "hookline.pipeline.settle", "import time as t\nmeasure = t.monotonic"),
    (Rule.CLOCK, "hookline.ids", "from time import time_ns"),
    (Rule.CLOCK, "hookline.api.calls.events", "from datetime import datetime\nat = datetime.now()"),
    (Rule.CLOCK, "hookline.api.calls.events", "import datetime\nat = datetime.datetime.now(datetime.UTC)"),
    (Rule.CLOCK, "hookline.rules.retry", "from datetime import date as day\nat = day.today()"),
    (Rule.CLOCK, "hookline.pipeline.settle", "import asyncio\nasync def f():\n    await asyncio.sleep(1)"),
    (Rule.CLOCK, "hookline.pipeline.settle", "from asyncio import sleep"),
    (Rule.CLOCK, "hookline.store.sqlite.store", "import time\ntime.sleep(1)"),
    (Rule.CHANCE, "hookline.pipeline.settle", "import random\nroll = random.random()"),
    (Rule.CHANCE, "hookline.pipeline.settle", "from random import choice"),
    (Rule.CHANCE, "hookline.app", "import random\nrandom.seed(1)"),
    (Rule.CHANCE, "hookline.pipeline.settle", "from random import Random\nrng = Random()"),
    (Rule.CHANCE, "hookline.ids", "import uuid\nid = uuid.uuid4()"),
    (Rule.CHANCE, "hookline.ids", "import os\nid = os.urandom(16)"),
    (Rule.NETWORK, "hookline.pipeline.sending.pool", "import socket\ns = socket.socket()"),
    (Rule.NETWORK, "hookline.pipeline.sending.pool", "from socket import getaddrinfo"),
    (Rule.NETWORK, "hookline.pipeline.sending.pool", "def f(loop):\n    return loop.create_connection(None)"),
    (Rule.NETWORK, "hookline.api.server", "import socket\ns = socket.create_connection(('a', 1))"),
    (Rule.NETWORK, "hookline.cli.server.serve", "import asyncio\nopen_it = asyncio.open_connection"),
    (Rule.NETWORK, "hookline.config", "from socket import *"),
    *[
        (Rule.CLIENT, module, f"import {name}")
        for module in (
            "hookline.app",
            "hookline.api.calls.events",
            "hookline.cli.server.serve",
            "hookline.pipeline.sending.pool",
        )
        for name in ("requests", "httpx", "aiohttp", "urllib.request", "http.client")
    ],
    (Rule.CLIENT, "hookline.app", "from urllib import request"),
    (Rule.CLIENT, "hookline.cli.client", "import httpx"),
    (Rule.CLIENT, "hookline.app", "def f():\n    import httpx"),
    (Rule.CLIENT, "hookline.client.call", "import http.client"),
    (Rule.CLIENT, "hookline.client.blocking.client", "import aiohttp"),
    (Rule.CLIENT, "hookline.client.aio.client", "import httpx"),
    (Rule.CLIENT, "hookline.pipeline.notifying.channels", "import smtplib"),
    (Rule.CLIENT, "hookline.pipeline.notifying.mail", "from ftplib import FTP"),
    (Rule.CLIENT, "hookline.logs", "from logging.handlers import HTTPHandler"),
    (Rule.SERVER, "hookline.client.call", "from hookline.validate.schemas.json_schema import Schema"),
    (Rule.SERVER, "hookline.client.call", "from hookline.store.contract import Store"),
    (Rule.SERVER, "hookline.client.aio.client", "from hookline.crypto.signing import new_secret"),
    (Rule.DIRECTION, "hookline.client.call", "from hookline.api.problem import Problem"),
    (Rule.DIRECTION, "hookline.pipeline.worker", "from hookline.client import HooklineClient"),
    (Rule.CLOCK, "hookline.client.blocking.client", "import time\ntime.sleep(1)"),
    (Rule.DRIVER, "hookline.app", "import asyncpg"),
    (Rule.DRIVER, "hookline.store.sqlite.store", "from asyncpg import exceptions"),
    (Rule.DRIVER, "hookline.store.postgres.store", "import sqlite3"),
    (Rule.DRIVER, "hookline.receiver.once", "import sqlite3"),
    (Rule.DRIVER, "hookline.receiver.once", "def f():\n    from psycopg import Connection"),
    (Rule.DRIVER, "hookline.outbox.blocking", "def f():\n    from asyncpg import Connection"),
    (Rule.SERVER, "hookline.outbox.drafts", "from hookline.pipeline.intake.drafts import Draft"),
    (Rule.SERVER, "hookline.outbox.drafts", "from hookline.config import Settings"),
    (Rule.SERVER, "hookline.outbox.drafts", "from hookline.store.contract import Store"),
    (Rule.SERVER, "hookline.outbox.drafts", "from hookline.validate.schemas.json_schema import Schema"),
    (Rule.FRAMEWORK, "hookline.outbox.publishing", "from django.db import transaction"),
    (Rule.FRAMEWORK, "hookline.outbox.blocking", "import sqlalchemy"),
    (Rule.UNSAFE, "hookline.store.sqlite.columns", "import pickle"),
    (Rule.UNSAFE, "hookline.store.sqlite.columns", "from marshal import loads"),
    (Rule.UNSAFE, "hookline.config", "value = eval('1')"),
    (Rule.UNSAFE, "hookline.config", "exec('1')"),
    (Rule.UNSAFE, "hookline.config", "import yaml\nyaml.load('a')"),
    (Rule.UNSAFE, "hookline.cli.first_answer", "import subprocess\nsubprocess.run('ls', shell=True)"),
    (Rule.UNSAFE, "hookline.cli.first_answer", "import os\nos.system('ls')"),
    (Rule.UNSAFE, "hookline.cli.first_answer", "from tempfile import mktemp\nname = mktemp()"),
    (Rule.UNSAFE, "hookline.client.aio.client", "import aiohttp\naiohttp.get('a', verify=False)"),
    (Rule.UNSAFE, "hookline.pipeline.sending.dial", "import ssl\nmode = ssl.CERT_NONE"),
    (Rule.UNSAFE, "hookline.pipeline.sending.dial", "def f(context):\n    context.check_hostname = False"),
    (Rule.UNSAFE, "hookline.pipeline.sending.dial", "import ssl\nmake = ssl._create_unverified_context"),
    (Rule.UNSAFE, "hookline.dashboard.page", "from jinja2 import Environment\nEnvironment(autoescape=False)"),
    (Rule.UNSAFE, "hookline.crypto.signing", "from random import Random\ndef f(rng: Random): ..."),
    (Rule.UNSAFE, "hookline.admin.keys", "import random\nmake = random.SystemRandom"),
    (Rule.CLOCK, "hookline.testing.receiver", "import time\nat = time.time()"),
    (Rule.UNSAFE, "hookline.config", "from importlib import import_module"),
]


@pytest.mark.parametrize(("rule", "module", "source"), PLANTED)
def test_a_planted_violation_is_found(rule, module, source):
    assert rule in {violation.rule for violation in violations(module, source)}


def test_every_rule_has_a_planted_violation():
    assert {rule for rule, _, _ in PLANTED} == set(Rule)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("hookline.clock", "import time, asyncio\nat = time.time()\nwait = asyncio.sleep"),
        (
            "hookline.pipeline.sending.net",
            "import socket\ns = socket.socket()\ndef f(loop):\n    return loop.getaddrinfo('a', 1)",
        ),
        (
            "hookline.ids",
            "from random import Random\nfrom hookline.clock import Clock\ndef f(rng: Random): ...",
        ),
        (
            "hookline.app",
            "from random import Random\nfrom hookline.validate.endpoint_fields import create\nrng = Random()",
        ),
        ("hookline.app", "from hookline.store.sqlite.store import SqliteStore\nfrom hookline import config"),
        ("hookline", "from hookline.app import Hookline\nfrom hookline.errors import HooklineError"),
        ("hookline.cli.server.serve", "from hookline import Hookline\nimport socket\ns = socket.socket()"),
        (
            "hookline.pipeline.settle",
            "from hookline.store.contract import Store\nfrom hookline.rules import retry",
        ),
        (
            "hookline.pipeline.sending.pool",
            "import socket\noption = (socket.IPPROTO_TCP, socket.TCP_NODELAY)",
        ),
        ("hookline.store.postgres.store", "import asyncpg\nimport asyncio"),
        (
            "hookline.rules.retry",
            "import msgspec\nfrom datetime import datetime\nfrom hookline.rules import outcome",
        ),
        (
            "hookline.rules.outcome",
            "import re\nshape = re.compile('a')\nfrom email.utils import parsedate_to_datetime",
        ),
        ("hookline.testing.client", "import httpx"),
        ("hookline.cli.client", "from http.client import HTTPConnection"),
        ("hookline.pipeline.notifying.mail", "import smtplib"),
        ("hookline.client.aio.client", "def f():\n    import aiohttp"),
        ("hookline.client.blocking.client", "from http.client import HTTPConnection"),
    ],
)
def test_what_is_meant_to_be_used_is_not_refused(module, source):
    assert violations(module, source) == []


def test_a_violation_names_the_line_and_the_culprit():
    found = violations("hookline.ids", "import time\n\nat = time.time()")
    assert found == [Violation(Rule.CLOCK, 3, "time.time")]


def imports_at_run_time() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text())
        body = [node for node in tree.body if not is_for_types_only(node)]
        names = {name for _, name in imported(ast.Module(body=body, type_ignores=[]))}
        graph[module] = {
            name if name in MODULES else name.rpartition(".")[0] for name in names
        } & MODULES.keys()
    return graph


def is_for_types_only(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for other in sorted(graph.get(module, ())):
            found = walk(other, [*path, module])
            if found:
                return found
        done.add(module)
        return []

    return next(filter(None, (walk(module, []) for module in sorted(graph))), [])


def test_no_module_imports_itself_by_a_detour():
    assert cycle_in(imports_at_run_time()) == []


def test_a_planted_detour_is_found():
    assert cycle_in({"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}) == ["b", "d", "b"]


# --- one way out ---

SERVING = ("hookline", "hookline.app", "hookline.cli.server.serve", "hookline.cli.server.worker")
WAYS_OUT = {"hookline.pipeline.sending.net", "hookline.pipeline.notifying.mail"}  # the sender's, and mail's
CONNECTING = frozenset({"connect", "connect_ex", "sendto"})  # of sockets


class Outward(NamedTuple):
    """What a module imports, also within functions, and whether it opens connections."""

    imports: frozenset[str]
    opens: bool


@cache
def outward(source: str) -> Outward:
    tree = ast.parse(source)
    for_types = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and is_for_types_only(node)]
    hidden = {id(inner) for node in for_types for inner in ast.walk(node)}
    nodes = [node for node in ast.walk(tree) if id(node) not in hidden]
    names = {
        name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for _, name in imported(node)
    }
    has_sockets = any(name.split(".")[0] in ("socket", "asyncio", "uvloop") for name in names)
    opens = any(name.split(".")[0] in OTHER_CLIENTS or name_is(name, HTTP_CLIENTS) for name in names) or any(
        node.attr in DIALLING
        for node in nodes
        if isinstance(node, ast.Attribute) and "_net" not in ast.unparse(node.value)
    )
    opens = opens or any(
        has_sockets and node.func.attr in CONNECTING and "_net" not in ast.unparse(node.func)
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )
    return Outward(frozenset(names), opens)


def imports_at_any_time(sources: dict[str, str]) -> dict[str, set[str]]:
    """The modules that each module imports, and the packages that are imported with them."""
    return {
        module: {
            ".".join(name.split(".")[:length])
            for name in outward(source).imports
            for length in range(1, name.count(".") + 2)
        }
        & sources.keys()
        for module, source in sources.items()
    }


def reached(graph: dict[str, set[str]], entrances: Iterable[str]) -> set[str]:
    found: set[str] = set()
    left = list(entrances)
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            left += graph[module]
    return found


def ways_out(sources: dict[str, str]) -> set[str]:
    serving = reached(imports_at_any_time(sources), SERVING)
    return {
        module
        for module in serving
        if not module.startswith("hookline.store.") and outward(sources[module]).opens
    }


def sources() -> dict[str, str]:
    return {module: path.read_text() for module, path in MODULES.items()}


def test_what_serves_and_delivers_has_one_way_out_and_mail():
    assert ways_out(sources()) == WAYS_OUT
    assert not reached(imports_at_any_time(sources()), SERVING) & API_CLIENTS.keys()


@pytest.mark.parametrize(
    "planted",
    [
        "from http.client import HTTPSConnection",
        "def f():\n    import socket\n    s = socket.socket()\n    s.connect(('a', 1))",
        "import asyncio\nasync def f():\n    await asyncio.open_connection('a', 1)",
        "import smtplib",
        "def f():\n    from hookline.cli.client import Client",
    ],
)
@pytest.mark.parametrize(
    "module", ["hookline.api.calls.accounts", "hookline.reports.status", "hookline.dashboard.app"]
)
def test_another_way_out_is_seen(module, planted):
    found = sources()
    found[module] += "\n" + planted
    assert ways_out(found) - WAYS_OUT in ({module}, {"hookline.cli.client"})


# --- a newcomer finds the parts ---

TOP_FILES = 12
PACKAGE_FILES = 16
ONE_FILE_EACH = {"rules", "cli/commands"}  # a decision, a command


def files_of(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]


def test_the_top_level_has_few_files():
    assert len(list((SOURCE / "hookline").glob("*.py"))) <= TOP_FILES


@pytest.mark.parametrize(
    "package",
    sorted({str(path.parent.relative_to(SOURCE / "hookline")) for path in MODULES.values()} - {"."}),
)
def test_a_package_has_no_more_files_than_one_reads_at_a_glance(package):
    if package not in ONE_FILE_EACH:
        assert len(files_of(SOURCE / "hookline" / package)) <= PACKAGE_FILES


def repeated(sources: dict[str, str]) -> dict[str, list[str]]:
    """The classes that are defined in several modules. A client's may mirror an object or an error of the API."""
    homes: dict[str, list[str]] = {}
    for module, source in sources.items():
        if module.startswith(NAMED_BY_DJANGO):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module)
    return {
        name: modules
        for name, modules in homes.items()
        if len([each for each in modules if not each.startswith(MIRRORS)]) > 1
        or len([each for each in modules if each.startswith(MIRRORS)]) > 1
    }


MIRRORS = tuple(
    f"hookline.client.{each}" for each in ("answers", "endpoint", "errors", "outbox", "overview", "words")
)
MIRRORS += ("hookline.outbox.drafts", "hookline.library")  # as applications see a draft, and hookline itself
NAMED_BY_DJANGO = "hookline.outbox.django.migrations."  # each has a class Migration


def test_a_class_name_stands_for_one_thing():
    assert repeated({module: path.read_text() for module, path in MODULES.items()}) == {}


def test_a_class_name_that_stands_twice_is_seen():
    twice = {"hookline.model": "class Worker: ...", "hookline.pipeline.worker": "class Worker: ..."}
    assert repeated(twice) == {"Worker": ["hookline.model", "hookline.pipeline.worker"]}
    assert repeated({**twice, "hookline.model": "", "hookline.client.overview": "class Worker: ..."}) == {}


# --- only Lane writes Lane ---

LANE = "hookline.pipeline.lanes.lane"
LANE_PARTS = {
    f"hookline.pipeline.lanes.{part}"
    for part in ("flow_control", "circuit_breaker", "strict_order", "read_position")
}
OTHERS = {"self", "host", "hop", "found", "chore"}  # hosts and chores have attributes of the same names


def writes_a_lane(source: str) -> list[str]:
    """The attributes of lanes, or of their parts, that this module assigns to."""
    attributes = {
        name
        for part in (Lane, FlowControl, CircuitBreaker, StrictOrder, ReadPosition)
        for name in part.__slots__
    }
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store | ast.Del)
        and node.attr in attributes
        and ast.unparse(node.value).rpartition(".")[2] not in OTHERS
    ]


def test_nothing_but_a_lane_writes_a_lane():
    others = [
        each for each in MODULES if each.startswith("hookline.pipeline") and each not in {LANE, *LANE_PARTS}
    ]
    assert {module: writes_a_lane(MODULES[module].read_text()) for module in others} == {
        each: [] for each in others
    }


@pytest.mark.parametrize(
    "planted",
    [
        "lane.behind = True",
        "flight.lane.in_flight -= 1",
        "each.flow.hold_until = 0.0",
        "lane.order.head, x = 1, 2",
        "del lane.mode",
    ],
)
def test_a_module_that_writes_a_lane_is_seen(planted):
    assert len(writes_a_lane(planted)) == 1
