"""A log line does not reveal what was in memory."""

import contextlib
import os
import pty
import subprocess
import sys
import textwrap

from server_process import CEILING_S

CANARY = "whsec_canary"
FAIL = f"""
    secret = "{CANARY}"
    try:
        raise RuntimeError("planted")
    except RuntimeError:
        structlog.get_logger().exception("it.failed")
"""
EMBEDDED = f"""
import structlog
from hookline.app import Hookline

Hookline("sqlite:///x.db")
{textwrap.dedent(FAIL)}
"""
SERVING = f"""
import structlog
from hookline.cli.server.logs import configure

configure()
{textwrap.dedent(FAIL)}
"""


def said_by(code: str, *, on_terminal: bool) -> str:
    """What the program writes to stderr."""
    ear, mouth = pty.openpty() if on_terminal else os.pipe()
    try:
        subprocess.run([sys.executable, "-c", code], stderr=mouth, check=True, timeout=CEILING_S)
    finally:
        os.close(mouth)
    found = b""
    with contextlib.suppress(OSError):  # how a terminal says that the other side is gone
        while piece := os.read(ear, 4096):
            found += piece
    os.close(ear)
    return found.decode()


def test_an_embedded_hookline_does_not_print_local_variables():
    said = said_by(EMBEDDED, on_terminal=False)
    assert "planted" in said
    assert CANARY not in said


def test_a_server_on_a_terminal_does_not_print_local_variables():
    said = said_by(SERVING, on_terminal=True)
    assert "planted" in said
    assert CANARY not in said
