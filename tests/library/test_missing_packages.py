"""A package that is not installed is named when the object is made, with the line that installs it."""

import subprocess
import sys

import pytest

from server_process import environment

PROGRAM = """
import sys
sys.modules["{package}"] = None  # as if it were not installed
from hookline import Hookline, HooklineClient, SyncHookline, SyncHooklineClient, errors, outbox, receiver
try:
    {made}
except errors.MissingExtra as error:
    assert isinstance(error, ImportError) and isinstance(error, errors.HooklineError)
    print(error)
"""


@pytest.mark.parametrize(
    ("made", "package", "extra"),
    [
        ("HooklineClient()", "aiohttp", "client"),
        ("Hookline()", "structlog", "server"),
        ("SyncHookline()", "structlog", "server"),
        ('Hookline("postgresql://127.0.0.1/hooks")', "asyncpg", "postgres"),
        ('SyncHookline("postgresql://127.0.0.1/hooks")', "asyncpg", "postgres"),
    ],
)
def test_a_missing_package_is_named_when_the_object_is_made(made, package, extra, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(made=made, package=package)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert f"needs {package}, which is not installed: pip install 'hookline[{extra}]'." in done.stdout
