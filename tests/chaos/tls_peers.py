"""Servers whose TLS is wrong in one way each, that see every byte they are sent.

They run in a thread of this process. Each reads from a plain socket and has OpenSSL decrypt what came, so that it
knows both what was on the wire and what could be read of it.
"""

import asyncio
import re
import ssl
import threading
from pathlib import Path

from tests.pipeline.sending.certificates import Authority, old_tls, other_ciphers

MARKER = b"nobody else may read this"  # in every body
HERE = "127.0.0.1"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_OK = b"HTTP/1.1 200 Fine\r\ncontent-length: 0\r\n\r\n"
_CEILING_S = 60.0


class Peer:
    """One of the servers, and what it saw."""

    def __init__(self, context: ssl.SSLContext | None, answer: bytes = b"") -> None:
        self._context = context  # None: it knows no TLS
        self._answer = answer  # without TLS: what it says to anything
        self.port = 0
        self.connections = 0
        self.open = 0
        self.requests = 0
        self.readable = 0  # bytes of requests that it could read
        self.has_seen_the_body = False  # on the wire, as it is

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            await (self._listen(reader, writer) if self._context is None else self._shake(reader, writer))
        except OSError:
            pass  # the sender hung up
        finally:
            self.open -= 1
            writer.close()

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = b""
        while data := await reader.read(65_536):
            seen += data
            self._look_at(seen)
            self.readable += data.count(b"webhook-") + data.count(b"POST ")
            writer.write(self._answer)
            await writer.drain()

    async def _shake(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._context is not None
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(incoming, outgoing, server_side=True)
        wire = request = b""
        is_shaken = False
        while data := await reader.read(65_536):
            wire += data
            self._look_at(wire)
            incoming.write(data)
            try:
                if not is_shaken:
                    tls.do_handshake()
                    is_shaken = True
                while chunk := tls.read(65_536):
                    self.readable += len(chunk)
                    request += chunk
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                writer.write(outgoing.read())  # the alert that says why
                await writer.drain()
                return
            if _is_whole(request):
                self.requests += 1
                request = b""
                tls.write(_OK)
            writer.write(outgoing.read())
            await writer.drain()

    def _look_at(self, wire: bytes) -> None:
        self.has_seen_the_body |= MARKER in wire


class Peers:
    """One server for each way to fail, and one that is as it should be."""

    def __init__(self, folder: Path) -> None:
        authority, stranger = _authority(folder / "authority"), _authority(folder / "stranger")
        self.authorities = authority.root
        self.good = Peer(authority.server(HERE))
        self.bad = {
            "self-signed": Peer(authority.server(HERE, self_signed=True)),
            "expired": Peer(authority.server(HERE, expired=True)),
            "wrong-host": Peer(authority.server("127.0.0.2")),
            "unknown-authority": Peer(stranger.server(HERE)),
            "old-tls": Peer(old_tls(authority.server(HERE))),
            "no-shared-cipher": Peer(other_ciphers(authority.server(HERE))),
            "plaintext": Peer(None, b"HTTP/1.1 400 Speak plainly\r\ncontent-length: 0\r\n\r\n"),
            "silence": Peer(None),
        }
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_CEILING_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CEILING_S)

    async def _listen(self) -> None:
        for peer in (self.good, *self.bad.values()):
            server = await asyncio.start_server(peer.meet, HERE, 0, backlog=1_024)
            peer.port = server.sockets[0].getsockname()[1]


def _authority(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)


def _is_whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(end) and length is not None and len(body) >= int(length[1])
