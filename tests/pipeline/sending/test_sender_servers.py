"""The sender works with the servers people run."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from aiohttp import web

from hookline.model import ErrorKind
from pipeline.sending.sending import Posts, until

pytestmark = pytest.mark.anyio


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    headers = [] if scope["path"] == "/chunked" else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    for at in range(0, len(body), 1000):
        await send({"type": "http.response.body", "body": body[at : at + 1000], "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture(scope="module", params=["httptools", "h11"])
def uvicorn_url(request: pytest.FixtureRequest) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            _echo, http=request.param, lifespan="off", log_level="error", timeout_keep_alive=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(120)


@pytest.mark.parametrize("path", ["/plain", "/chunked"])
async def test_uvicorn_gets_the_body_and_its_answer_comes_back(
    posts: Posts, uvicorn_url: str, path: str
) -> None:
    for size in (0, 10, 3_000, 50_000):
        body = b"x" * size
        answer = await posts.post(uvicorn_url + path, body=body)
        assert (answer.status, answer.body, answer.truncated) == (201, body[:4096], size > 4096)
    assert posts.sender.open_sockets == 1


async def test_a_connection_that_uvicorn_closed_is_replaced(posts: Posts, uvicorn_url: str) -> None:
    await posts.post(uvicorn_url)
    await until(lambda: posts.sender.open_sockets == 0)
    assert (await posts.post(uvicorn_url)).status == 201


async def test_a_hundred_requests_at_once_to_uvicorn(posts: Posts, uvicorn_url: str) -> None:
    answers = await asyncio.gather(*(posts.begin(uvicorn_url, body=b"%d" % number) for number in range(100)))
    assert [answer.body for answer in answers] == [b"%d" % number for number in range(100)]


async def test_nginx_answers_and_its_limit_of_requests_a_connection_is_no_failure(
    posts: Posts, nginx: str
) -> None:
    for _ in range(10):
        answer = await posts.post(f"{nginx}/ok")
        assert (answer.status, answer.body, answer.error) == (200, b"fine", None)


@pytest.mark.parametrize(
    ("path", "status"), [("/nothing", 204), ("/broken", 503), ("/moved", 302), ("/absent", 404)]
)
async def test_a_status_of_nginx_is_handed_over_as_it_is(
    posts: Posts, nginx: str, path: str, status: int
) -> None:
    answer = await posts.post(nginx + path)
    assert (answer.status, answer.error) == (status, None)


async def test_nginx_refuses_a_body_that_is_too_large_before_reading_it(posts: Posts, nginx: str) -> None:
    answer = await posts.post(f"{nginx}/absent", body=b"x" * 1_000_000)
    assert (answer.status, answer.error) in ((413, None), (None, ErrorKind.RESET))


async def test_aiohttp_gets_the_body_and_its_answer_comes_back(posts: Posts) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if request.path == "/stream":
            response = web.StreamResponse()
            response.enable_chunked_encoding()
            await response.prepare(request)
            await response.write(body)
            await response.write_eof()
            return response
        return web.Response(body=body)

    app = web.Application(client_max_size=2_000_000)
    app.router.add_post("/{any:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await web.SockSite(runner, listener).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for path in ("/plain", "/stream"):
            for size in (1, 4_000, 1_000_000):
                answer = await posts.post(url + path, body=b"y" * size)
                assert (answer.status, answer.body[:10]) == (200, b"y" * min(size, 10))
                assert answer.error is None
        await runner.cleanup()
