"""Open pages are told what changes, once for all who look."""

import json
from collections.abc import Iterator

import httpx
import pytest

from hookline.clock import SystemClock
from hookline.dashboard.live import Live
from hookline.errors import StoreUnavailable
from server_process import ServerProcess
from tests.dashboard.conftest import KEY, Service
from tests.dashboard.site import Site


def messages(response: httpx.Response) -> Iterator[tuple[str, str]]:
    """The name and the data of each event."""
    name = data = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
        elif not line and name:
            yield name, data
            name = data = ""


def test_the_regions_of_a_page_come_whole_and_then_only_when_they_change(service: Service, site: Site):
    page = site.get("/")
    with site.client.stream("GET", "/live?page=overview") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        coming = messages(response)
        name, data = next(coming)
        assert name == "regions"
        first = json.loads(data)["regions"]
        assert {"verdict", "flow", "stands", "alerts", "workers"} <= first.keys()
        assert first.keys() <= page.ids
        # Of a starved machine another verdict may be true by now, and again by the next look.
        assert any(h1 in first["verdict"] for h1 in (page.h1, site.get("/").h1))
        service.create("/ok", events=["live.shown"])
        service.publish("live.shown")
        for name, data in coming:
            assert name == "regions"
            changed = json.loads(data)["regions"]
            if "Nothing has been published yet" not in changed.get(
                "verdict", "Nothing has been published yet"
            ):
                break


def test_an_unknown_page_has_no_stream(site: Site):
    assert site.client.get("/live?page=nothing").status_code == 404
    assert site.client.get("/live").status_code == 404


def test_without_a_visit_there_is_no_stream(service: Service):
    assert httpx.get(f"{service.url}/live?page=overview", trust_env=False).status_code == 401


def test_a_stream_ends_with_the_key_of_its_visit(service: Service):
    key = service.call("POST", "/v1/keys", {"name": "live", "scopes": ["read"]})
    visitor = Site(service.url, key=key["key"])
    with visitor.client.stream("GET", "/live?page=overview") as response:
        coming = messages(response)
        assert next(coming)[0] == "regions"
        service.call("DELETE", f"/v1/keys/{key['id']}")
        assert [name for name, _ in coming][-1] == "ended"
    visitor.close()


def test_an_account_is_told_of_itself_alone(service: Service):
    service.create("/ok", events=["secret.of.others"], account="others")
    visitor = Site(service.url, key=service.new_key("read", account="mine"))
    with visitor.client.stream("GET", "/live?page=overview") as response:
        _, data = next(messages(response))
    regions = json.loads(data)["regions"]
    assert "workers" not in regions
    assert "others" not in data
    visitor.close()


@pytest.mark.parametrize("count", [3])
def test_a_server_with_open_streams_stops_at_once(tmp_path, count: int):
    with ServerProcess(cwd=tmp_path, env={"HOOKLINE_API_KEY": KEY}) as process:
        visitors = [Site(process.url, key=KEY) for _ in range(count)]
        open_ones = [visitor.client.stream("GET", "/live?page=overview") for visitor in visitors]
        for each in open_ones:
            next(messages(each.__enter__()))
        assert process.stop() == 0
        assert "Traceback" not in process.stderr
        for each, visitor in zip(open_ones, visitors, strict=True):
            each.__exit__(None, None, None)
            visitor.close()


@pytest.mark.anyio
async def test_a_stream_whose_visit_cannot_be_checked_ends_without_an_error():
    live = Live(SystemClock())

    async def gather() -> dict[str, str]:
        return {}

    async def is_good() -> bool:
        raise StoreUnavailable("The database is away.")

    said = [piece async for piece in live.stream("overview", "operator", gather, is_good)]
    assert said == [b"retry: 2000\n\n"]  # and not that the visit has ended
    assert not live.is_full("operator")
