"""Asks a proxy for a connection to a target (CONNECT), over a connection to the proxy.

What the proxy says is read up to the end of its head and no further: what follows is the target's.
"""

import asyncio
import re
from base64 import b64encode
from typing import cast

from hookline.pipeline.sending.contract import Target
from hookline.rules.egress_proxy import EgressProxy
from hookline.version import USER_AGENT

MOST_HEAD_BYTES = 8_192

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?:[ \r])")
_WHY = {407: "; check the user and the password in HOOKLINE_EGRESS_PROXY"}


class TunnelRefused(Exception):
    """The proxy opened no connection; the text says why, in one line without its words."""


class Tunnel(asyncio.Protocol):
    """A connection to the proxy, until the proxy has answered."""

    def __init__(self, proxy: EgressProxy, target: Target) -> None:
        self._request = _request(proxy, target)
        self._head = b""
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def opened(self) -> None:
        """Wait for the answer; the transport then reads nothing until it is told to."""
        await self._answered

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._answered.done():
            return
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0 and len(self._head) <= MOST_HEAD_BYTES:
            return
        self._transport.pause_reading()
        status = _STATUS.match(self._head)
        if end < 0 or end > MOST_HEAD_BYTES:
            self._refuse("The head of the egress proxy's answer is too large.")
        elif status is None:
            self._refuse("The egress proxy does not answer as an HTTP proxy.")
        elif not 200 <= int(status[1]) < 300:
            self._refuse(f"The egress proxy answered {int(status[1])}{_WHY.get(int(status[1]), '')}.")
        elif len(self._head) > end + 4:
            self._refuse("The egress proxy said more than its answer.")
        else:
            self._answered.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answered.done():
            self._refuse("The egress proxy closed the connection without an answer.")

    def _refuse(self, why: str) -> None:
        self._answered.set_exception(TunnelRefused(why))
        self._answered.exception()  # seen, even if nobody waits any more


def _request(proxy: EgressProxy, target: Target) -> bytes:
    host = f"[{target.host}]" if ":" in target.host else target.host
    place = f"{host}:{target.port}"
    credentials = ""
    if proxy.user is not None:
        pair = b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
        credentials = f"Proxy-Authorization: Basic {pair}\r\n"
    return (
        f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nUser-Agent: {USER_AGENT}\r\n{credentials}\r\n"
    ).encode("ascii")
