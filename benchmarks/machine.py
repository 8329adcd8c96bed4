"""Describes the machine and the commit of a measurement."""

import os
import platform
import sqlite3
import subprocess
import sysconfig
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_IN_MEMORY = ("tmpfs", "ramfs")


def describe_machine(directory: Path) -> dict[str, str]:
    """What a reader needs to know to compare."""
    return {
        "CPU": f"{_cpu_model()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "data on": filesystem_of(directory),
        "Python": f"{platform.python_version()}, {_build()}",
        "SQLite": sqlite3.sqlite_version,
        "commit": _commit(),
    }


def filesystem_of(directory: Path) -> str:
    """The type of the file system that holds this directory."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, rest = line.partition(" - ")
        point = mount.split()[4]
        if directory.resolve().is_relative_to(point) and len(point) >= len(best):
            best, kind = point, rest.split()[0]
    return kind


def is_in_memory(directory: Path) -> bool:
    """Whether fsync costs nothing there, so that figures would mean nothing."""
    return filesystem_of(directory) in _IN_MEMORY


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _build() -> str:
    """How the interpreter was configured. Some distributions optimize by other means, so this is no more than a hint."""
    is_optimized = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    return f"configured with{'' if is_optimized else 'out'} --enable-optimizations"


def _commit() -> str:
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        return commit + (" with uncommitted changes" if _git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=_ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()
