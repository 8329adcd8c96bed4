"""Parses the receiver's response.

It reads exactly one response from bytes that arrive in any pieces. Head and body are given to llhttp separately, cut at
the empty line. Only then is it certain where a response ended. A connection with even one surplus byte (a stray CRLF,
which llhttp skips silently) is never used again.
"""

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

_END_OF_HEAD = b"\r\n\r\n"
_USUAL_START = b"HTTP/1.1 "
_H = ord("H")
_ONE = ord("1")
_BODILESS = (204, 205, 304)
_REMEMBERED_BYTES = 2_048


class Limits(msgspec.Struct, frozen=True):
    """How much of an answer is read and kept."""

    read_bytes: int = 65_536  # after the head, framing included; more is not read
    kept_bytes: int = 4_096  # of the body
    head_bytes: int = 65_536  # interim answers included
    fields: int = 256
    interims: int = 16  # 1xx answers before the final one


class Malformed(Exception):
    """The bytes are not one HTTP/1.x response, or the head is longer than allowed."""


class _Surplus(Exception):
    pass


class Response:
    """One response at a time; `reset` prepares it for the next one on the same connection."""

    __slots__ = (
        "_fault",
        "_head_bytes",
        "_interims",
        "_limits",
        "_memory",
        "_parser",
        "_tail",
        "_usual",
        "body",
        "body_bytes",
        "chunked",
        "complete",
        "has_head",
        "headers",
        "is_clean",
        "read_bytes",
        "status",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parser = HttpResponseParser(self)
        # The last answer that came in one piece and left the connection clean, as bytes and as their meaning. A
        # receiver mostly sends the same again, and the same bytes at the same place mean the same.
        self._memory: tuple[bytes, int, list[tuple[bytes, bytes]], bytes, int] = (b"", 0, [], b"", 0)
        self.reset()

    def reset(self) -> None:
        """Forget the last response."""
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""  # the first `kept_bytes`
        self.body_bytes = 0  # all of it, as far as it was read
        self.read_bytes = 0
        self.has_head = False
        self.complete = False
        self.chunked = False
        self.is_clean = False  # complete, nothing after it, and both sides keep the connection
        self._head_bytes = 0
        self._interims = 0
        self._tail = b""
        self._usual = False
        self._fault: str | None = None

    @property
    def has_begun(self) -> bool:
        """Whether any byte of an answer has arrived."""
        return self._head_bytes > 0

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; True when the response is complete. Raises Malformed."""
        if data == self._memory[0] and not self._head_bytes:
            _, self.status, self.headers, self.body, self.body_bytes = self._memory
            self._head_bytes = len(data)
            self.has_head = self.complete = self.is_clean = True
            return True
        is_first = not self._head_bytes
        try:
            if self.has_head:
                self._feed_body(data, len(data))
            elif (
                not self._head_bytes
                and data.startswith(_USUAL_START)
                and (end := data.find(_END_OF_HEAD)) > 0
            ):
                # The usual case, a head in one piece: one call for it and what follows.
                if data[9] == _ONE:
                    self._feed_heads(data)
                else:
                    self._usual = True
                    self._count_head(end + 4)
                    self._feed_body(data, len(data) - end - 4)
            else:
                self._feed_heads(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            raise Malformed(self._fault or str(error)) from None
        if self._fault is not None:
            raise Malformed(self._fault)
        if is_first and self.is_clean and len(data) <= _REMEMBERED_BYTES:
            self._memory = (data, self.status, self.headers, self.body, self.body_bytes)
        return self.complete

    def is_whole_at_eof(self) -> bool:
        """Whether the end of the connection properly ends this body, because its head gave no length."""
        for name, value in self.headers:
            lowered = name.lower()
            if lowered == b"content-length":
                return False
            if lowered == b"transfer-encoding" and value.lower().endswith(b"chunked"):
                return False
        return self.has_head

    def release(self) -> None:
        """Drop the parser, which holds a reference to this object."""
        del self._parser

    def _feed_heads(self, data: bytes) -> None:
        """Heads in pieces, and interim answers, each fed up to its empty line."""
        while data and not self.has_head:
            if self._tail:
                end = (self._tail + data).find(_END_OF_HEAD)
                size = len(data) if end < 0 else end + 4 - len(self._tail)
            else:
                # llhttp would also accept RTSP and skip leading line ends; neither is an answer to a POST.
                if data[0] != _H:
                    raise Malformed("The answer does not begin with HTTP/.")
                self._usual = data.startswith(_USUAL_START)
                end = data.find(_END_OF_HEAD)
                size = len(data) if end < 0 else end + 4
            self._count_head(size)
            piece, data = data[:size], data[size:]
            self._parser.feed_data(piece)
            if self._fault is not None:
                return
            self._tail = (self._tail + piece)[-3:] if end < 0 else b""
        if self.complete:
            self.is_clean = self.is_clean and not data
        elif data:
            self._feed_body(data, len(data))

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._limits.head_bytes:
            raise Malformed("The head of the answer is too large.")

    def _feed_body(self, data: bytes, size: int) -> None:
        """Feed bytes of which the last `size` come after the head."""
        self.read_bytes += size
        before = self.body_bytes
        try:
            self._parser.feed_data(data)
        except HttpParserError:
            if not self.complete:
                raise
            self.is_clean = False
            return
        if self.is_clean:
            if self.chunked:
                # The CRLF CRLF that ends the last chunk comes after another byte; that of stray line ends does not.
                self.is_clean = len(data) >= 5 and data.endswith(_END_OF_HEAD) and data[-5] not in b"\r\n"
            else:
                self.is_clean = self.body_bytes - before == size

    # What llhttp calls.

    def on_message_begin(self) -> None:
        if self.complete:
            raise _Surplus

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.has_head:
            return  # a trailer
        self.headers.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if not self._usual and self._parser.get_http_version() not in ("1.0", "1.1"):
            self._fault = "The answer is not HTTP/1.x."
        elif status < 100 or status == 101:
            self._fault = f"The answer has status {status:03}, which was not asked for."
        elif len(self.headers) > self._limits.fields:
            self._fault = "The head of the answer has too many fields."
        elif status >= 200:
            self.status = status
            self.has_head = True
        else:
            self.headers.clear()
            self._interims += 1
            if self._interims > self._limits.interims:
                self._fault = "Too many interim (1xx) answers."

    def on_chunk_header(self) -> None:
        self.chunked = True

    def on_body(self, body: bytes) -> None:
        room = self._limits.kept_bytes - self.body_bytes
        self.body_bytes += len(body)
        if room > 0:
            self.body += body if len(body) <= room else body[:room]

    def on_message_complete(self) -> None:
        if self.has_head:
            self.complete = True
            self.is_clean = (
                self._parser.should_keep_alive()
                and (self._usual or self._parser.get_http_version() == "1.1")
                and (self.status not in _BODILESS or self._is_without_body())
            )

    def _is_without_body(self) -> bool:
        """Whether it has no body: one that does not belong may arrive later and be taken for the next answer."""
        return not self.body_bytes and not any(
            name.lower() == b"content-length" and value != b"0" for name, value in self.headers
        )
