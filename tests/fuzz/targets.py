"""What must hold of any bytes: a target takes some, and raises if hookline makes something wrong of them.

The fuzzer calls targets with bytes of its own making (tests/fuzz/fuzz.py), the suite with seeds and with Hypothesis.
"""

# ruff: noqa: PT017 - what is refused has to be refused well

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from uvicorn.config import Config
from uvicorn.server import ServerState

from hookline.api.app import Api
from hookline.api.cursor import Cursors
from hookline.api.limits.connections import Clients
from hookline.api.protocol import HEAD_LIMIT_BYTES, LINGER_BYTES, Protocol
from hookline.crypto.sealing import Sealer
from hookline.errors import Invalid
from hookline.model import Endpoint, EndpointId, Signing
from hookline.pipeline.catalogue.prepared_endpoint import PreparedEndpoint, usable
from hookline.pipeline.sending.response import Limits, Malformed, Response
from hookline.pipeline.sending.target import head_of, parse
from hookline.reports.queries import endpoint_report
from hookline.rules.client_connections import limits
from hookline.rules.destination import MAX_URL_BYTES, canonical
from hookline.rules.redirect import next_url
from hookline.rules.retry_after import LONGEST_ASKED, asked_wait
from hookline.store import endpoint_row
from hookline.store.endpoint_columns import COLUMNS, Form, columns_of
from hookline.store.sqlite.columns import endpoint_values
from hookline.validate.payload_filter import Budget, Filter, checked
from hookline.validate.stored_endpoint import EndpointJudge

Target = Callable[[bytes], None]

LIMITS = Limits(read_bytes=1 << 30, kept_bytes=3, head_bytes=2_048, fields=16, interims=3)


def response(data: bytes) -> None:
    """The reader of answers. The first two bytes say where the rest is cut."""
    cuts, said = data[:2], data[2:]
    whole = _read([said])
    edges = sorted({0, len(said), *(cut % (len(said) + 1) for cut in cuts)})
    assert _read([said[start:end] for start, end in pairwise(edges)]) == whole
    assert _read([said[at : at + 1] for at in range(len(said))]) == whole


def _read(pieces: list[bytes]) -> tuple[Any, ...]:
    """What is read of an answer in these pieces, as a connection does it."""
    reader = Response(LIMITS)
    meaning = _read_once(reader, pieces)
    if reader.is_clean:
        # The same bytes again on the same connection, from the reader's memory or not.
        reader.reset()
        assert _read_once(reader, pieces) == meaning
        assert reader.is_clean
    reader.release()
    return meaning


def _read_once(reader: Response, pieces: list[bytes]) -> tuple[Any, ...]:
    for number, piece in enumerate(pieces):
        if not piece:
            continue
        try:
            is_complete = reader.feed(piece)
        except Malformed as malformed:
            assert str(malformed)
            return ("malformed",)
        assert len(reader.body) <= LIMITS.kept_bytes
        assert len(reader.headers) <= LIMITS.fields or not reader.has_head
        assert is_complete is reader.complete
        assert not (reader.is_clean and not is_complete)
        if is_complete:
            if any(pieces[number + 1 :]):
                reader.is_clean = False  # what follows is an answer to no request: the connection is closed
            break
    if reader.has_head:
        assert 200 <= reader.status <= 999
    return reader.complete, reader.status, reader.headers, reader.body, reader.body_bytes


def url(data: bytes) -> None:
    """The grammar of URLs and the one who takes them apart agree; a redirect gives a URL or none."""
    private, text = bool(data[:1] and data[0] & 1), data[1:].decode("utf-8", "surrogateescape")
    base = "https://hooks.example.com/a"
    redirected = next_url(307, text, current=base)
    assert redirected is None or isinstance(redirected, str)
    try:
        spelled = canonical(text, private_allowed=private)
    except Invalid as refused:
        assert refused.code in ("url_invalid", "url_forbidden")
        assert len(refused.detail) < 400
        refused.detail.encode("ascii")
        return
    assert spelled.isascii()
    assert len(spelled) <= MAX_URL_BYTES
    assert canonical(spelled, private_allowed=private) == spelled
    target, parts = parse(spelled), urlsplit(spelled)
    assert (target.host, target.tls) == (parts.hostname, parts.scheme == "https")
    assert target.port == (parts.port or (443 if target.tls else 80))
    assert target.path == parts.path + (f"?{parts.query}" if "?" in spelled else "")
    assert parts.username is None
    head = head_of(target)
    assert head.count(b"\r\n") == 2
    assert head.split(b"\r\n")[0] == f"POST {target.path} HTTP/1.1".encode()


def retry_after(data: bytes) -> None:
    """A `Retry-After` is a wait of at most a day, or nothing."""
    wait = asked_wait(data.decode("latin-1"), wall=1_767_225_600.0)
    assert wait is None or 0.0 <= wait <= LONGEST_ASKED


