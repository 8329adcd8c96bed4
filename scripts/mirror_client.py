"""Writes the synchronous client from the asynchronous one: the same without the awaiting.

Run it after a change of `src/hookline/client/aio`. With `--check` it writes nothing and exits with 1 if a file is not as
it would be written.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "src/hookline/client"
FROM, TO = CLIENT / "aio", CLIENT / "blocking"
MARK = "# Generated from client/aio by scripts/mirror_client.py: change that, and run it.\n"
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
    """The module without the awaiting, marked as generated."""
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
    return MARK + source


def main() -> int:
    stale = [path for path, text in files().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not what scripts/mirror_client.py writes: run it")
        return 1 if stale else 0
    for path in stale:
        path.write_text(files()[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
