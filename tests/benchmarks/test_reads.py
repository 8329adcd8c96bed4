"""The benchmarks of what is read about deliveries run, in small; their times are not judged here."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("script", "asked", "shown"),
    [
        (
            "stats",
            ["--scale", "0.05"],
            ["one endpoint", "page of 50 endpoints", "percentiles of 50", "health"],
        ),
        ("board", ["--scale", "0.05"], ["board", "board, remembered", "flow", "end to end, a day"]),
        ("health", ["--rows", "2000", "--waiting", "500"], ["look", "health", "page of 50 endpoints"]),
    ],
)
def test_every_question_is_asked_of_both_stores(script: str, asked: list[str], shown: list[str]) -> None:
    finished = subprocess.run(
        [sys.executable, BENCHMARKS / f"{script}.py", *asked],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    for store in ("sqlite", "postgresql"):
        _, found, rest = finished.stdout.partition(f"\n{store}: ")
        assert found, finished.stdout + finished.stderr
        for each in shown:
            assert f"\n  {each}: " in rest.partition("\npostgresql: ")[0], each
