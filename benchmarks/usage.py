"""Reads what a process and its descendants have used.

It reads /proc, so that it costs the processes nothing and needs nothing installed.
"""

import os
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class _Stat(NamedTuple):
    parent: int
    cpu: float  # seconds; with that of its children that have ended


def cpu_of(*roots: int) -> float:
    """CPU seconds so far of these processes and all their descendants, the ended ones too."""
    stats = _all()
    return sum(stats[pid].cpu for pid in _family(roots, stats))


def peak_mb_of(*roots: int) -> float:
    """The most memory any one of these processes or their descendants has had resident, in MB of 10^6 bytes."""
    return max((_peak_bytes(pid) for pid in _family(roots, _all())), default=0) / 1e6


def _family(roots: tuple[int, ...], stats: dict[int, _Stat]) -> set[int]:
    family = {pid for pid in roots if pid in stats}
    grown = True
    while grown:
        found = {pid for pid, stat in stats.items() if stat.parent in family} - family
        family |= found
        grown = bool(found)
    return family


def _all() -> dict[int, _Stat]:
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:  # ended while we looked
                continue
            # The name in parentheses may hold spaces; what follows the last one is numbers.
            fields = text[text.rindex(")") + 2 :].split()
            stats[int(entry.name)] = _Stat(int(fields[1]), sum(map(int, fields[11:15])) / _TICKS_PER_SECOND)
    return stats


def _peak_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
