"""Shows a payload as text.

The readable view only moves white space: numbers, strings and the order of keys stay as they were published. What is
not JSON, or is too large for it, is shown as it was sent.
"""

import re
from typing import NamedTuple

import msgspec
from markupsafe import Markup
from starlette.responses import Response

from hookline.dashboard.look.hidden_marks import visible_payload

SHOWN_BYTES = 65_536
_DEEPEST = 64  # as deep as the API takes it
_MOST_TEXT = 8 * SHOWN_BYTES  # deep lists grow by their indentation
_MOST_PARTS = 20_000  # laying out blocks all others meanwhile
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


class PayloadView(NamedTuple):
    """A payload as it is shown."""

    size: int  # in bytes
    html: Markup  # the text, with its strings and keys marked
    text: str  # the same without marks, to be copied; empty if it is cut
    is_readable: bool  # as opposed to as it was sent
    is_cut: bool
    note: str  # why it is not shown as asked


def viewed(payload: bytes, *, is_raw: bool = False) -> PayloadView:
    """The payload in its readable form, or as it was sent."""
    size = len(payload)
    if size > SHOWN_BYTES:
        text = payload[:SHOWN_BYTES].decode("utf-8", "ignore")
        note = f"Only its first {SHOWN_BYTES // 1024} KiB are shown, as they were sent. The download has all of it."
        return PayloadView(size, visible_payload(text), "", False, True, note)
    if not is_raw:
        pieces = _pretty(payload)
        if pieces is not None:
            html = Markup("".join([_marked(kind, text) for kind, text in pieces]))  # noqa: S704 - each is escaped
            return PayloadView(size, html, "".join(text for _, text in pieces), True, False, "")
    try:
        text, note = (
            payload.decode(),
            "" if is_raw else "It cannot be laid out, so it is shown as it was sent.",
        )
    except UnicodeDecodeError:
        text, note = payload.decode("utf-8", "replace"), "It is not UTF-8: what cannot be read is shown as �."
    return PayloadView(size, visible_payload(text), text, False, False, note)


def payload_file(payload: bytes, *, name: str) -> Response:
    """The exact bytes as a file to be saved; no browser takes it for a page: all answers say nosniff."""
    return Response(
        payload,
        media_type="application/octet-stream",
        headers={
            "content-disposition": f'attachment; filename="{re.sub("[^A-Za-z0-9_.-]", "_", name)}.json"'
        },
    )


def _pretty(payload: bytes) -> list[tuple[str, str]] | None:
    """The pieces of the laid-out text, each with what it is; None if it cannot be laid out."""
    try:
        msgspec.json.decode(payload, type=msgspec.Raw)
        source = payload.decode()
    except (ValueError, RecursionError):
        return None
    parts: list[str] = _PART.findall(source)
    if len(parts) > _MOST_PARTS:
        return None
    pieces: list[tuple[str, str]] = []
    depth = length = 0
    for place, part in enumerate(parts):
        before = parts[place - 1] if place else ""
        after = parts[place + 1] if place + 1 < len(parts) else ""
        if part in "]}" and before not in ("[", "{"):
            pieces.append(("", "\n" + "  " * (depth - 1)))
        kind = "" if part[0] != '"' else "key" if after == ":" else "string"
        pieces.append((kind, part))
        if part in "[{":
            depth += 1
        elif part in "]}":
            depth -= 1
        if part == ":":
            pieces.append(("", " "))
        elif part == "," or (part in "[{" and after not in ("]", "}")):
            pieces.append(("", "\n" + "  " * depth))
        length += len(part) + 2 * depth
        if depth > _DEEPEST or length > _MOST_TEXT:
            return None
    return pieces


def _marked(kind: str, text: str) -> str:
    if not kind:
        return visible_payload(text)
    return f'<span class="{"k" if kind == "key" else "s"}">{visible_payload(text)}</span>'