def cursor(data: bytes) -> None:
    """A cursor that is read is one that was made."""
    cursors = Cursors(b"secret of the fuzzer")
    filters = {"account": "acme"}
    made = cursors.show(data or b"x", of="/v1/events", filters=filters)
    assert cursors.read(made, of="/v1/events", filters=filters) == (data or b"x")
    for of, other in (("/v1/endpoints", filters), ("/v1/events", {"account": "birch"})):
        assert _refuses(lambda of=of, other=other: cursors.read(made, of=of, filters=other))
    text = data.decode("utf-8", "replace")
    assert text == made or _refuses(lambda: cursors.read(text, of="/v1/events", filters=filters))


def _refuses(read: Callable[[], object]) -> bool:
    try:
        read()
    except Invalid as refused:
        return refused.code == "invalid_cursor"
    return False


_JSON = columns_of(Form.JSON, Form.LIST)
_JUDGE = EndpointJudge(Sealer())
_GOOD = endpoint_values(
    Endpoint(
        id=EndpointId(bytes(16)),
        account="acme",
        url="https://hooks.example.com/",
        events=("*",),
        secret="whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        signing=Signing.STANDARD,
        created_at=0.0,
        updated_at=0.0,
    )
)
_NAMES = [name for name in COLUMNS if name != "id"]


def endpoint(data: bytes) -> None:
    """A stored endpoint can be read, judged, shown and prepared, whatever one of its columns holds.

    The first byte chooses the column, the second how the rest is meant: as text, as bytes, as a number or as nothing.
    """
    name = _NAMES[(data[0] if data else 0) % len(_NAMES)]
    rest = data[2:]
    value: Any = (
        rest.decode("utf-8", "replace"),
        rest,
        int.from_bytes(rest[:8], signed=True),
        None,
        float(int.from_bytes(rest[:4])) * 10.0 ** (int.from_bytes(rest[4:6], signed=True) % 600 - 300),
    )[(data[1] if len(data) > 1 else 0) % 5]
    found = endpoint_row.read({**_GOOD, "enabled": True, "paused": False, name: value}, json=_JSON)
    assert found is not None
    faults = _JUDGE.faults(found)
    for why in faults.values():
        assert why
        assert len(why) <= 400
    json.loads(msgspec.json.encode(endpoint_report(found, shown=float, faults=faults)))
    fault = next(iter(faults), None)
    secrets = None if faults else Sealer().opened(found)
    prepared = PreparedEndpoint(usable(found, faults), secrets, fault=fault)
    assert head_of(prepared.target).endswith(b"Content-Length: ")


def filter(data: bytes) -> None:
    """A filter is refused with a reason, or says yes or no to every payload. A line ends the expression."""
    expression, _, payload = data.partition(b"\n")
    try:
        text = checked(expression.decode("utf-8", "surrogateescape"))
    except Invalid as refused:
        assert len(refused.detail) < 600
        return
    try:
        value = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = {"id": 42, "list": [1, "a", None, [2]], "text": payload.decode("utf-8", "replace")}
    chosen = Filter(text)
    verdict = chosen.passes(value, Budget(len(payload)))
    assert isinstance(verdict, bool)
    assert chosen.passes_soon(value, Budget(len(payload))) in (verdict, None)


class _Wire(asyncio.Transport):
    """The transport of a client that plays no network."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 80), "sockname": ("192.0.2.2", 80), "sslcontext": None})
        self.written = b""
        self._is_closing = False

    def write(self, data: Any) -> None:
        self.written += data

    def write_eof(self) -> None:
        """Nothing is closed half."""

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    def abort(self) -> None:
        self._is_closing = True

    def pause_reading(self) -> None:
        """It is never full."""

    def resume_reading(self) -> None:
        """Likewise."""


class _Application(Api):
    """It reads each request and answers 204."""

    def __init__(self) -> None:
        self.clients = Clients(limits(100, None), Counter())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def request(data: bytes) -> None:
    """The reader of API requests. The first byte says where the rest is cut."""
    asyncio.run(_request(data[1:], cut=data[0] if data else 0))


_CONFIG = Config(_Application(), http=Protocol, log_config=None, access_log=False, lifespan="off")


async def _request(data: bytes, *, cut: int) -> None:
    if not _CONFIG.loaded:
        _CONFIG.load()
    protocol, wire = Protocol(_CONFIG, ServerState(), {}), _Wire()
    protocol.connection_made(wire)
    at = cut % (len(data) + 1)
    for piece in (data[:at], data[at:]):
        if piece and not wire.is_closing():
            protocol.data_received(piece)
            assert len(protocol._line) <= 64
            assert protocol._head_bytes <= HEAD_LIMIT_BYTES + LINGER_BYTES + len(data)
            for _ in range(5):
                await asyncio.sleep(0)
    protocol.connection_lost(None)
    assert not wire.written or wire.written.startswith(b"HTTP/1.1 ")
    head = wire.written.partition(b"\r\n\r\n")[0]
    assert b"HTTP/1.1 500" not in head
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))


TARGETS: dict[str, Target] = {
    "response": response,
    "url": url,
    "request": request,
    "cursor": cursor,
    "endpoint": endpoint,
    "filter": filter,
    "retry_after": retry_after,
}


def seeds() -> Iterator[tuple[str, bytes]]:
    """Every seed there is, with its target."""
    for folder in sorted((Path(__file__).parent / "seeds").iterdir()):
        for file in sorted(folder.iterdir()):
            yield folder.name, file.read_bytes()
