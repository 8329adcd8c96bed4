"""Renews the locks: every package that developing and testing installs, with its version and the hashes of its files.

`python scripts/lock.py` keeps what is locked as far as `pyproject.toml` allows; `--upgrade` takes the newest versions.
It needs uv. One lock serves every Python that is supported: where versions differ, its lines have markers.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYPROJECT = ROOT / "pyproject.toml"
# Each lock with what it holds: the groups of pyproject.toml, and the project's own dependencies or not.
LOCKS = {
    "requirements-dev.lock": (("dev", "build"), True),
    "requirements-audit.lock": (("audit",), False),
    "requirements-fuzz.lock": (("fuzz",), False),
}
HEAD = "# Written by scripts/lock.py; do not edit. It is a lock of what pyproject.toml says: "


def main() -> int:
    uv = shutil.which("uv")
    if uv is None:
        print("uv is needed: `pip install uv`.", file=sys.stderr)
        return 1
    for name, (groups, has_project) in LOCKS.items():
        lock = ROOT / name
        command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", oldest_python()]
        command += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"]
        command += ["--upgrade"] if "--upgrade" in sys.argv[1:] else []
        command += ["--extra", "all", str(PYPROJECT)] if has_project else []
        command += [each for group in groups for each in ("--group", f"{PYPROJECT}:{group}")]
        subprocess.run([*command, "--output-file", str(lock)], check=True, stdout=subprocess.DEVNULL)
        lock.write_text(f"{HEAD}{said(groups, has_project=has_project)}\n{lock.read_text()}")
    return 0


def oldest_python() -> str:
    """The oldest Python that is supported, such as 3.11."""
    wanted: str = tomllib.loads(PYPROJECT.read_text())["project"]["requires-python"]
    return wanted.removeprefix(">=")


def said(groups: tuple[str, ...], *, has_project: bool) -> str:
    """A digest of what pyproject.toml asks for: another one means that the lock must be renewed."""
    table = tomllib.loads(PYPROJECT.read_text())
    asked = {
        "python": table["project"]["requires-python"],
        "groups": {name: table["dependency-groups"][name] for name in groups},
    }
    if has_project:
        asked["project"] = table["project"]["dependencies"]
        asked["extras"] = table["project"]["optional-dependencies"]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
