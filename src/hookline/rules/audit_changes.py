"""Decides what an entry of the audit trail says of a change, without secrets."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from hookline.model import AuditAction

MASK = "***"
LIMIT_BYTES = 4_096  # of all changes in an entry, as JSON
VALUE_BYTES = 600  # of one value; a longer one is cut

_CUT = "…"
_SWITCHES = {
    ("enabled", True): AuditAction.ENDPOINT_ENABLED,
    ("enabled", False): AuditAction.ENDPOINT_DISABLED,
    ("paused", True): AuditAction.ENDPOINT_PAUSED,
    ("paused", False): AuditAction.ENDPOINT_RESUMED,
}

Show = Callable[[Any], Any]


class AuditChanges(msgspec.Struct, frozen=True):
    """By field the old and the new value; a value that there was not, or that is gone, is None."""

    fields: dict[str, Any] = {}
    is_cut: bool = False

    def __bool__(self) -> bool:
        return bool(self.fields) or self.is_cut


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], *, shows: Mapping[str, Show] | None = None
) -> AuditChanges:
    """The fields that differ. They are compared as they are, and noted as `shows` makes them, which may hide them."""
    names = [*before, *(name for name in after if name not in before)]
    shows = shows or {}
    found = {}
    for name in names:
        old, new = before.get(name), after.get(name)
        if old != new:
            show = shows.get(name)
            found[name] = [_shown(old, show), _shown(new, show)]
    return bounded(found)


def noted(**fields: Any) -> AuditChanges:
    """Values that an action was given; those that are None were not."""
    return bounded({name: [None, value] for name, value in fields.items() if value is not None})


def bounded(fields: Mapping[str, Any]) -> AuditChanges:
    """The changes, as far as they fit into an entry."""
    kept: dict[str, Any] = {}
    size, is_cut = len("{}"), False
    for name, pair in fields.items():
        short = [_short(value) for value in pair]
        is_cut = is_cut or short != list(pair)
        added = len(msgspec.json.encode({name: short})) - 1
        if size + added > LIMIT_BYTES:
            is_cut = True
            continue
        kept[name] = short
        size += added
    return AuditChanges(kept, is_cut)


def without_credentials(url: Any) -> Any:
    """The URL with user and password masked."""
    if not isinstance(url, str) or "@" not in url:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"{MASK}@{parts.netloc.rpartition('@')[2]}"))


def masked_values(value: Any) -> Any:
    """Names with their values masked."""
    return dict.fromkeys(value, MASK) if isinstance(value, Mapping) else MASK


def endpoint_action(changes: AuditChanges) -> AuditAction:
    """What was done to an endpoint whose fields changed so."""
    if len(changes.fields) == 1 and not changes.is_cut:
        [(name, (_, new))] = changes.fields.items()
        if isinstance(new, bool):
            return _SWITCHES.get((name, new), AuditAction.ENDPOINT_UPDATED)
    return AuditAction.ENDPOINT_UPDATED


def _shown(value: Any, show: Show | None) -> Any:
    if value is None:
        return None
    return msgspec.to_builtins(value if show is None else show(value))


def _short(value: Any) -> Any:
    encoded = msgspec.json.encode(value)
    if len(encoded) <= VALUE_BYTES:
        return value
    text = value if isinstance(value, str) else encoded.decode()
    return text.encode()[: VALUE_BYTES - 100].decode("utf-8", "ignore") + _CUT
