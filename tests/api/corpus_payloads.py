"""The rows about payloads."""

import asyncio
import gzip
import socket
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from hookline.app import Hookline
from hookline.config import Settings
from hookline.errors import Unreadable
from hookline.store.contract.events import EventFilter
from server_process import run
from tests.api.conftest import KEY, Service, read_answer
from tests.api.corpus import Recorder, assert_problem, covers, delivered, refused
from tests.corpus.shown import SHOWN

LIMIT = 1 << 20
HEAD = f"POST /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
SMALL = b'{"type":"a.b","payload":1}'

BYTE_IDENTICAL = {
    "P02": [rb'{"s":"x\u0000y"}'],
    "P07": [b"1e400"],
    "P08": [b"12345678901234567890.123456789"],
    "P09": [b"9" * 5_000],
    "P11": [b'{"k":1,"k":2}'],
    "P12": [b'{"b":1,"aa":2,"a":3}', b'{"b" : 1,\t"aa":\n2 , "a":3 }'],
    "P13": [b'{"x":1.0,"y":1e2,"z":-0}'],
    "P16": [b"{" + b",".join(b'"%07d":0' % n for n in range(LIMIT // 12 - 1)) + b"}"],
    "P17": [b'"' + b"x" * (LIMIT - 2) + b'"'],
    **SHOWN,  # how pages show them: tests/browser/test_every_page.py
}
UNREADABLE = {
    "P01": [(b"", "invalid_json")],
    "P03": [(rb'{"type":"a.b","payload":{"s":"\ud800"}}', "invalid_json")],
    "P04": [(rb'{"type":"a.b","payload":{"s":"\udc00\ud800"}}', "invalid_json")],
    "P05": [(b'{"type":"a.b","payload":NaN}', "invalid_json")],
    "P06": [(b'{"type":"a.b","payload":%b}' % word, "invalid_json") for word in (b"Infinity", b"-Infinity")],
    "P10": [(b'{"type":"a.b","type":"c.d","payload":1}', "duplicate_key")],
    "P23": [(b"\xef\xbb\xbf" + SMALL, "invalid_json")],
    "P24": [(SMALL.decode().encode("utf-16-le"), "invalid_json")],
    "P25": [(b'{"type":"a.b","payload":"\xff\xfe"}', "invalid_json")],
    "P26": [(b'{"type":"a.b","payload":"\x01"}', "invalid_json")],
}

for id, payloads in BYTE_IDENTICAL.items():

    @covers(id)
    def byte_identical(service: Service, recorder: Recorder, id=id, payloads=payloads) -> None:  # type: ignore[no-untyped-def]
        delivered(service, recorder, f"corpus-{id}", *payloads)


for id, bodies in UNREADABLE.items():

    @covers(id)
    def unreadable(service: Service, recorder: Recorder, bodies=bodies) -> None:  # type: ignore[no-untyped-def]
        for body, code in bodies:
            refused(service, 400, code, body=body)
            refused(service, 400, code, path="/v1/endpoints", body=body)


@covers("P14")
def nested(service: Service, recorder: Recorder) -> None:
    deep = b"[" * 1_000 + b"]" * 1_000
    refused(service, 400, "too_deep", body=b'{"type":"a.b","payload":%b}' % deep)
    refused(service, 400, "too_deep", body=b'{"type":"a.b","payload":%b}' % (b"[" * 65 + b"]" * 65))
    refused(service, 400, "too_deep", path="/v1/events/batch", body=b'{"events":[%b]}' % deep)
    delivered(service, recorder, "corpus-P14", b"[" * 64 + b"]" * 64)
    endpoint = service.create(account="nested")["id"]
    event = service.publish(account="nested")["id"]
    for method, path in (
        ("POST", "/v1/endpoints"),
        ("PATCH", f"/v1/endpoints/{endpoint}"),
        ("POST", f"/v1/endpoints/{endpoint}/pause"),
        ("POST", f"/v1/events/{event}/replay"),
        ("POST", "/v1/replays"),
        ("POST", "/v1/discards"),
    ):
        refused(service, 400, "too_deep", method=method, path=path, body=b'{"metadata":%b}' % deep)


@covers("P15")
def nested_without_end(service: Service, recorder: Recorder) -> None:
    process = psutil.Process(service.process.process.pid)
    refused(service, 400, "too_deep", body=b'{"type":"a.b","payload":%b}' % (b"[" * 1_000 + b"]" * 1_000))
    before = process.memory_info().rss
    refused(service, 400, "too_deep", body=b'{"type":"a.b","payload":%b}' % (b"[" * 100_000 + b"]" * 100_000))
    assert process.memory_info().rss - before <= 20 << 20


@covers("P18")
def one_byte_too_many(service: Service, recorder: Recorder) -> None:
    refused(service, 413, "too_large", body=b'{"type":"a.b","payload":"%b"}' % (b"x" * (LIMIT - 1)))
    # Refused by the announced length alone: not a byte of the body is sent.
    before = service.counts()
    answer = service.raw(f"{HEAD}content-length: {2 * LIMIT}\r\n\r\n".encode())
    assert_problem(answer, 413, "too_large")
    assert service.counts() == before


@covers("P19")
def an_announced_flood(service: Service, recorder: Recorder) -> None:
    began = time.monotonic()
    assert_problem(service.raw(f"{HEAD}content-length: {10 << 30}\r\n\r\n".encode()), 413, "too_large")
    assert time.monotonic() - began < 20  # the server waits longer than that for a body


@covers("P20")
def a_flood_in_chunks(service: Service, recorder: Recorder) -> None:
    chunk = b"%x\r\n%b\r\n" % (1 << 16, b"x" * (1 << 16))
    with socket.create_connection(("127.0.0.1", service.process.port), timeout=30) as connection:
        connection.sendall(f"{HEAD}transfer-encoding: chunked\r\n\r\n".encode())
        try:
            for _ in range(4 * LIMIT // (1 << 16)):
                connection.sendall(chunk)
        except OSError:
            pass  # the server stopped reading
        answer = read_answer(connection)
    assert_problem(answer, 413, "too_large")
    assert answer.headers["connection"] == "close"


@covers("P21")
def two_ideas_of_the_length(service: Service, recorder: Recorder) -> None:
    before = service.counts()
    body = SMALL.decode()
    # After five bytes the rest looks like a second request, and is not one. However the first is answered, the
    # connection ends there.
    short = service.raw(f"{HEAD}content-length: 5\r\n\r\n{body[:10]}".encode())
    assert_problem(
        short, 400, "invalid_json" if short.headers.get("connection") != "close" else "bad_request"
    )
    for lengths in (
        f"content-length: {len(body)}\r\ncontent-length: {len(body)}\r\n",
        f"content-length: {len(body)}\r\ncontent-length: {len(body) + 1}\r\n",
        f"content-length: {len(body)}\r\ntransfer-encoding: chunked\r\n",
    ):
        with socket.create_connection(("127.0.0.1", service.process.port), timeout=30) as connection:
            connection.sendall(f"{HEAD}{lengths}\r\n{body}".encode())
            assert_problem(read_answer(connection), 400, "bad_request")
            assert connection.recv(1) == b""
    assert service.counts() == before


@covers("P22")
def a_bomb(service: Service, recorder: Recorder) -> None:
    bomb = gzip.compress(b'{"type":"a.b","payload":"' + b"x" * (8 << 20) + b'"}')
    refused(service, 415, "unsupported_media_type", body=bomb, content_encoding="gzip")


for id, media in {
    "P27": "text/plain",
    "P28": "application/json; charset=latin-1",
    "P29": "multipart/form-data; boundary=x",
}.items():

    @covers(id)
    def another_media_type(service: Service, recorder: Recorder, media=media) -> None:  # type: ignore[no-untyped-def]
        for path in ("/v1/events", "/v1/events/batch", "/v1/endpoints", "/v1/replays"):
            refused(service, 415, "unsupported_media_type", path=path, body=SMALL, content_type=media)


@covers("P30")
def another_shape(service: Service, recorder: Recorder) -> None:
    for body in (b"[]", b'"text"', b"5", b"null", b"true"):
        for path in ("/v1/events", "/v1/events/batch", "/v1/endpoints", "/v1/replays"):
            refused(service, 422, "invalid_field", path=path, body=body, pointer="")


@covers("P34")
def terminal_injection(service: Service, recorder: Recorder) -> None:
    payload = rb'"\u001b[2J\u001b]0;pwn\u0007"'
    (id,) = delivered(service, recorder, "corpus-P34", payload)
    env = {"HOOKLINE_URL": service.process.url, "HOOKLINE_API_KEY": KEY}
    with tempfile.TemporaryDirectory() as folder:
        for arguments in (("events", "show", id), ("events", "show", id, "--json")):
            printed = run(*arguments, cwd=Path(folder), env=env)
            assert printed.returncode == 0, printed.stderr
            assert "pwn" in printed.stdout
            assert "\x1b" not in printed.stdout
            assert "\x07" not in printed.stdout


@covers("P35")
def bytes_that_are_not_json(service: Service, recorder: Recorder) -> None:
    before = service.counts()
    with tempfile.TemporaryDirectory() as folder:
        # On SQLite the server has exclusive use of its file.
        is_file = service.database.startswith("sqlite")
        asyncio.run(_publish_wrong(f"sqlite:///{folder}/x.db" if is_file else service.database))
    assert service.counts() == before


async def _publish_wrong(database: str) -> None:
    async with Hookline(database, settings=Settings(dev=True), deliver=False) as hooks:
        before = await hooks.store.list_events(EventFilter(), after=None, limit=200)
        for wrong in (bytes(range(256)), b"", b"{", b"1 2", b"NaN", b"\xef\xbb\xbf1"):
            with pytest.raises(Unreadable) as caught:
                await hooks.publish("a.b", wrong)
            assert caught.value.code == "invalid_json"
        assert await hooks.store.list_events(EventFilter(), after=None, limit=200) == before
