"""Reads the trace that a publish belongs to (W3C Trace Context), so that its deliveries can carry it on.

hookline makes no spans of its own. It hands on what it was given, as a proxy does. What is malformed is ignored, as the
recommendation asks: a trace is never a reason to refuse a publish.
"""

import re
from collections.abc import Sequence

PARENT = "traceparent"
STATE = "tracestate"
MOST_STATE = 512  # characters; longer lists lose members, as the recommendation allows
MOST_MEMBERS = 32

_LONG_MEMBER = 128  # these are left out first
_SAMPLED = 1
_VERSIONED = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_KEY = r"[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13}"
_MEMBER = re.compile(rf"(?P<key>{_KEY})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{{0,255}}[\x21-\x2b\x2d-\x3c\x3e-\x7e]")


def read(parents: Sequence[str], states: Sequence[str] = ()) -> str | None:
    """The trace as it is stored: traceparent, and after a space tracestate if there is one; None: there is no trace."""
    parent = _parent(parents[0]) if len(parents) == 1 else None
    if parent is None:
        return None
    state = _state(",".join(states))
    return f"{parent} {state}" if state else parent


def headers_of(trace: str) -> dict[str, str]:
    """The headers of a request that carries the trace on; none if what is stored is no trace."""
    parent, _, state = trace.partition(" ")
    if read([parent], [state]) != trace:
        return {}
    return {PARENT: parent, STATE: state} if state else {PARENT: parent}


def _parent(text: str) -> str | None:
    found = _VERSIONED.fullmatch(text)
    if found is None:
        return None
    version, trace, span, flags, rest = found.groups()
    if version == "ff" or not trace.strip("0") or not span.strip("0") or (version == "00" and rest):
        return None
    if version != "00":  # a later version is handed on as the one that is known
        flags = f"{int(flags, 16) & _SAMPLED:02x}"
    return f"00-{trace}-{span}-{flags}"


def _state(text: str) -> str:
    """The list of members, shortened if it is long; empty if it is malformed."""
    members = [member for part in text.split(",") if (member := part.strip(" \t"))]
    found = [_MEMBER.fullmatch(member) for member in members]
    keys = {each["key"] for each in found if each is not None}
    if len(keys) < len(members) or len(members) > MOST_MEMBERS:
        return ""
    if len(",".join(members)) > MOST_STATE:
        members = [member for member in members if len(member) <= _LONG_MEMBER]
    while len(",".join(members)) > MOST_STATE:
        members.pop()
    return ",".join(members)
