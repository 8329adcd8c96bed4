"""Reads the JSON body of a request, up to a limit.

It refuses by the headers before anything is read. Where the headers do not give the size, it stops reading at the
limit.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from hookline.api.problem import Refused
from hookline.errors import TooLarge

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

READ_WITHIN_S = 30.0

_JSON = b"application/json"
_MERGE_PATCH = b"application/merge-patch+json"
_JSON_UTF8 = re.compile(
    rb'application/json[ \t]*(?:;[ \t]*charset=(?:utf-8|"utf-8")[ \t]*)?;?', re.IGNORECASE
)


class Disconnected(Exception):
    """The client has disconnected; there is nobody to answer."""


def check_media(
    headers: Iterable[tuple[bytes, bytes]], *, limit_bytes: int, merge_patch: bool = False
) -> None:
    """Raise unless the headers announce a JSON body in UTF-8, not compressed and not over the limit."""
    media: bytes | None = None
    for name, value in headers:
        if name == b"content-type":
            if media is not None:
                raise _unsupported("There are two Content-Type headers.")
            media = value
        elif name == b"content-encoding":
            raise _unsupported("Bodies are taken as they are, without a Content-Encoding.")
        elif name == b"content-length" and (len(value) > 15 or int(value) > limit_bytes):
            raise TooLarge("The body of this request", limit_bytes=limit_bytes)
    if merge_patch and media is not None and media.lower() == _MERGE_PATCH:
        return
    if media != _JSON and (media is None or not _JSON_UTF8.fullmatch(media)):
        raise _unsupported("The Content-Type must be application/json, in UTF-8.")


async def read_body(receive: Receive, *, limit_bytes: int) -> bytes:
    """The whole body. The connection ends if it comes too slowly (see `protocol`)."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > limit_bytes:
            raise TooLarge("The body of this request", limit_bytes=limit_bytes)
        return body
    return await _read_rest(message, receive, limit_bytes=limit_bytes)


async def _read_rest(message: MutableMapping[str, Any], receive: Receive, *, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise Disconnected
        part = message.get("body", b"")
        size += len(part)
        if size > limit_bytes:
            raise TooLarge("The body of this request", limit_bytes=limit_bytes)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()


def _unsupported(detail: str) -> Refused:
    return Refused("unsupported_media_type", detail)
