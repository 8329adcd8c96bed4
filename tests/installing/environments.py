"""Virtual environments in which hookline is installed as its users install it.

The wheel is built and installed by pip. What it depends on is copied from the environment that the tests run in: these
are the locked versions, and no network is needed. `pip check` then says whether anything is missing.
"""

import shutil
import subprocess
import sys
import tomllib
import venv
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from server_process import CEILING_S, environment

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


class Environment:
    """A virtual environment; `added_bytes` is what installing hookline added to it."""

    def __init__(
        self, folder: Path, wheel: Path, *extras: str, installer: "Environment | None" = None
    ) -> None:
        """`installer` is an environment whose pip is used: making one that has its own takes longer."""
        self.folder = folder
        venv.create(folder, with_pip=installer is None)
        pip = ["-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin/python")]
        by = installer or self
        (self.packages,) = folder.glob("lib/python*/site-packages")
        before = _size(self.packages)
        by.python(
            *pip, "install", "--quiet", "--no-index", "--no-deps", "--no-warn-script-location", str(wheel)
        )
        for name in _closure(wheel, extras):
            _copy(metadata.distribution(name), self.packages)
        self.python("-m", "compileall", "-q", str(self.packages))  # as pip does with what it installs
        by.python(*pip, "check")
        self.added_bytes = _size(self.packages) - before

    @property
    def command(self) -> list[str]:
        """The command that was installed."""
        return [str(self.folder / "bin/hookline")]

    def python(self, *arguments: str, cwd: Path | None = None) -> str:
        """What this environment's Python prints."""
        done = subprocess.run(
            [str(self.folder / "bin/python"), *arguments],
            cwd=cwd or self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=CEILING_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *arguments: str, cwd: Path, env: dict[str, str] | None = None, input: str | None = None):
        """A command that ends by itself."""
        return subprocess.run(
            [*self.command, *arguments],
            cwd=cwd,
            env=environment(env),
            input=input,
            capture_output=True,
            text=True,
            timeout=CEILING_S,
            check=False,
        )


def build(folder: Path) -> Path:
    """The wheel of this checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, timeout=CEILING_S, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _closure(wheel: Path, extras: tuple[str, ...]) -> set[str]:
    """The packages that are installed with the wheel and these of its extras."""
    (said,) = metadata.distributions(path=[str(wheel)])
    found: set[str] = set()
    left = [(each, extra) for each in map(Requirement, said.requires or ()) for extra in ("", *extras)]
    while left:
        wanted, extra = left.pop()
        name = canonicalize_name(wanted.name)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        if name == "hookline":  # an extra that includes another
            left += [(each, one) for each in map(Requirement, said.requires or ()) for one in wanted.extras]
        elif name not in found:
            found.add(name)
            left += [(each, "") for each in map(Requirement, metadata.requires(name) or ())]
    return found


def _copy(package: metadata.Distribution, to: Path) -> None:
    for file in package.files or ():
        source = Path(str(package.locate_file(file)))
        if ".." in file.parts or "__pycache__" in file.parts or not source.is_file():
            continue  # its programs
        (to / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, to / file)


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
