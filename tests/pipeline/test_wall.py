"""Whatever the store holds, one well-formed request is written to a socket, or nothing."""

import asyncio
import re
from typing import Any

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factories import an_endpoint, an_event, ids
from hookline.clock import SystemClock
from hookline.crypto.sealing import Secrets
from hookline.errors import HooklineError
from hookline.ids import delivery_of
from hookline.model import Endpoint, Queue, Signing
from hookline.pipeline.catalogue.prepared_endpoint import PreparedEndpoint
from hookline.pipeline.sending import HttpSender, SendResult
from hookline.pipeline.sending.net import SystemNet
from hookline.pipeline.sending.tls_contexts import default_context
from hookline.store.contract import Loaded

CONTEXT = default_context()  # loading the CA certificates takes longer than a whole example
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OURS = {
    Signing.STANDARD: {
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
        "webhook-event",
        "webhook-attempt",
    },
    Signing.CLASSIC: {
        "x-webhook-id",
        "x-event-id",
        "x-idempotency-key",
        "x-webhook-event",
        "x-webhook-timestamp",
    }
    | {"x-delivery-timestamp", "x-webhook-signature", "x-webhook-attempt"},
}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CONSTANT = {"host", "content-length", "content-type", "user-agent", "accept-encoding", "hookline-hops"}

EVIL = ["\r\n", "\n", "\r", "\0", "\t", " ", ":", "\x7f", "é", "\u2028", "\r\n\r\n", "\r\n x", "Host: evil"]
EVIL += [
    "Content-Length: 0",
    "Transfer-Encoding: chunked",
    "GET / HTTP/1.1",
    "a",
    "B-c",
    "1",
    "/",
    "?",
    "#",
    "@",
    "\\",
]
TEXTS = st.lists(st.sampled_from(EVIL) | st.text(max_size=3), max_size=5).map("".join)
NAMES = TEXTS | st.sampled_from(
    ["Host", "content-length", "X-A", "x-a", "webhook-id", "hookline-hops", "x-b"]
)
URLS = TEXTS | TEXTS.map(lambda text: f"http://h.example/{text}") | TEXTS.map(lambda text: f"http://{text}/")
URLS |= st.just("http://h.example:8080/a?b")


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 80)})
        self.written = b""
        self._is_closing = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._is_closing

    def abort(self) -> None:
        self._is_closing = True


class OneWire(SystemNet):
    """Every name is one address, and every connection to it one wire."""

    def __init__(self) -> None:
        self.wires: list[Wire] = []

    async def resolve(self, host: str, port: int) -> list[str]:
        return ["192.0.2.1"]

    async def connect(self, protocol: Any, address: str, port: int) -> asyncio.Transport:
        wire = Wire()
        self.wires.append(wire)
        connection = protocol()
        connection.connection_made(wire)
        return wire


async def written_for(endpoint: Endpoint, delivery: Loaded, body: bytes) -> bytes:
    """The bytes that reach the socket; none when the request is refused."""
    try:
        prepared = PreparedEndpoint(endpoint, Secrets(endpoint.secret))
        request = prepared.request(delivery, body, number=1, wall=1_700_000_000.0)
    except (HooklineError, UnicodeError):
        return b""
    net = OneWire()
    sender = HttpSender(
        net, SystemClock(), gate=lambda: True, vet=lambda address, port: True, context=CONTEXT
    )
    answers: list[SendResult] = []
    sender.send(request, answers.append)
    async with asyncio.timeout(120):
        while not answers and not any(wire.written for wire in net.wires):  # noqa: ASYNC110 - a wire tells nobody
            await asyncio.sleep(0)
    await sender.close()
    return b"".join(wire.written for wire in net.wires)


