"""Checks that the database is reachable, safe to use, and at this version's schema."""

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

from hookline.cli.doctor.findings import Finding, bad, ok, warn
from hookline.cli.doctor.holding import check_holding
from hookline.clock import SystemClock
from hookline.errors import HooklineError, MissingExtra, StoreUnavailable, demand
from hookline.store import database_url
from hookline.store.contract.doctor import Examination

LITTLE_BYTES, TOO_LITTLE_BYTES = 1 << 30, 100 << 20  # of free disk space
SKEW_S, LARGE_SKEW_S = 2.0, 60.0  # webhooks are signed with the time, and refused when it is 300 s off
# Locks and shared memory do not work on these file systems: two machines would write one file.
REMOTE = frozenset({"9p", "afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "nfs", "nfs4", "smb3", "smbfs"})


def check_database(url: str, *, wall: float) -> Generator[Finding, None, Examination | None]:
    """Check everything about the database behind the URL; returns what was found there, if anything."""
    shown = database_url.shown(url)
    if url.startswith("sqlite:"):
        return (yield from _check_file(Path(url.removeprefix("sqlite:///")), shown, wall=wall))
    try:
        demand("asyncpg", what="a PostgreSQL database")
    except MissingExtra as error:
        detail, _, step = str(error).rpartition(": ")
        yield bad("database", detail, step.rstrip("."))
        return None
    import asyncio

    from hookline.store.postgres.doctor import examine

    clock = SystemClock()
    began = clock.monotonic()
    try:
        found = asyncio.run(examine(url))
    except StoreUnavailable as error:
        yield bad("database", f"{shown}: {error}", "start PostgreSQL, or correct HOOKLINE_DATABASE")
        return None
    except HooklineError as error:
        yield bad("database", f"{shown}: {error}", "follow this message, or correct HOOKLINE_DATABASE")
        return None
    yield ok("database", f"{shown}: {found.server} answers")
    yield from judge(found, wall=wall, took=clock.monotonic() - began)
    return found


def judge(found: Examination, *, wall: float, took: float = 0.0) -> Iterator[Finding]:
    """Judge the facts; `wall` is this machine's time when the examination began, and `took` its seconds."""
    settings = ", ".join(f"{name}={value}" for name, value in found.settings.items())
    if found.unsafe is not None:
        yield bad("durability", found.unsafe, "change this setting of the database before you publish events")
    else:
        yield ok("durability", settings)
    yield from check_holding(found)
    if "schema" in found.unanswered:
        pass  # named above
    elif found.schema is not None:
        detail, _, step = found.schema.rpartition(": ")  # the error's text ends with what to do
        yield bad("schema", detail, step.rstrip("."))
    else:
        yield ok("schema", "up to date")
    if found.missing_rights:
        more = f" and {len(found.missing_rights) - 3} more" if len(found.missing_rights) > 3 else ""
        named = ", ".join(found.missing_rights[:3]) + more
        yield bad(
            "rights",
            f"the database user lacks {named}",
            "GRANT these rights on all tables of the schema hookline",
        )
    if found.connections is not None:
        yield _check_connections(found.connections, found.needed_connections)
    if found.now:
        yield from _check_clock(found, wall=wall, took=took)


def _check_connections(allowed: int, needed: int) -> Finding:
    detail = f"{allowed} allowed; one hookline process needs up to {needed}"
    if allowed < needed:
        return warn("connections", detail, "raise max_connections of PostgreSQL and restart it")
    return ok("connections", detail)


def _check_clock(found: Examination, *, wall: float, took: float) -> Iterator[Finding]:
    is_file = found.server.startswith("SQLite")
    ahead = found.now - wall
    if ahead > 0:  # it may have been asked at the end of that time
        ahead = max(ahead - took, 0.0)
    if is_file:  # the times it holds are in the past, unless this machine's clock was set back
        ahead = max(ahead, 0.0)
    if abs(ahead) < SKEW_S:
        yield ok("clock", "agrees with the database's clock")
        return
    if is_file:
        yield warn(
            "clock",
            f"the time in the file is {ahead:,.0f} s ahead of this machine's clock: the clock was ahead earlier, or is behind now",
            "check `date`; if it is right, do nothing: hookline catches up in ten times that time, "
            "and until then retries take up to a ninth longer",
        )
        return
    where = "ahead of" if ahead < 0 else "behind"
    detail = f"this machine's clock is {abs(ahead):,.0f} s {where} the database's"
    make = bad if abs(ahead) >= LARGE_SKEW_S else warn
    yield make("clock", detail, "set it by NTP (chronyd, systemd-timesyncd): signatures contain the time")


def _check_file(path: Path, shown: str, *, wall: float) -> Generator[Finding, None, Examination | None]:
    folder = path.absolute().parent
    if not folder.is_dir():
        yield bad("database", f"{shown}: there is no directory {folder}", f"mkdir -p {folder}")
        return None
    if not os.access(folder, os.W_OK | os.X_OK):
        yield bad("database", f"{shown}: the directory {folder} is not writable", f"chown or chmod {folder}")
        return None
    if path.is_dir():
        yield bad("database", f"{shown}: this is a directory", "set HOOKLINE_DATABASE to a file")
        return None
    found = None
    if not path.exists():
        yield warn(
            "database",
            f"{shown}: the file does not exist yet",
            "`hookline serve` or `hookline migrate` creates it",
        )
    else:
        found = yield from _check_present(path, shown, wall=wall)
    yield from _check_disk(folder)
    return found


def _check_present(path: Path, shown: str, *, wall: float) -> Generator[Finding, None, Examination | None]:
    from hookline.store.sqlite.doctor import examine

    if not os.access(path, os.R_OK | os.W_OK):
        yield bad("database", f"{shown}: the file is not writable", f"chown or chmod {path}")
        return None
    try:
        found = examine(str(path), wall=wall)
    except HooklineError as error:
        yield bad(
            "database",
            f"{shown}: {error}",
            "restore it from a backup, or set HOOKLINE_DATABASE to another file",
        )
        return None
    server = _serving(path)
    yield ok("database", f"{shown}: {found.server}, {server}")
    yield from judge(found, wall=wall)
    mode = path.stat().st_mode & 0o777
    if mode & 0o007:
        yield warn(
            "permissions",
            f"every user of this machine may read {path} ({mode:o})",
            f"chmod o= {path}*: it contains secrets",
        )
    return found


def _serving(path: Path) -> str:
    """The process that the lock file names, if it is alive. The lock is not tried: a server could be starting."""
    try:
        pid = int(Path(f"{path}.lock").read_text("ascii"))
        os.kill(pid, 0)
    except (OSError, ValueError):
        return "not in use by a server"
    return f"served by process {pid}"


def _check_disk(folder: Path) -> Iterator[Finding]:
    kind = _file_system(folder)
    if kind in REMOTE:
        yield bad(
            "disk",
            f"{folder} is on {kind}, where SQLite's locks do not work",
            "use a local disk, or PostgreSQL",
        )
    free = shutil.disk_usage(folder).free
    shown = f"{free / (1 << 30):,.1f} GiB free in {folder}"
    if free < TOO_LITTLE_BYTES:
        yield bad("disk", shown, "free some space: on a full disk publishes are refused")
    elif free < LITTLE_BYTES:
        yield warn("disk", shown, "free some space soon: on a full disk publishes are refused")
    else:
        yield ok("disk", shown)


def _file_system(folder: Path) -> str:
    """The kind of file system a folder is on; empty where the system does not tell."""
    try:
        mounts = [line.split(" ") for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    place = str(folder.resolve())
    holding = [each for each in mounts if (place + "/").startswith(each[1].rstrip("/") + "/")]
    return max(holding, key=lambda each: len(each[1]), default=["", "", ""])[2]
