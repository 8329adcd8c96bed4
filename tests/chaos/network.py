"""Drops packets and refuses connections without harm to other programs.

The run has a network namespace with nothing but loopback: packet rules apply to it alone, and it ends with its last
process. It needs root, and Debian's nftables.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator

CLONE_NEWNET = 0x40000000
TABLE = "inet chaos"
_EVERYBODYS = os.readlink("/proc/self/ns/net")
_NFT = shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_IP = shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def missing() -> str:
    """What a network namespace lacks here; nothing if it can be made."""
    if os.geteuid() != 0:
        return "root"
    return "" if _NFT and _IP else "nftables and iproute2"


@contextlib.contextmanager
def own_network() -> Iterator[None]:
    """Put this thread, and what it starts meanwhile, into a network of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _check(libc.unshare(CLONE_NEWNET))
        try:
            subprocess.run([str(_IP), "link", "set", "lo", "up"], check=True)
            yield
        finally:
            _check(libc.setns(before, CLONE_NEWNET))
    finally:
        os.close(before)


def obstruct(port: int, rule: str) -> None:
    """Apply a rule such as `drop` to packets to this port; if it drops, also to packets from it."""
    clear()
    nft = [f"add table {TABLE}", f"add chain {TABLE} in {{ type filter hook input priority 0; }}"]
    nft.append(f"add rule {TABLE} in tcp dport {port} {rule}")
    if rule.endswith("drop"):
        nft.append(f"add rule {TABLE} in tcp sport {port} {rule}")
    _run("\n".join(nft))


def clear() -> None:
    """Let everything pass again."""
    _run(f"add table {TABLE}\ndelete table {TABLE}")


def _run(commands: str) -> None:
    if os.readlink("/proc/thread-self/ns/net") == _EVERYBODYS:
        raise RuntimeError("these rules would be everybody's")
    subprocess.run([str(_NFT), "-f", "-"], input=commands, text=True, check=True)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
