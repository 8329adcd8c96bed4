"""Finds the toolchains of other languages, and what their programs here need.

Packages come from the languages' own registries, as the lock files in these folders say, and are checked by the hashes
in them. They are kept in `.languages` until the lock changes.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".languages"
CEILING_S = 1_800.0  # the first time, everything is fetched and built
LIBRARIES = "github.com/standard-webhooks/standard-webhooks/libraries"
OLDEST_GO = (1, 21)  # what Go's library asks for
NEWER_GO = "go1.22.12"
# A JVM that runs for a second needs no second compiler and no second thread for its garbage.
SMALL_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def needed(program: str, *, what: str) -> str:
    """The path of a program; skips the test if there is none, which under CI is a failure."""
    found = shutil.which(program)
    if found is None:
        missing(f"{program} is not installed: not tested: {what} (`make languages`)")
    return found


def missing(why: str) -> NoReturn:
    """Skip the test, or fail it under CI: there, everything that tests need can be had."""
    say = pytest.fail if os.environ.get("CI") else pytest.skip
    say(why)


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    given: str | None = None,
) -> str:
    """What a command that succeeds prints."""
    ran = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        input=given,
        capture_output=True,
        text=True,
        timeout=CEILING_S,
        check=False,
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def node_modules() -> Path:
    """The packages of npm."""

    def install(folder: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "javascript" / name, folder)
        npm = needed("npm", what="JavaScript")
        run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder)

    return _kept("javascript", HERE / "javascript" / "package-lock.json", install) / "node_modules"


def jars() -> Path:
    """The packages of Maven."""

    def install(folder: Path) -> None:
        maven = needed("mvn", what="Java")
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        shutil.copy(HERE / "java" / "pom.xml", folder)
        run([maven, "-q", "-B", "-C", plugin, f"-DoutputDirectory={folder}"], cwd=folder)

    needed("javac", what="Java")
    return _kept("java", HERE / "java" / "pom.xml", install)


def java_path(*more: Path) -> str:
    """The class path of a program: all packages but the generator, which has others of the same names in it."""
    found = [each for each in sorted(jars().glob("*.jar")) if each != generator()]
    return os.pathsep.join(map(str, [*found, *more]))


def generator() -> Path:
    [found] = jars().glob("openapi-generator-cli-*.jar")
    return found


def cargo_target() -> Path:
    """Where cargo builds; what it has built before, it uses again."""
    return _kept("rust", HERE / "rust" / "Cargo.lock", lambda folder: None)


def go(*words: str, cwd: Path) -> str:
    """What a command of Go prints. It keeps what it fetched and built by itself."""
    return run([_go_program(), *words], cwd=cwd, env={"GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"})


@cache
def _go_program() -> Path:
    """Go, or if the machine's is too old (Debian 12), the toolchain that it can fetch, with a checksum, as a module."""
    program = Path(needed("go", what="Go"))
    version = re.search(r"go(\d+)\.(\d+)", run([program, "version"], cwd=HERE))
    assert version is not None
    if (int(version[1]), int(version[2])) >= OLDEST_GO:
        return program
    system, processor = run([program, "env", "GOOS", "GOARCH"], cwd=HERE).split()
    module = f"golang.org/toolchain@v0.0.1-{NEWER_GO}.{system}-{processor}"
    # Outside this module, whose go.mod the old one cannot read.
    folder = Path(json.loads(run([program, "mod", "download", "-json", module], cwd=HERE.parent))["Dir"])
    for each in (*folder.glob("bin/*"), *folder.glob("pkg/tool/*/*")):
        each.chmod(0o555)  # a module's files cannot be run
    return folder / "bin" / "go"


def official_sources() -> Path:
    """The official libraries of all languages: they are one repository, which Go's registry has with a checksum."""
    return Path(json.loads(go("mod", "download", "-json", LIBRARIES, cwd=HERE / "go"))["Dir"])


def _kept(name: str, lock: Path, install: Callable[[Path], None]) -> Path:
    """A folder with what this lock names. It is marked when it is whole: an interrupted installation is done again."""
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    folder = CACHE / f"{name}-{digest}"
    if not (folder / ".whole").exists():
        for old in CACHE.glob(f"{name}-*"):
            shutil.rmtree(old)
        folder.mkdir(parents=True)
        install(folder)
        (folder / ".whole").touch()
    return folder
