"""Makes a network of its own, in which every address there is belongs to this machine.

It has nothing but loopback: a request that a guard should have stopped arrives at a listener of the test and nowhere
else. Root gets a network and mount namespace, an ordinary user the same inside a user namespace.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
from functools import cache
from pathlib import Path

WAYS = (
    ("unshare", "--net", "--mount", "--"),
    ("unshare", "--user", "--map-root-user", "--net", "--mount", "--"),
)
MS_BIND = 4096
_SIOCSIFFLAGS = 0x8914
_UP = 1
_NEWROUTE, _REQUEST_NEW_ACKNOWLEDGED = 24, 0x1 | 0x4 | 0x400
_LOCAL_TABLE, _BOOT, _HOST_SCOPE, _LOCAL_ROUTE, _OUT_INTERFACE = 255, 3, 254, 2, 4
_ERROR = 2


@cache
def way_in() -> tuple[str, ...] | None:
    """The words before a command that runs it in such a namespace; None if this machine allows none."""
    for words in WAYS:
        try:
            if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
                return words
        except FileNotFoundError:
            return None
    return None


def missing() -> str:
    """What a namespace lacks here; nothing if the test can run."""
    if not Path("/proc/net/if_inet6").exists():
        return "IPv6"
    return "" if way_in() else "network namespaces (unshare of util-linux, as root or with user namespaces)"


def own_every_address() -> None:
    """Bring loopback up and route every address of both families to it, so that all are local."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP))
    interface = socket.if_nametoindex("lo")
    for family in (socket.AF_INET, socket.AF_INET6):
        _route_everything(family, interface)


def put_over(path: str, content: str, folder: Path) -> None:
    """Let this mount namespace see other content in a file."""
    place = os.path.realpath(path)
    stand_in = folder / Path(path).name
    stand_in.write_text(content)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(stand_in), os.fsencode(place), None, MS_BIND, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), place)


def connections_begun() -> int:
    """How many connections this network's programs have tried to open since it began: each sent a first packet."""
    names, values = [
        line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Tcp:")
    ]
    return int(values[names.index("ActiveOpens")])


def _route_everything(family: int, interface: int) -> None:
    route = struct.pack("=8BI", family, 0, 0, 0, _LOCAL_TABLE, _BOOT, _HOST_SCOPE, _LOCAL_ROUTE, 0)
    out = struct.pack("=HHI", 8, _OUT_INTERFACE, interface)
    length = 16 + len(route) + len(out)
    message = struct.pack("=IHHII", length, _NEWROUTE, _REQUEST_NEW_ACKNOWLEDGED, 1, 0) + route + out
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.bind((0, 0))
        kernel.send(message)
        answer = kernel.recv(4096)
    _, kind = struct.unpack_from("=IH", answer)
    (error,) = struct.unpack_from("=i", answer, 16)
    if kind != _ERROR or error != 0:
        raise OSError(-error, os.strerror(-error), "a route to every address")
