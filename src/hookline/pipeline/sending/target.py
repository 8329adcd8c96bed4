"""Splits an endpoint's URL into the parts that a request needs.

The URL was validated and made canonical when the endpoint was written. Nothing is decoded, corrected or lower-cased
here, so the receiver sees the path as the endpoint's owner gave it.
"""

import re

from hookline.errors import Invalid
from hookline.pipeline.sending.contract import Target

_PORTS = {"http": 80, "https": 443}
_PATH = re.compile(r"/[\x21-\x7e]*")
_HOST = re.compile(r"(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?")


def parse(url: str) -> Target:
    """The target of a canonical http or https URL."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _PORTS:
        raise Invalid("The URL must begin with http:// or https://.", pointer="/url", code="url_invalid")
    rest = rest.partition("#")[0]
    cut = next((at for at, letter in enumerate(rest) if letter in "/?"), len(rest))
    authority, path = rest[:cut], rest[cut:]
    host, port = _split_authority(authority)
    if not host:
        raise Invalid("The URL names no host.", pointer="/url", code="url_invalid")
    return Target(
        url=url,
        tls=scheme == "https",
        host=host,
        port=port if port is not None else _PORTS[scheme],
        path=path if path.startswith("/") else "/" + path,
    )


def head_of(target: Target) -> bytes:
    """The constant part of the head of all requests to a target; ends before the digits of the length."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    if target.port != _PORTS["https" if target.tls else "http"]:
        host = f"{host}:{target.port}"
    # The guard against a forged request: anything but one visible word would break the line.
    if not _PATH.fullmatch(target.path) or not _HOST.fullmatch(host):
        raise Invalid(
            "The URL has characters that cannot stand in a request.", pointer="/url", code="url_invalid"
        )
    return f"POST {target.path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: ".encode("ascii")


def _split_authority(authority: str) -> tuple[str, int | None]:
    bare = authority.rpartition("@")[2]
    if bare.startswith("["):
        host, _, rest = bare[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = bare.partition(":")
    if not port:
        return host, None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise Invalid("The URL's port is not a number from 1 to 65535.", pointer="/url", code="url_invalid")
    return host, int(port)
