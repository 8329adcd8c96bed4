"""What is the synchronous client's code, given the asynchronous one's?

The same without the awaiting. Run as a program it writes the files; the test compares them.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "src/hookline/client"
FROM, TO = CLIENT / "aio", CLIENT / "blocking"
NOT_MIRRORED = {"client.py", "__init__.py"}  # each does its own I/O

_WORDS = (
    (r"\basync (?=def |for |with )", ""),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\b__aiter__\b", "__iter__"),
    (r"for (\w+) in (\S+):\n +yield \1\n", r"yield from \2\n"),
    (r"\bhookline\.client\.aio\b", "hookline.client.blocking"),
)


def files() -> dict[Path, str]:
    """Each file of the synchronous client that is a mirror, and what it holds."""
    found = sorted(path for path in FROM.glob("*.py") if path.name not in NOT_MIRRORED)
    return {TO / path.name: mirrored(path.read_text()) for path in found}


def mirrored(source: str) -> str:
    for pattern, replacement in _WORDS:
        source = re.sub(pattern, replacement, source)
    for command in (["check", "--quiet", "--select", "I", "--fix"], ["format", "--quiet"]):
        source = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TO / "any.py"), "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return source


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
