"""Every bug of the fault matrix finds the code that it breaks: a renamed method would make its control useless."""

import subprocess
import sys

import pytest

from tests.chaos.registry import bugs

PLANT = "import sys; from tests.chaos.registry import bugs; bugs()[sys.argv[1]]()"


@pytest.mark.parametrize("bug", sorted(bugs()))
def test_a_bug_can_be_planted(bug, pytestconfig):
    """In a process of its own, which ends with it."""
    folder = pytestconfig.rootpath
    planted = subprocess.run(
        [sys.executable, "-c", PLANT, bug],
        cwd=folder,
        env={"PYTHONPATH": f"{folder}:{folder}/tests", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert planted.returncode == 0, planted.stderr
