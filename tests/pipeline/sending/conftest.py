"""Fixtures of the sender's tests."""

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.sending.certificates import Authority
from pipeline.sending.sending import Posts


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def make_posts(anyio_backend: Any) -> AsyncIterator[Callable[..., Posts]]:
    """Senders that are closed after the test; each request is answered once and nothing is left behind."""
    made: list[Posts] = []

    def make(*arguments: Any, **options: Any) -> Posts:
        made.append(Posts(*arguments, **options))
        return made[-1]

    before = asyncio.all_tasks()
    yield make
    for posts in made:
        await posts.sender.close()
        assert [len(answers) for answers in posts.calls] == [1] * len(posts.calls)
        assert (posts.sender.in_flight, posts.sender.idle, posts.sender.open_sockets) == (0, 0, 0)
    assert {task for task in asyncio.all_tasks() - before if "sender" in repr(task.get_coro())} == set()


@pytest.fixture
async def posts(make_posts: Callable[..., Posts]) -> Posts:
    return make_posts()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    keepalive_requests 3;
    client_max_body_size 8k;
    location /ok {{ return 200 "fine"; }}
    location /nothing {{ return 204; }}
    location /broken {{ return 503 "later"; }}
    location /moved {{ return 302 http://127.0.0.1:1/; }}
  }}
}}
"""


@pytest.fixture(scope="session")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Debian's nginx; closes a connection after three requests."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("nginx is not installed (Debian package nginx-light)")
        pytest.skip("nginx is not installed: the sender was not tested against it")
    folder: Path = tmp_path_factory.mktemp("nginx")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = folder / "nginx.conf"
        settings.write_text(NGINX.format(folder=folder, port=port))
        if os.geteuid() == 0:
            settings.write_text("user root;\n" + settings.read_text())
        process = subprocess.Popen(
            [program, "-p", str(folder), "-c", str(settings), "-e", str(folder / "error.log")],
            # nginx inherits a socket that is already bound, so that no port has to be guessed.
            env={**os.environ, "NGINX": f"{listener.fileno()};"},
            pass_fds=[listener.fileno()],
        )
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(60)
