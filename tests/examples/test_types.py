"""Each shop has types that mypy --strict accepts, with the configuration that lies beside it."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples.following import CEILING_S, EXAMPLES


@pytest.mark.parametrize("example", ["django_shop", "fastapi_shop"])
def test_mypy_finds_nothing(example: str, tmp_path: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "."],
        cwd=EXAMPLES / example,
        capture_output=True,
        text=True,
        timeout=CEILING_S,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
