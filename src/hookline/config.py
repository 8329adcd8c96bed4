"""Reads the settings of a process.

A flag wins over a `HOOKLINE_*` variable, a variable over `hookline.toml`, and the file over the default. An invalid
value is refused with the name of the setting, the place it came from and what is allowed.
"""

import ipaddress
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hookline.errors import ConfigError
from hookline.rules import egress_proxy
from hookline.rules.accent import LEAST_CONTRAST, LIGHT_PAPER, contrast
from hookline.store import database_url
from hookline.store.database_url import MASK
from hookline.validate.names import did_you_mean, is_email
from hookline.validate.suggest import nearest

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PREFIX = "HOOKLINE_"
FILE = "hookline.toml"
SECRET = frozenset({"api_key", "secret_key", "smtp_password"})  # settings whose value is never shown
SMTP_TLS = ("starttls", "tls", "none")
PRESETS = ("patient", "minute", "exponential", "brisk", "eight", "standard", "quick")  # see rules/retry.py

# Variables with our prefix that are not settings: the failpoints of tests, and what container platforms set for a
# service that happens to be called "hookline".
_NOT_SETTINGS = re.compile(r"FAILPOINTS|SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?")
_MAY_BE_EMPTY = frozenset(
    {
        "outbox",
        "api_key",
        "secret_key",
        "allow_networks",
        "deny_networks",
        "egress_proxy",
        "ca_file",
        "contact",
        "smtp_host",
        "smtp_username",
        "smtp_password",
        "mail_from",
        "public_url",
        "portal_frame_ancestors",
        "portal_name",
        "portal_logo",
        "portal_accent",
    }
)  # the ones that may be left out
_LOGINS = frozenset(
    {"database", "outbox", "egress_proxy", "smtp_username"}
)  # settings whose refused value is not repeated either
_MOST_SHOWN = 100  # characters of a refused value
# Numbers, addresses and networks, which have colons too.
_IS_ADDRESSES = re.compile(r"[0-9a-fA-F.:/, +_-]*")
# Words have no digits between their letters: a key of some kind, also the end of one that was cut.
_LOOKS_RANDOM = re.compile(r"(?=[A-Za-z_-]*[0-9])(?=[0-9_-]*[A-Za-z])[A-Za-z0-9_-]{12,}|[A-Za-z0-9+/_-]{32,}")
_MOST_ORIGINS = 20  # in one header of every page
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_ORIGIN = re.compile(rf"https?://(?=[^:]{{1,253}}(:|\Z)){_LABEL}(\.{_LABEL})*(:(?P<port>[1-9][0-9]{{0,4}}))?")
_SERVICE_LINK = re.compile(r"(tcp|udp|sctp)://")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting, checked."""

    database: str = "sqlite:///hookline.db"
    outbox: tuple[str, ...] = ()  # databases of applications that have an outbox, besides hookline's own
    api_key: str | None = None
    secret_key: tuple[str, ...] = ()  # the first one seals secrets in the database; any of them opens one
    dev: bool = False
    host: str = "127.0.0.1"
    port: int = 8080
    processes: int = 1  # server processes on the port, on PostgreSQL
    metrics_port: int | None = (
        None  # each process also listens alone: the first here, the next one above; 0: anywhere
    )
    allow_networks: tuple[Network, ...] = ()
    deny_networks: tuple[Network, ...] = ()  # never sent to, whatever else is allowed
    egress_proxy: str | None = None  # every request goes through it; it may have a password
    ca_file: str | None = None  # authorities that requests trust besides the machine's
    heartbeat_s: float = 2.0
    takeover_s: float = 10.0
    poll_s: float = 0.5
    notify: bool = True  # workers on PostgreSQL notify each other of what the next poll would find
    drain_s: float = 30.0
    max_in_flight: int = 1_000  # requests under way at once, per worker
    max_in_flight_per_host: int = 100  # likewise to one host; hosts in allowed networks have no such limit
    payload_limit_bytes: int = 1_048_576
    batch_limit_bytes: int = 16_777_216
    deliveries_per_event: int = 10_000
    endpoints_per_account: int = 20_000
    publish_per_account: float = 0.0  # events a second, in each server process; 0: any number
    requests_per_key: float = 0.0  # likewise requests
    max_connections: int | None = (
        None  # of clients, to each server process; None: as the limit of open files allows
    )
    max_connections_per_address: int | None = None  # likewise from one address; None: half of all
    max_hops: int = (
        3  # times that an event may have been sent on, from webhook to publish, before it is published
    )
    retry: str = "patient"  # the preset of endpoints that have no policy of their own
    keep_delivered_days: int = 30  # cancelled ones too; 0: forever
    keep_dead_days: int = 90  # likewise
    keep_audit_days: int = 365  # entries of the audit trail; 0: forever
    alert_dead_letters: int = 100  # of an account; more raise an alert
    alert_oldest_due_s: float = 1_800.0  # likewise for how late the oldest delivery is
    alert_slow_s: float = 2.0  # likewise for the 95th percentile of an endpoint's response times
    alert_queue: int = 100  # a queue that grows raises an alert from this length on
    alert_outbox_refused: int = 0  # refused rows of outboxes; more raise an alert
    alert_outbox_late_s: float = 300.0  # likewise for how late the oldest row of an outbox is
    alert_every_s: float = 60.0  # between two looks for alerts
    notify_deaths_s: float = 900.0  # an account's dead deliveries are gathered into one message for so long
    smtp_host: str | None = None  # the server that sends mail; None: no mail is sent
    smtp_port: int = 587
    smtp_tls: str = "starttls"
    smtp_username: str | None = None
    smtp_password: str | None = None
    mail_from: str | None = None  # the sender's address; None: hookline@ and the name of the SMTP server
    open_docs: bool = False  # /openapi.json and /docs need no key
    open_metrics: bool = False  # /metrics likewise
    contact: str | None = None  # sent to receivers in the User-Agent: whom to ask about these requests
    url: str = "http://127.0.0.1:8080"  # of the server that client commands talk to
    public_url: str | None = None  # of this server as people reach it; None: as the request reached it
    portal_frame_ancestors: tuple[str, ...] = ()  # origins of the pages that may show the portal in a frame
    portal_name: str | None = None  # whose portal it is
    portal_logo: str | None = None  # the path of an SVG or PNG file
    portal_accent: str | None = None  # a colour, #rrggbb, that can be read on light paper

    def __repr__(self) -> str:
        shown = {name: presentable(name, getattr(self, name)) for name in self.__struct_fields__}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    __str__ = __repr__


def presentable(name: str, value: Any) -> Any:
    """A setting's value as it may be shown."""
    if name in SECRET and value:
        return MASK
    if name == "egress_proxy" and value:
        return egress_proxy.shown(value)
    if name == "outbox":
        return tuple(map(database_url.shown, value))
    return database_url.shown(value) if name == "database" and isinstance(value, str) else value


