"""What an import brings along. How long it takes is measured by benchmarks/imports.py, on a machine that is idle."""

import subprocess
import sys

import pytest

from hookline.errors import EXTRAS
from server_process import environment

OPTIONAL = frozenset(EXTRAS)
NOT_FOR_RECEIVERS = OPTIONAL | {"asyncio", "msgspec", "click", "socket", "ssl", "sqlite3", "http", "logging"}
NOT_AT_ONCE = OPTIONAL - {"httptools", "idna", "structlog"} | {
    "click",
    "sqlite3",
    "hookline.api",
    "hookline.cli",
}
# Each way in with what it may not load: packages by their first name, ours by two.
WAYS_IN = {
    "import hookline": NOT_FOR_RECEIVERS,
    "import hookline.receiver": NOT_FOR_RECEIVERS,
    "import hookline.outbox": OPTIONAL | {"asyncio", "click", "socket", "ssl", "sqlite3"},
    "import hookline.testing": NOT_FOR_RECEIVERS,
    "from hookline.testing import WebhookReceiver": OPTIONAL | {"click", "sqlite3"},
    "from hookline import SyncHooklineClient": OPTIONAL | {"click", "sqlite3"},
    "from hookline import HooklineClient": OPTIONAL | {"click", "sqlite3"},
    "from hookline import Hookline": NOT_AT_ONCE,
}


@pytest.mark.parametrize("program", WAYS_IN)
def test_an_import_brings_nothing_along_that_it_does_not_need(program):
    named = f"{program}\nimport sys\nprint(*{{'.'.join(each.split('.')[:n]) for each in sys.modules for n in (1, 2)}})"
    done = subprocess.run(
        [sys.executable, "-c", named], env=environment(), capture_output=True, text=True, check=True
    )
    assert not set(done.stdout.split()) & WAYS_IN[program]
