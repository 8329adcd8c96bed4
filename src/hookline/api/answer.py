"""Writes the answers of the API.

Every answer carries a Request-Id, and every refusal is a problem document. This is raw ASGI: publishing is the hot
path, and everything else can use the same code.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from hookline.api.problem import Problem, Refused, headers_for
from hookline.api.request.body import Receive
from hookline.errors import TooLarge

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")
LINGER_S = 2.0
LINGER_BYTES = 32 << 20


async def answer(send: Send, status: int, body: bytes, *, request_id: str, headers: list[Header]) -> None:
    """Send a whole answer."""
    await send(_head(status, len(body), request_id, headers))
    await send({"type": "http.response.body", "body": body})


async def refuse(error: Exception, problem: Problem, *, receive: Receive, send: Send) -> None:
    """Send the problem document for an error."""
    request_id = problem.request_id
    headers = headers_for(problem)
    closes = isinstance(error, TooLarge)
    if isinstance(error, Refused):
        headers.extend(error.headers)
        closes = error.close
    body = msgspec.json.encode(problem)
    if not closes:
        await answer(send, problem.status, body, request_id=request_id, headers=headers)
        return
    # The client may still be sending. Closing now would reset the connection, and the client would lose the
    # answer that it has not read yet. So the rest is read and dropped for a short time first.
    headers.append((b"connection", b"close"))
    await send(_head(problem.status, len(body), request_id, headers))
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await _drain(receive)
    await send({"type": "http.response.body", "body": b""})


def _head(status: int, length: int, request_id: str, headers: list[Header]) -> dict[str, Any]:
    own = [(b"request-id", request_id.encode("ascii"))]
    if status != 204:
        own.append((b"content-length", b"%d" % length))
    return {"type": "http.response.start", "status": status, "headers": headers + own}


async def _drain(receive: Receive) -> None:
    read = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while read < LINGER_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
                read += len(message.get("body", b""))
