"""Decides which URLs an endpoint may have, each in one spelling.

It is a grammar of what is allowed, not a list of what is forbidden. Programs disagree about every URL outside it, and
each disagreement is a way to reach a machine that was checked as another one. A URL that passes has one spelling, in
ASCII, and no later code parses it in a different way.
"""

import re
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv6Address
from typing import NoReturn

import idna

from hookline.errors import Invalid
from hookline.rules.address import Network, is_denied, is_public, may_dial

MAX_URL_BYTES = 2_048
MAX_NAME_BYTES = 253

SPECIAL_SUFFIXES = ("internal", "local", "localhost", "lan", "home.arpa", "corp", "intranet")

# Services that do not speak HTTP, or that trust everybody who can reach them. Below 1024 only the web's own ports.
DENIED_PORTS = frozenset(
    {1433, 1521, 2375, 2376, 2379, 2380, 3306, 3389, 5432, 5672, 5984, 6000, 6379, 6443}
    | {9042, 9092, 9200, 9300, 10250, 11211, 27017}
)
_DEFAULT_PORTS = {"http": 80, "https": 443}

_SHAPE = re.compile(
    r"(?P<scheme>[A-Za-z]+)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?\Z", re.S
)
_UNSAFE = re.compile(r'[\x00-\x20\x7f\\"<>^`{|}]')
_BRACKETED = re.compile(r"\[(?P<host>[0-9A-Fa-f:.]+)\](?::(?P<port>.*))?\Z", re.S)
_PORT = re.compile(r"[1-9][0-9]{0,4}\Z")
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_V4 = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}\Z")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")  # what resolvers would read as (part of) an IPv4 address
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}

# One text for every refused address: it must not tell what is behind it, or which rule refused it.
_REFUSED = "Webhooks cannot be sent to this address. "
_PRIVATE_HINT = "Private destinations need --dev, or their networks in HOOKLINE_ALLOW_NETWORKS; in a program Settings(dev=True), or Settings(allow_networks=…)."


def canonical(
    url: str,
    *,
    private_allowed: bool,
    allowed: Sequence[Network] | None = None,
    denied: Sequence[Network] = (),
) -> str:
    """The one spelling of an endpoint's URL; `Invalid` with `url_invalid` or `url_forbidden` if it has none.

    With `private_allowed`, names of private machines pass. A literal address must then be public or within `allowed`;
    if that is None, every literal passes and the check before each connection decides. None within `denied` passes.
    """
    if len(url) > MAX_URL_BYTES or len(url.encode("utf-8", "surrogatepass")) > MAX_URL_BYTES:
        _invalid(f"A URL may have at most {MAX_URL_BYTES:,} bytes.")
    unsafe = _UNSAFE.search(url)
    if unsafe:
        _invalid(f"A URL cannot contain {unsafe.group()!a} (at {unsafe.start()}); percent-encode it.")
    if "#" in url:
        _invalid("Remove the fragment ('#' and what follows) from the URL: it is never sent.")
    shape = _SHAPE.match(url)
    scheme = shape["scheme"].lower() if shape else ""
    if shape is None or scheme not in _DEFAULT_PORTS:
        _invalid("A URL begins with https:// (or http://), followed by a host.")
    path, query = shape["path"] or "/", shape["query"] or ""
    if not (path + query).isascii():
        _invalid("The path and the query of a URL must be ASCII; percent-encode other characters as UTF-8.")
    host, port = _host_and_port(shape["authority"])
    host = _canonical_host(host, private_allowed=private_allowed, allowed=allowed, denied=denied)
    suffix = _canonical_port(port, scheme=scheme)
    spelled = f"{scheme}://{host}{suffix}{path}{query}"
    if len(spelled) > MAX_URL_BYTES:
        _invalid(f"A URL may have at most {MAX_URL_BYTES:,} bytes; with its host in ASCII this one has more.")
    return spelled