class _Unfit(Exception):
    """The value is invalid; the text says what is allowed."""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Unfit("a string")
    return value


def _database(value: Any) -> str:
    url = _text(value)
    if (wrong := database_url.fault(url)) is not None:
        raise _Unfit(f"{database_url.ALLOWED}; {wrong}")
    return url


def _outbox(value: Any) -> tuple[str, ...]:
    urls = re.split(r"[\s,]+", value.strip()) if isinstance(value, str) else value
    if not isinstance(urls, list | tuple):
        raise _Unfit(f"{database_url.ALLOWED}; several, separated by commas or blanks")
    read = [_database(url) for url in urls if url != ""]
    if urls and not read and value != "":
        raise _Unfit(f"{database_url.ALLOWED}; several, separated by commas or blanks")
    if len(set(map(database_url.identity, read))) < len(read):
        raise _Unfit("each database once")
    return tuple(read)


def _api_key(value: Any) -> str:
    key = _text(value)
    if not re.fullmatch(r"[\x21-\x7e]{1,256}", key):
        raise _Unfit("1 to 256 visible ASCII characters")
    return key


def _secret_key(value: Any) -> tuple[str, ...]:
    keys = tuple(part.strip() for part in _text(value).split(",")) if value != "" else ()
    if not all(re.fullmatch(r"[\x21-\x7e]{32,256}", key) for key in keys):
        raise _Unfit(
            "32 to 256 random visible ASCII characters (such as `openssl rand -base64 32` prints); "
            "several, separated by commas, the newest first"
        )
    return keys


