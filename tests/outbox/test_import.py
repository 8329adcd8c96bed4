"""Importing the outbox costs an application next to nothing."""

import subprocess
import sys

import pytest

LOADED = """
import sys
import hookline.outbox
heavy = {"asyncio", "asyncpg", "psycopg", "psycopg2", "sqlalchemy", "django", "starlette", "click", "sqlite3", "pydantic"}
heavy |= {"cryptography", "httptools", "socket", "uvicorn", "structlog", "jinja2", "jsonschema_rs"}
ours = {name for name in sys.modules if name.startswith("hookline.")}
light = {"errors", "model", "outbox", "rfc3339", "rules", "validate", "version", "words"}
light_checks = {"hookline.validate", "hookline.validate.names", "hookline.validate.payload", "hookline.validate.suggest"}
light_checks |= {"hookline.validate.payload_encoding"}
print(*sorted(heavy & set(sys.modules)))
print(*sorted(name for name in ours if name.split(".")[1] not in light))
print(*sorted({name for name in ours if name.startswith("hookline.validate")} - light_checks))
print(*sorted({name for name in ours if name.startswith("hookline.rules.")} - {"hookline.rules.hops"}))
"""

PUBLISHES = """
import sys
import sqlite3
from hookline import outbox
connection = sqlite3.connect(":memory:")
connection.executescript(outbox.ddl("sqlite"))
outbox.publish(connection, "order.paid", {})
print(*sorted({"asyncpg", "psycopg", "sqlalchemy", "django", "starlette", "click", "pydantic"} & set(sys.modules)))
"""


@pytest.mark.parametrize("program", [LOADED, PUBLISHES])
def test_neither_the_server_nor_a_driver_comes_along(program):
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stdout.split() == []