def _host_and_port(authority: str) -> tuple[str, str | None]:
    if "@" in authority:
        _invalid(
            "Remove the user name and password from the URL; use the endpoint's headers for credentials."
        )
    if authority.startswith("["):
        bracketed = _BRACKETED.match(authority)
        if bracketed is None:
            _invalid(f"{_shown(authority)} is not an IPv6 address in brackets, without a zone.")
        return f"[{bracketed['host']}]", bracketed["port"]
    host, colon, port = authority.partition(":")
    if not host:
        _invalid("The URL has no host.")
    return host, port if colon else None


def _canonical_port(port: str | None, *, scheme: str) -> str:
    if port is None:
        return ""
    if not _PORT.match(port) or int(port) > 65_535:
        _invalid(f"{_shown(port)} is not a port from 1 to 65535.")
    number = int(port)
    if number in DENIED_PORTS or (number < 1024 and number not in _DEFAULT_PORTS.values()):
        _forbidden(
            f"Webhooks cannot be sent to port {number}; use 443, 80, or a port above 1023 that no database uses."
        )
    return "" if number == _DEFAULT_PORTS[scheme] else f":{number}"


def _canonical_host(
    host: str, *, private_allowed: bool, allowed: Sequence[Network] | None, denied: Sequence[Network]
) -> str:
    if host.startswith("["):
        address = _v6(host[1:-1])
        _check_literal(address, private_allowed=private_allowed, allowed=allowed, denied=denied)
        return f"[{address}]"
    if _V4.match(host):
        _check_literal(host, private_allowed=private_allowed, allowed=allowed, denied=denied)
        return host
    return _canonical_name(host, private_allowed=private_allowed)


def _v6(text: str) -> str:
    try:
        address = IPv6Address(text)
    except AddressValueError:
        _invalid(f"{_shown(text)} is not an IPv6 address.")
    if address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}"  # newer Pythons write it like this, older ones in hex
    return str(address)


def _check_literal(
    address: str, *, private_allowed: bool, allowed: Sequence[Network] | None, denied: Sequence[Network]
) -> None:
    is_open = is_public(address) or (private_allowed and (allowed is None or may_dial(address, allowed)))
    if not is_open or is_denied(address, denied):
        _forbidden(_REFUSED + _PRIVATE_HINT)


def _canonical_name(host: str, *, private_allowed: bool) -> str:
    name = host.removesuffix(".").translate(_ASCII_LOWER)
    labels = [_canonical_label(label, host=host) for label in name.split(".")]
    name = ".".join(labels)
    if len(name) > MAX_NAME_BYTES:
        _invalid(f"A host name may have at most {MAX_NAME_BYTES} bytes.")
    if _NUMBER.match(labels[-1]):
        _invalid(
            f"The host {_shown(host)} looks like an IP address; write it as four decimal numbers, such as 192.0.2.1."
        )
    if not private_allowed:
        if len(labels) == 1:
            _forbidden(f"The host {_shown(host)} is not a full domain name. {_PRIVATE_HINT}")
        for suffix in SPECIAL_SUFFIXES:
            if name == suffix or name.endswith("." + suffix):
                _forbidden(f"Names under .{suffix} are private. {_PRIVATE_HINT}")
    return name


def _canonical_label(label: str, *, host: str) -> str:
    if not label:
        _invalid(f"The host {_shown(host)} has an empty part between its dots.")
    if label.isascii() and not label.startswith("xn--"):
        if not _LABEL.match(label):
            _invalid(f"The host part {_shown(label)} is not 1 to 63 letters, digits and inner hyphens.")
        return label
    try:
        # To its Unicode form and back: an A-label that its own Unicode form does not encode to is refused.
        encoded = idna.alabel(idna.ulabel(label)).decode("ascii")
    except UnicodeError:
        encoded = ""
    if not encoded.startswith("xn--") or (label.isascii() and encoded != label):
        _invalid(
            f"The host part {_shown(label)} is not an internationalised name (IDNA 2008): "
            "use lower case, composed characters and no symbols."
        )
    return encoded


def _shown(text: str) -> str:
    """Input, echoed: escaped and never long."""
    return ascii(text if len(text) <= 20 else text[:19] + "…")


def _invalid(detail: str) -> NoReturn:
    raise Invalid(detail, pointer="/url", code="url_invalid")


def _forbidden(detail: str) -> NoReturn:
    raise Invalid(detail, pointer="/url", code="url_forbidden")