def _contact(value: Any) -> str:
    contact = _text(value)
    if not re.fullmatch(r"[\x21-\x27\x2a-\x7e]{1,200}", contact):
        raise _Unfit(
            "an address of 1 to 200 visible ASCII characters without brackets, such as https://example.com/hooks"
        )
    return contact


def _host(value: Any) -> str:
    host = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9.:%_-]{1,255}", host):
        raise _Unfit("an address or a host name")
    return host


def _smtp_tls(value: Any) -> str:
    if value not in SMTP_TLS:
        raise _Unfit(", ".join(SMTP_TLS))
    return str(value)


def _credential(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"[\x20-\x7e]{1,500}", text):
        raise _Unfit("1 to 500 printable ASCII characters")
    return text


def _mail_from(value: Any) -> str:
    address = _text(value)
    if not is_email(address):
        raise _Unfit("an address such as hookline@example.com")
    return address


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        match value.strip().lower():
            case "1" | "true" | "yes" | "on":
                return True
            case "0" | "false" | "no" | "off" | "":
                return False
    raise _Unfit("true or false")


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"[0-9](_?[0-9]){0,18}", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _Unfit(f"a whole number from {low:,} to {high:,}")
        return value

    return read


def _days(value: Any) -> int:
    if value == "never":
        return 0
    try:
        return _whole(0, 36_500)(value)
    except _Unfit:
        raise _Unfit("days from 1 to 36,500; 0 or never: nothing is pruned") from None


