"""Which destinations requests may go to."""

from ipaddress import ip_network

import pytest

from hookline.admin.destinations import Destinations
from hookline.app import Hookline
from hookline.config import Settings
from hookline.errors import Invalid
from hookline.pipeline.sending.net import is_here

OWN = ("198.41.0.4", 8080)


def destinations(**settings: object) -> Destinations:
    made = Destinations(Settings(**settings), is_here=lambda address: address == "198.41.0.4")  # type: ignore[arg-type]
    made.listening = (OWN,)
    return made


@pytest.mark.parametrize("url", ["http://198.41.0.4:8080/", "http://198.41.0.4:8080/v1/events?x"])
@pytest.mark.parametrize("host", ["198.41.0.4", "0.0.0.0"])
def test_our_own_address_is_no_destination(url, host):
    guard = destinations()
    guard.listening = ((host, 8080),)
    with pytest.raises(Invalid) as refused:
        guard.canonical(url)
    assert refused.value.code == "url_forbidden"
    assert not guard.may_dial("198.41.0.4", 8080)


def test_another_port_or_address_is_another_server():
    guard = destinations()
    assert guard.canonical("http://198.41.0.4:8081/") == "http://198.41.0.4:8081/"
    assert guard.may_dial("198.41.0.4", 8081)
    assert guard.may_dial("199.7.83.42", 8080)


def test_a_name_is_looked_at_when_it_is_dialled():
    assert destinations().canonical("http://hooks.example.com:8080/") == "http://hooks.example.com:8080/"


@pytest.mark.parametrize("settings", [{"dev": True}, {"allow_networks": (ip_network("198.41.0.0/24"),)}])
def test_who_allowed_the_network_allowed_its_own_address(settings):
    guard = destinations(**settings)
    assert guard.canonical("http://198.41.0.4:8080/") == "http://198.41.0.4:8080/"
    assert guard.may_dial("198.41.0.4", 8080)


@pytest.mark.anyio
async def test_an_endpoint_cannot_be_our_own_address(tmp_path):
    async with Hookline(f"sqlite:///{tmp_path}/hooks.db") as hooks:
        hooks.destinations.listening = (OWN,)
        with pytest.raises(Invalid) as refused:
            await hooks.create_endpoint(url="http://198.41.0.4:8080/v1/events", events=["*"])
        assert (refused.value.code, refused.value.pointer) == ("url_forbidden", "/url")
        endpoint = await hooks.create_endpoint(url="http://198.41.0.4:8081/", events=["*"], enabled=False)
        with pytest.raises(Invalid) as refused:
            await hooks.update_endpoint(endpoint.id, url="http://198.41.0.4:8080/")
        assert refused.value.code == "url_forbidden"


def test_this_machine_knows_its_own_addresses():
    assert is_here("127.0.0.1")
    assert not is_here("198.41.0.4")
    assert not is_here("2001:503:ba3e::2:30")


@pytest.mark.parametrize(
    "settings", [{}, {"dev": True}, {"allow_networks": (ip_network("0.0.0.0/0"), ip_network("::/0"))}]
)
def test_a_denied_network_is_never_dialled(settings):
    guard = destinations(deny_networks=(ip_network("9.9.9.0/24"), ip_network("10.0.0.0/8")), **settings)
    for address in ("9.9.9.9", "::ffff:9.9.9.9", "10.0.0.1", "64:ff9b::a00:1"):
        assert not guard.may_dial(address, 443)
    assert guard.may_dial("9.9.8.8", 443)
    with pytest.raises(Invalid) as refused:
        guard.canonical("https://9.9.9.9/")
    assert refused.value.code == "url_forbidden"


@pytest.mark.anyio
async def test_an_endpoint_cannot_be_in_a_denied_network(tmp_path):
    settings = Settings(dev=True, deny_networks=(ip_network("9.9.9.0/24"),))
    async with Hookline(f"sqlite:///{tmp_path}/hooks.db", settings=settings) as hooks:
        with pytest.raises(Invalid) as refused:
            await hooks.create_endpoint(url="http://9.9.9.9/", events=["*"])
        assert (refused.value.code, refused.value.pointer) == ("url_forbidden", "/url")
        endpoint = await hooks.create_endpoint(url="http://9.9.8.8/", events=["*"], enabled=False)
        with pytest.raises(Invalid) as refused:
            await hooks.update_endpoint(endpoint.id, url="http://9.9.9.9/")
        assert refused.value.code == "url_forbidden"
