"""How are packets lost and connections refused, without harm to anybody else's?

In a network of this run's own, which holds nothing but loopback: rules for packets apply to it alone, and it is
gone when its last process is. Takes root, and Debian's nftables.
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
    """What a network of one's own lacks here; nothing: it can be made."""
    if os.geteuid() != 0:
        return "root"
    return "" if _NFT and _IP else "nftables and iproute2"


@contextlib.contextmanager
def own_network() -> Iterator[None]:
    """What this thread does and starts meanwhile is in a network of its own."""
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
    """What goes to this port meets the rule, such as `drop`; also what comes from it, if the rule drops."""
    clear()
    nft = [f"add table {TABLE}", f"add chain {TABLE} in {{ type filter hook input priority 0; }}"]
    nft.append(f"add rule {TABLE} in tcp dport {port} {rule}")
    if rule.endswith("drop"):
        nft.append(f"add rule {TABLE} in tcp sport {port} {rule}")
    _run("\n".join(nft))


def clear() -> None:
    """Everything passes again."""
    _run(f"add table {TABLE}\ndelete table {TABLE}")


def _run(commands: str) -> None:
    if os.readlink("/proc/thread-self/ns/net") == _EVERYBODYS:
        raise RuntimeError("these rules would be everybody's")
    subprocess.run([str(_NFT), "-f", "-"], input=commands, text=True, check=True)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
