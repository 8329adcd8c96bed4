"""Clients that send no valid HTTP, or send it without end, are refused."""

import json
import socket

import pytest

from tests.api.conftest import KEY, read_answer

HEAD = f"host: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
BODY = '{"type":"a","payload":1}'


def post(*headers: str, body: str = "", path: str = "/v1/events") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\n{HEAD}" + "".join(f"{line}\r\n" for line in headers) + "\r\n" + body
    ).encode()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        post("content-length: 24", "content-length: 24", body=BODY),
        post("content-length: 24", "content-length: 25", body=BODY),
        post("content-length: 24", "transfer-encoding: chunked", body=BODY),
        post("content-length: -1", body=BODY),
        post("content-length: abc", body=BODY),
        post("transfer-encoding: chunked", body="xyz\r\n"),
        b"CONNECT example.com:80 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /v1/\xff HTTP/1.1\r\nhost: x\r\n\r\n",
        post("bad header\x00: x", "content-length: 24", body=BODY),
    ],
)
def test_a_request_that_is_not_http_is_refused_and_the_connection_closed(service, request_bytes):
    before = service.counts()
    with socket.create_connection(("127.0.0.1", service.process.port), timeout=30) as connection:
        connection.sendall(request_bytes)
        answer = read_answer(connection)
        assert connection.recv(1) == b""
    problem = json.loads(answer.body)
    assert (answer.status, problem["code"]) == (400, "bad_request")
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["request_id"] == answer.headers["request-id"]
    assert service.counts() == before


def test_more_bytes_than_announced_do_not_pass_for_another_request(service):
    answer = service.raw(post("content-length: 5", body=BODY))
    assert answer.status == 400


def test_headers_have_an_end(service):
    with socket.create_connection(("127.0.0.1", service.process.port), timeout=30) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nx-long: ")
        try:
            while True:
                connection.sendall(b"x" * 10_000)
        except OSError:
            pass  # the server hung up; it must not go on reading
    with socket.create_connection(("127.0.0.1", service.process.port), timeout=30) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nx-long: " + b"x" * 70_000)
        answer = read_answer(connection)
    assert (answer.status, json.loads(answer.body)["code"]) == (400, "bad_request")


def test_a_body_announced_too_large_is_refused_before_it_comes(service):
    answer = service.raw(post("content-length: 10000000000"))
    assert (answer.status, json.loads(answer.body)["code"]) == (413, "too_large")
    assert answer.headers["connection"] == "close"


def test_a_client_that_sends_it_all_before_it_reads_still_gets_the_answer(service):
    size = 16 << 20  # more than the sockets' buffers hold
    with socket.create_connection(("127.0.0.1", service.process.port), timeout=30) as connection:
        connection.sendall(post(f"content-length: {size}") + b" " * size)
        answer = read_answer(connection)
    assert (answer.status, json.loads(answer.body)["code"]) == (413, "too_large")


def test_a_client_that_asks_first_is_not_told_to_go_on(service):
    answer = service.raw(post("content-length: 10000000000", "expect: 100-continue"))
    assert answer.status == 413


@pytest.mark.parametrize("path", ["/v1/events", "/v1/events/batch", "/v1/endpoints"])
def test_an_endless_body_is_refused_at_the_limit(service, path):
    with socket.create_connection(("127.0.0.1", service.process.port), timeout=30) as connection:
        connection.sendall(post("transfer-encoding: chunked", path=path))
        chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
        sent = 0
        connection.settimeout(20)
        try:
            while sent < 200 << 20:
                connection.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
        connection.settimeout(30)
        try:
            answer = read_answer(connection)
        except ConnectionResetError:
            pytest.fail("the connection was reset before the answer could be read")
    assert (answer.status, json.loads(answer.body)["code"]) == (413, "too_large")
    assert sent < 200 << 20


def test_a_body_in_pieces_is_one_body(service):
    chunks = "".join(f"1\r\n{character}\r\n" for character in BODY)
    answer = service.raw(post("transfer-encoding: chunked", body=chunks + "0\r\n\r\n"))
    assert answer.status == 202


def test_requests_may_follow_each_other_on_one_connection(service):
    with socket.create_connection(("127.0.0.1", service.process.port), timeout=30) as connection:
        connection.sendall(post("content-length: 24", body=BODY) * 3)
        stream = connection.makefile("rb")
        for _ in range(3):
            assert stream.readline() == b"HTTP/1.1 202 Accepted\r\n"
            length = 0
            while line := stream.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            stream.read(length)


def test_a_client_that_offers_http_2_is_answered_in_http_1(service):
    offer = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__")
    answer = service.raw(post(*offer, "content-length: 24", body=BODY))
    assert answer.status == 202
