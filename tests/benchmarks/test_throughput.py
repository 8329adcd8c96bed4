"""The throughput benchmark runs, and every accepted event is received exactly as it was sent."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "throughput.py"


def test_every_accepted_event_is_received_exactly_as_sent() -> None:
    finished = subprocess.run(
        [sys.executable, SCRIPT, "--quick", "--stores", "sqlite", "--no-baseline"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "accepted/s" in finished.stdout
