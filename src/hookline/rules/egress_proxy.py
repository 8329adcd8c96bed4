"""Reads the URL of the proxy that every outgoing request goes through."""

import re
from urllib.parse import unquote

import msgspec

MASK = "***"
ALLOWED = "http://host:port or http://user:password@host:port"

_SHAPE = re.compile(
    r"http://(?:(?P<user>[^:@/?#\s]+):(?P<password>[^:@/?#\s]*)@)?"
    r"(?P<host>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>[1-9][0-9]{0,4})/?"
)
_PRINTABLE = re.compile(r"[\x20-\x7e]*")


class EgressProxy(msgspec.Struct, frozen=True):
    """Where the proxy is, and what it asks for."""

    host: str
    port: int
    user: str | None = None
    password: str = ""

    def __repr__(self) -> str:
        return f"EgressProxy({self.host!r}, {self.port})"


def read(url: str) -> EgressProxy | None:
    """The proxy behind the URL of a setting; None if it is not one."""
    shape = _SHAPE.fullmatch(url) if url.isascii() else None
    if shape is None or int(shape["port"]) > 65_535:
        return None
    user = None if shape["user"] is None else unquote(shape["user"])
    password = unquote(shape["password"] or "")
    # A colon would end the name, and other characters would end the line.
    if user is not None and (":" in user or not _PRINTABLE.fullmatch(user + password)):
        return None
    return EgressProxy(shape["host"].strip("[]"), int(shape["port"]), user, password)


def shown(url: str) -> str:
    """The URL as it may be shown."""
    before, at, after = url.rpartition("@")
    return f"http://{MASK}@{after}" if at else before + after
