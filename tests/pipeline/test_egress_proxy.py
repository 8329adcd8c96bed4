"""Whatever hookline sends over HTTP of its own accord goes through the egress proxy."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog

from hookline.app import Hookline
from hookline.config import Settings
from hookline.model import ErrorKind, State
from pipeline.sending.connect_proxy import ConnectProxy
from pipeline.sending.raw_server import Conversation, RawServer
from pipeline.sending.sending import OK
from tests.world import World

pytestmark = pytest.mark.anyio

CREDENTIALS = "canary:canary"


@pytest.fixture
async def receiver() -> AsyncIterator[RawServer]:
    async def script(peer: Conversation) -> None:
        while True:
            request = await peer.request()
            moved = (
                b"HTTP/1.1 307 -\r\nLocation: http://moved.test:%d/\r\nContent-Length: 0\r\n\r\n"
                % server.port
            )
            await peer.say(moved if request.startswith(b"POST /moves ") else OK)

    async with RawServer(script) as server:
        yield server


async def over(hooks: Hookline, event: str) -> tuple[State, ErrorKind | None, str | None]:
    world = World("")
    async with asyncio.timeout(120):
        while (delivery := await world.delivery(hooks, event)).state is State.PENDING:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    [attempt] = await hooks.store.attempts(delivery.id)
    return delivery.state, attempt.error, attempt.error_detail


async def test_deliveries_redirects_test_events_and_alerts_go_through_it(tmp_path: Path, receiver: RawServer):
    async with ConnectProxy() as proxy:
        settings = Settings(egress_proxy=f"http://{CREDENTIALS}@127.0.0.1:{proxy.port}")
        async with Hookline(f"sqlite:///{tmp_path}/h.db", settings=settings) as hooks:

            def place(name: str) -> str:
                return f"http://{name}.test:{receiver.port}/"

            fields = {"events": ["order.*"], "retry": {"schedule": [0]}}
            await hooks.create_endpoint(url=place("moving") + "moves", max_redirects=1, **fields)
            event = await hooks.publish("order.paid", {})
            assert (await over(hooks, event.id))[0] is State.DELIVERED
            tried = await hooks.create_endpoint(url=place("tried"), events=["nothing"])
            [endpoint] = [e for e in (await hooks.store.catalogue()).endpoints if e.url == tried.url]
            assert (await over(hooks, (await hooks.trial.send(endpoint.id)).event_id))[0] is State.DELIVERED
            await hooks.accounts.put("acme", {"notify": {"webhook": place("told"), "slack": place("slack")}})
            results = (await hooks.accounts.test("acme")).results
            assert [each.ok for each in results] == [True, True]
        asked = {each.split(b" ")[1].decode() for each in proxy.asked}
        assert asked == {
            f"{name}.test:{receiver.port}" for name in ("moving", "moved", "tried", "told", "slack")
        }
        assert len(receiver.requests) == 5


async def test_a_refusal_names_the_status_and_no_credentials(tmp_path: Path):
    async with ConnectProxy(b"HTTP/1.1 407 -\r\n\r\n") as proxy:
        settings = Settings(egress_proxy=f"http://{CREDENTIALS}@127.0.0.1:{proxy.port}")
        with structlog.testing.capture_logs() as lines:
            async with Hookline(f"sqlite:///{tmp_path}/h.db", settings=settings) as hooks:
                await hooks.create_endpoint(url="http://a.test/", events=["*"], retry={"schedule": [0]})
                event = await hooks.publish("order.paid", {})
                state, error, detail = await over(hooks, event.id)
                assert (state, error, hooks.shortages) == (State.DEAD, ErrorKind.CONNECT_FAILED, 0)
                assert "The egress proxy answered 407" in (detail or "")
        assert proxy.asked
        assert "canary" not in json.dumps(lines, default=repr) + str(detail)
