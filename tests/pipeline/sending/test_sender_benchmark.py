"""The benchmark of the sender runs, and the sender is still cheap."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "sender.py"


def test_a_request_costs_a_fraction_of_what_aiohttp_takes_for_it() -> None:
    finished = subprocess.run(
        [sys.executable, SCRIPT, "--quick"], capture_output=True, text=True, timeout=600
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert [line.split()[0] for line in finished.stdout.splitlines()] == [
        "client",
        "hookline",
        "pyreqwest",
        "aiohttp",
        "httpx",
    ]