def check(written: bytes, body: bytes, signing: Signing) -> None:
    head, end, sent = written.partition(b"\r\n\r\n")
    assert end
    assert sent == body
    assert re.fullmatch(rb"[\t\x20-\x7e]*", head.replace(b"\r\n", b""))
    assert not re.search(rb"\r\n[\t ]", head)
    server = h11.Connection(h11.SERVER)
    server.receive_data(written)
    request = server.next_event()
    assert isinstance(request, h11.Request)
    assert (request.method, request.http_version) == (b"POST", b"1.1")
    assert re.fullmatch(rb"/[\x21-\x7e]*", request.target)
    names = [name.decode() for name, _ in request.headers]
    fields = dict(request.headers)
    for name in CONSTANT | OURS[signing]:
        assert names.count(name) == 1, name
    assert len(set(names)) == len(names)
    assert "transfer-encoding" not in names
    assert re.fullmatch(rb"[0-9A-Za-z.\[\]:_-]+", fields[b"host"])
    assert fields[b"content-length"] == b"%d" % len(body)
    received = b""
    while isinstance(event := server.next_event(), h11.Data):
        received += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert received == body
    assert server.trailing_data == (b"", False)


def a_delivery(**fields: Any) -> Loaded:
    event = an_event()
    defaults: dict[str, Any] = {
        "id": delivery_of(event.id, 0),
        "endpoint_id": ids.endpoint(),
        "queue": Queue.READY,
        "seq": 1,
        "due_at": 0.0,
        "attempts": 0,
        "replays": 0,
        "marks": 0,
        "event_type": "order.paid",
        "idempotency_key": None,
        "created_at": 0.0,
        "payload": b"{}",
    }
    return Loaded(**(defaults | fields))


@settings(max_examples=300, deadline=None)
@given(
    url=URLS,
    headers=st.dictionaries(NAMES, TEXTS | st.just("fine"), max_size=3),
    event_type=TEXTS | st.just("order.paid"),
    key=st.none() | TEXTS,
    body=st.binary(max_size=30),
    signing=st.sampled_from(Signing),
    hops=st.integers(0, 3),
    trace=st.none()
    | TEXTS
    | TEXTS.map(lambda text: f"{TRACE} {text}")
    | TEXTS.map(lambda text: TRACE + text),
)
@example("http://h.example/", {"x-a": "1"}, "order.paid", None, b"{}", Signing.STANDARD, 0, None)
@example(
    "http://h.example/", {"x-a": "1\r\nHost: evil"}, "order.paid", None, b"{}", Signing.STANDARD, 0, None
)
@example("http://h.example/", {"x-a": "1", "X-A": "2"}, "order.paid", None, b"{}", Signing.STANDARD, 0, None)
@example("http://h.example/", {"Content-Length": "9"}, "order.paid", None, b"{}", Signing.STANDARD, 0, None)
@example("http://h.example/", {}, "a\r\nHost: evil", None, b"{}", Signing.STANDARD, 0, None)
@example("http://h.example/", {}, "order.paid", "k\nHost: evil", b"{}", Signing.CLASSIC, 0, None)
@example("http://h.example/ HTTP/1.1\r\nHost: evil\r\n\r\n", {}, "a", None, b"{}", Signing.CLASSIC, 0, None)
@example("http://a\r\nx: y/", {}, "a", None, b"{}", Signing.CLASSIC, 0, None)
def test_what_is_written_is_one_request_with_one_host_and_the_right_length(
    url, headers, event_type, key, body, signing, hops, trace
):
    endpoint = an_endpoint(url=url, headers=headers, signing=signing, secret=SECRET)
    delivery = a_delivery(event_type=event_type, idempotency_key=key, hops=hops, trace=trace)
    written = asyncio.run(written_for(endpoint, delivery, body))
    if written:
        check(written, body, signing)


@pytest.mark.parametrize("signing", Signing)
def test_what_is_as_it_should_be_is_written(signing):
    endpoint = an_endpoint(
        url="http://h.example:8080/a?b=c%20d", headers={"Authorization": "Bearer x y"}, signing=signing
    )
    delivery = a_delivery(idempotency_key="key-1", hops=1)
    written = asyncio.run(written_for(endpoint, delivery, b'{"id": 42}'))
    check(written, b'{"id": 42}', signing)
    assert written.startswith(b"POST /a?b=c%20d HTTP/1.1\r\nHost: h.example:8080\r\nContent-Length: 10\r\n")
    assert b"\r\nAuthorization: Bearer x y\r\n" in written
