"""Answers DNS questions of a namespace from a table, over UDP."""

import asyncio
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address

A, CNAME, AAAA = 1, 5, 28
NO_SUCH_NAME = 3


class Trouble(IntEnum):
    """How a question about a name ends without an answer."""

    SILENCE = -1
    SERVER_FAILURE = 2
    CUT_OFF = 0x200  # the bit that says so; nothing listens where the whole answer would be had, over TCP


Addresses = list[str]
# The addresses of a name, or a function of how often it was asked before; a text is another name for it.
Zone = Mapping[str, Addresses | str | Trouble | Callable[[int], Addresses]]


class NameServer(asyncio.DatagramProtocol):
    """A name server whose answers must not be kept by anybody."""

    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self.asked: Counter[tuple[str, int]] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        name, kind, end = _question(data)
        times = self.asked[name, kind]
        self.asked[name, kind] += 1
        found = self._found(name)
        if isinstance(found, Trouble):
            if found is not Trouble.SILENCE:
                self._transport.sendto(
                    data[:2] + struct.pack(">HHHHH", 0x8180 | found, 1, 0, 0, 0) + data[12:end], sender
                )
            return
        records = self._records(name, kind, times)
        code = NO_SUCH_NAME if records is None else 0
        head = data[:2] + struct.pack(">HHHHH", 0x8580 | code, 1, len(records or ()), 0, 0)
        self._transport.sendto(head + data[12:end] + b"".join(records or ()), sender)  # type: ignore[attr-defined]

    def _found(self, name: str) -> Addresses | str | Trouble | Callable[[int], Addresses] | None:
        found = self._zone.get(name)
        return self._zone.get("*." + name.partition(".")[2]) if found is None else found

    def _records(self, name: str, kind: int, times: int) -> list[bytes] | None:
        found = self._found(name)
        if found is None or isinstance(found, Trouble):
            return None
        if isinstance(found, str):
            alias = _record(name, CNAME, _spelled(found))
            return [alias, *(self._records(found, kind, times) or ())]
        addresses = found(times) if callable(found) else found
        return [
            _record(name, kind, packed)
            for each in addresses
            if (packed := _packed(each)) and kind == (A if len(packed) == 4 else AAAA)
        ]


def _question(data: bytes) -> tuple[str, int, int]:
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]].decode("ascii", "replace").lower())
        at += 1 + data[at]
    (kind,) = struct.unpack_from(">H", data, at + 1)
    return ".".join(labels), kind, at + 5


def _packed(address: str) -> bytes:
    return (IPv6Address if ":" in address else IPv4Address)(address).packed


def _spelled(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def _record(name: str, kind: int, content: bytes) -> bytes:
    return _spelled(name) + struct.pack(">HHIH", kind, 1, 0, len(content)) + content
