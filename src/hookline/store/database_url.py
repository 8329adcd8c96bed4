"""Reads database URLs without showing the passwords in them.

In a misspelt URL the password may be anywhere: in the place of the port, the host or the path. So a URL that cannot be
taken apart with certainty is refused with what is wrong and where. None of its text is repeated.
"""

import re
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

MASK = "***"
ALLOWED = "sqlite:///path.db or postgresql://user:password@host:port/name"
IN_MEMORY = "hookline cannot keep what it accepts in memory"

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]| $")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
# A name, a socket's folder in escapes, or an IPv6 address with its zone; then a port.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(%[A-Za-z0-9]+)?\]|[A-Za-z0-9_.,%-]*)(:[0-9]{1,5})?")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*=[^=]*")
_PLAIN = re.compile(r"[A-Za-z0-9_.$+-]{1,63}")  # the usual names of users and databases
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_./,-]{0,200}")
# The driver's own parameters that hold nothing secret; every other parameter is set in the session unchanged.
_OPEN = frozenset(
    {
        "host",
        "port",
        "dbname",
        "database",
        "sslmode",
        "sslcert",
        "sslkey",
        "sslrootcert",
        "sslcrl",
        "sslnegotiation",
    }
    | {"ssl_min_protocol_version", "ssl_max_protocol_version", "target_session_attrs", "passfile", "service"}
    | {"application_name", "statement_timeout", "lock_timeout", "search_path"}
)
_SECRET = frozenset({"password", "sslpassword", "user"})


def is_in_memory(url: str) -> bool:
    """Whether it names SQLite's in-memory database, which ends with its connection."""
    return url.startswith(f"{_SQLITE}:memory:")


def fault(url: str) -> str | None:
    """What is wrong with it and where, in words that hold none of its text; None: it is usable."""
    if is_in_memory(url):
        return f"it must name a file: {IN_MEMORY}"
    if url.startswith(_SQLITE):
        return _fault_of_path(url.removeprefix(_SQLITE))
    if not url.startswith(_POSTGRES):
        return f"it begins with neither {_SQLITE} nor postgresql://"
    if _CONTROL.search(url):
        return "it has a control character (a tab, a new line), or ends with a blank"
    if _ESCAPE.search(url):
        return "it has a % without two hexadecimal digits; a % itself is written %25"
    if "#" in url or "\\" in url:
        return "it has a # or a backslash; they are written %23 and %5C"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "host and port, between the @ and the next /, cannot be read; in a password / ? [ ] are written %2F %3F %5B %5D"
    return _fault_of_parts(parts, port)


def _fault_of_path(path: str) -> str | None:
    if not path or "\0" in path:
        return f"no path follows {_SQLITE}"
    first = path.partition("/")[0]
    if ":" in first or re.search(r":.*@|\?.*=", path):
        return f"what follows {_SQLITE} looks like the address of a server, not like the path of a file"
    return None


def _fault_of_parts(parts: SplitResult, port: int | None) -> str | None:
    if "@" in parts.path or "@" in parts.query:
        return "an @ follows the host's /; in a password / ? @ are written %2F %3F %40"
    if parts.netloc.count("@") > 1:
        return "it has more than one @ before the host; in a password it is written %40"
    if port == 0:
        return "the port, after the host, is 0"
    host = parts.netloc.rpartition("@")[2]
    if not _HOST.fullmatch(host):
        return "the host, between the @ and the next /, has a character that no host has"
    if parts.query and not all(map(_FIELD.fullmatch, parts.query.split("&"))):
        return "what follows the ? is not name=value&name=value; in a value & and = are written %26 and %3D"
    return None


def has_password(url: str) -> bool:
    """Whether it may contain a password."""
    if fault(url) is not None:
        return True
    parts = urlsplit(url)
    return not url.startswith(_SQLITE) and (":" in _login(parts) or "password=" in parts.query)


def is_plain(url: str) -> bool:
    """Whether no name in it can be a misplaced password; a server's messages about the names may then be shown."""
    if fault(url) is not None:
        return False
    parts = urlsplit(url)
    login, name = _login(parts), unquote(parts.path[1:])
    fields = parse_qsl(parts.query, keep_blank_values=True)
    return (
        (not login or (":" in login and _is_plain_name(login.partition(":")[0])))
        and (not name or _is_plain_name(name))
        and all(key in _OPEN | _SECRET for key, _ in fields)
    )


def shown(url: str) -> str:
    """The part of it that may be shown."""
    if fault(url) is not None:
        return MASK
    if url.startswith(_SQLITE):
        return url
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    if at:
        # Without a colon it may be a name and a password run together.
        login = f"{user if _is_plain_name(user) else MASK}:{MASK}" if colon else MASK
    name = unquote(parts.path[1:])
    path = f"/{parts.path[1:] if _is_plain_name(name) else MASK}" if name else parts.path
    query = "&".join(map(_shown_field, parts.query.split("&"))) if parts.query else ""
    return f"{parts.scheme}://{login}{at}{host}{path}{'?' if query else ''}{query}"


def name(url: str) -> str:
    """A short name of the database in it, without user, password and parameters."""
    if url.startswith(_SQLITE):
        return url
    parts = urlsplit(url)
    return shown(f"postgresql://{_login_free(parts)}{parts.path}")


def identity(url: str) -> str:
    """What two valid URLs of one database have in common, however they are spelt: the file, or host, port and name."""
    if url.startswith(_SQLITE):
        return f"{_SQLITE}{Path(url.removeprefix(_SQLITE)).resolve()}"
    parts = urlsplit(url)
    fields = dict(parse_qsl(parts.query))
    host = fields.get("host") or unquote(parts.hostname or "localhost")
    port = fields.get("port") or parts.port or 5432
    user = unquote(_login(parts).partition(":")[0])
    database = fields.get("dbname") or fields.get("database") or unquote(parts.path[1:]) or user
    return f"postgresql://{host.lower()}:{port}/{database}"


def _login_free(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _login(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[0]


def _is_plain_name(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None


def _shown_field(field: str) -> str:
    name, _, value = field.partition("=")
    if name in _OPEN and _PLAIN_VALUE.fullmatch(value):
        return field
    return f"{name}={MASK}" if name in _OPEN | _SECRET else MASK