def _seconds(low: float, high: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise _Unfit(f"seconds from {low:g} to {high:,g}")
        return float(value)

    return read


def _per_second(value: Any) -> float:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
        value = float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not (value == 0 or 0.001 <= value <= 1_000_000):
        raise _Unfit("a number a second from 0.001 to 1,000,000; 0: any number")
    return float(value)


def _networks(value: Any) -> tuple[Network, ...]:
    allowed = "networks such as 127.0.0.0/8 or fd00::/8, separated by commas"
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise _Unfit(allowed)
    try:
        return tuple(
            ipaddress.ip_network(part) for part in value if isinstance(part, str) or _reject(allowed)
        )
    except ValueError as error:
        detail = "" if may_hold_credentials(",".join(map(str, value))) else f" ({error})"
        raise _Unfit(f"{allowed}{detail}") from None


def _reject(allowed: str) -> bool:
    raise _Unfit(allowed)


def _preset(value: Any) -> str:
    if not isinstance(value, str) or value not in PRESETS:
        near = did_you_mean(value, PRESETS) if isinstance(value, str) else ""
        raise _Unfit(f"{', '.join(PRESETS)}.{near}".removesuffix("."))
    return value


def _url(value: Any) -> str:
    allowed = "http://host:port or https://host, without a query"
    url = _text(value)
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise _Unfit(allowed) from None
    if not is_whole or not url.isascii() or not url.isprintable() or " " in url:
        raise _Unfit(allowed)
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise _Unfit(allowed)
    return url.rstrip("/")


def _origins(value: Any) -> tuple[str, ...]:
    allowed = f"up to {_MOST_ORIGINS} origins such as https://app.example.com, separated by spaces"
    parts = value.split() if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or len(parts) > _MOST_ORIGINS:
        raise _Unfit(allowed)
    origins = []
    for part in parts:
        origin = _ORIGIN.fullmatch(part.lower()) if isinstance(part, str) and part.isascii() else None
        if origin is None or int(origin["port"] or 0) > 65_535:
            raise _Unfit(f"{allowed}; each is http or https, a host and perhaps a port, and nothing after it")
        origins.append(origin[0])
    return tuple(dict.fromkeys(origins))


def _portal_name(value: Any) -> str:
    name = _text(value)
    if not 1 <= len(name) <= 60 or not name.isprintable() or name != name.strip():
        raise _Unfit("1 to 60 printable characters, without blanks around them")
    return name


def _egress_proxy(value: Any) -> str:
    url = _text(value)
    if egress_proxy.read(url) is None:
        raise _Unfit(f"{egress_proxy.ALLOWED}, with %40 for an @ in a password")
    return url


def _ca_file(value: Any) -> str:
    path = _text(value)
    if not 1 <= len(path) <= 1_000 or not path.isprintable():
        raise _Unfit("the path of a file with certificates in PEM form")
    return path


def _portal_logo(value: Any) -> str:
    path = _text(value)
    if not re.fullmatch(r".{1,1000}\.(svg|png)", path, re.IGNORECASE) or not path.isprintable():
        raise _Unfit("the path of an .svg or .png file")
    return path


def _accent(value: Any) -> str:
    colour = _text(value).lower()
    if not re.fullmatch(r"#[0-9a-f]{6}", colour):
        raise _Unfit("a colour such as #1f5fbf")
    if (ratio := contrast(colour, LIGHT_PAPER)) < LEAST_CONTRAST:
        raise _Unfit(
            f"a colour with a contrast of at least {LEAST_CONTRAST}:1 on {LIGHT_PAPER}; "
            f"this one has {math.floor(ratio * 100) / 100:.2f}:1"
        )
    return colour


_READERS: dict[str, Callable[[Any], Any]] = {
    "database": _database,
    "outbox": _outbox,
    "api_key": _api_key,
    "secret_key": _secret_key,
    "dev": _flag,
    "host": _host,
    "port": _whole(0, 65_535),
    "processes": _whole(1, 64),
    "metrics_port": _whole(0, 65_535),
    "allow_networks": _networks,
    "deny_networks": _networks,
    "egress_proxy": _egress_proxy,
    "ca_file": _ca_file,
    "heartbeat_s": _seconds(0.05, 60),
    "takeover_s": _seconds(0.25, 600),
    "poll_s": _seconds(0.01, 60),
    "notify": _flag,
    "drain_s": _seconds(0, 3_600),
    "max_in_flight": _whole(1, 100_000),
    "max_in_flight_per_host": _whole(1, 100_000),
    "payload_limit_bytes": _whole(1, 64 << 20),
    "batch_limit_bytes": _whole(1, 256 << 20),
    "deliveries_per_event": _whole(1, 1 << 20),
    "endpoints_per_account": _whole(1, 1_000_000),
    "publish_per_account": _per_second,
    "requests_per_key": _per_second,
    "max_connections": _whole(1, 1_000_000),
    "max_connections_per_address": _whole(1, 1_000_000),
    "max_hops": _whole(0, 100),
    "retry": _preset,
    "keep_delivered_days": _days,
    "keep_dead_days": _days,
    "keep_audit_days": _days,
    "alert_dead_letters": _whole(1, 1_000_000_000),
    "alert_oldest_due_s": _seconds(1, 30 * 86_400),
    "alert_slow_s": _seconds(0.001, 60),
    "alert_queue": _whole(1, 1_000_000_000),
    "alert_outbox_refused": _whole(0, 1_000_000_000),
    "alert_outbox_late_s": _seconds(1, 30 * 86_400),
    "alert_every_s": _seconds(0.1, 3_600),
    "notify_deaths_s": _seconds(0, 86_400),
    "smtp_host": _host,
    "smtp_port": _whole(1, 65_535),
    "smtp_tls": _smtp_tls,
    "smtp_username": _credential,
    "smtp_password": _credential,
    "mail_from": _mail_from,
    "open_docs": _flag,
    "open_metrics": _flag,
    "contact": _contact,
    "url": _url,
    "public_url": _url,
    "portal_frame_ancestors": _origins,
    "portal_name": _portal_name,
    "portal_logo": _portal_logo,
    "portal_accent": _accent,
}


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """The settings of this process. A flag of None was not given; a missing file sets nothing."""
    return load_with_sources(flags, environ=environ, file=file)[0]


def load_with_sources(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> tuple[Settings, dict[str, str]]:
    """The settings, with the flag, variable or file line that each value comes from; defaults have no source."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, value, source in [*_from_file(file), *_from_environ(environ or {}), *_from_flags(flags or {})]:
        sources[name] = source
        try:
            values[name] = _READERS[name](value)
        except _Unfit as unfit:
            raise ConfigError(
                f"{source}: {_given(name, value)} is not valid for {name}; allowed: {unfit}."
            ) from None
    settings = Settings(**values)
    _check_together(settings, sources)
    return settings, sources


def _given(name: str, value: Any) -> str:
    """A refused value as it may be shown: it may hold a password, also in the wrong setting."""
    if name in SECRET:
        return MASK
    text = str(value)
    if name in _LOGINS or may_hold_credentials(text):
        return "the value"
    return repr(value) if len(text) <= _MOST_SHOWN else repr(text[:_MOST_SHOWN])


def may_hold_credentials(text: str) -> bool:
    """Whether a text may be a URL with a login, however misspelt, or a key: nothing of it is repeated."""
    is_like_a_url = any(each in text for each in (":", "@", "//", "%", "="))
    return (is_like_a_url and _IS_ADDRESSES.fullmatch(text) is None) or bool(_LOOKS_RANDOM.search(text))


def _check_together(settings: Settings, sources: Mapping[str, str]) -> None:
    if settings.outbox and database_url.identity(settings.database) in map(
        database_url.identity, settings.outbox
    ):
        source = sources.get("outbox", "default")
        raise ConfigError(
            f"{source}: the outbox of hookline's own database is always read; leave it out here."
        )
    if settings.takeover_s < 2.5 * settings.heartbeat_s:
        source = sources.get("takeover_s") or sources.get("heartbeat_s", "default")
        raise ConfigError(
            f"{source}: takeover_s ({settings.takeover_s:g}) must be at least 2.5 times "
            f"heartbeat_s ({settings.heartbeat_s:g}), or a late heartbeat counts as a death."
        )
    if settings.metrics_port is not None and settings.metrics_port + settings.processes > 65_536:
        source = sources.get("metrics_port") or sources.get("processes", "default")
        raise ConfigError(
            f"{source}: metrics_port ({settings.metrics_port}) leaves no port for each of the "
            f"{settings.processes} processes; the last port is 65535."
        )
    if (settings.smtp_username is None) != (settings.smtp_password is None):
        source = sources.get("smtp_username") or sources.get("smtp_password", "default")
        raise ConfigError(f"{source}: smtp_username and smtp_password belong together; set both or none.")
    if (
        settings.smtp_host is not None
        and settings.mail_from is None
        and not is_email(f"hookline@{settings.smtp_host}")
    ):
        source = sources.get("smtp_host", "default")
        raise ConfigError(f"{source}: set mail_from too, the address that mail comes from.")
    if settings.smtp_username is not None and settings.smtp_tls == "none":
        source = sources.get("smtp_tls", "default")
        raise ConfigError(
            f"{source}: smtp_tls=none would send smtp_username and smtp_password in clear text; use starttls or tls."
        )
    if settings.batch_limit_bytes < settings.payload_limit_bytes:
        source = sources.get("batch_limit_bytes") or sources.get("payload_limit_bytes", "default")
        raise ConfigError(
            f"{source}: batch_limit_bytes ({settings.batch_limit_bytes:,}) must not be below "
            f"payload_limit_bytes ({settings.payload_limit_bytes:,})."
        )


def _from_flags(flags: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    given = [(name, value) for name, value in flags.items() if value is not None]
    return [(_known(name, f"--{name}"), value, f"--{name.replace('_', '-')}") for name, value in given]


def _from_environ(environ: Mapping[str, str]) -> list[tuple[str, Any, str]]:
    found = []
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        rest = variable[len(PREFIX) :]
        value = environ[variable]
        if not value and rest.lower() in _MAY_BE_EMPTY:
            continue  # platforms set a variable that nobody filled in to the empty text
        if _NOT_SETTINGS.fullmatch(rest) or (rest == "PORT" and _SERVICE_LINK.match(value)):
            continue
        found.append((_known(rest.lower(), variable, shout=True), value, variable))
    return found


def _from_file(file: Path | None) -> list[tuple[str, Any, str]]:
    if file is None:
        return []
    try:
        content = tomllib.loads(file.read_bytes().decode())
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read as TOML ({error}).") from None
    return [(_known(key, f"{file}: {_key(key)}"), value, f"{file}: {key}") for key, value in content.items()]


def _key(key: str) -> str:
    """A key of the file as it may be shown: a secret value may stand where a name should."""
    is_name = re.fullmatch(r"[A-Za-z0-9_-]{1,64}", key) is not None and not may_hold_credentials(key)
    return key if is_name else "a key that is no name"


def _known(name: str, source: str, *, shout: bool = False) -> str:
    if name in _READERS:
        return name
    near = nearest(name, _READERS)  # without the prefix, which would make all names alike
    hint = "" if near is None else f" Did you mean {PREFIX + near.upper() if shout else near}?"
    raise ConfigError(f"{source}: unknown setting.{hint}")
