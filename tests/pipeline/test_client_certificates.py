"""An endpoint's client certificate is shown to its receiver, and to nobody else."""

import json
import sqlite3
import ssl
from pathlib import Path

import pytest

from hookline.admin.resealing import Rewritten, seal_all, unseal_all
from hookline.app import Hookline, audit_of
from hookline.config import Settings
from hookline.crypto.sealing import Sealer
from hookline.errors import ConfigError, Invalid
from hookline.model import ErrorKind, State
from hookline.store.sqlite.store import SqliteStore
from pipeline.sending.certificates import Authority
from pipeline.sending.raw_server import Conversation, RawServer
from pipeline.sending.sending import OK, until
from tests.world import World

pytestmark = pytest.mark.anyio

KEY, OTHER = "k" * 32, "o" * 32


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


class Receiver:
    """Asks for a certificate, and notes the name in the one of each request."""

    def __init__(self, context: ssl.SSLContext, answer: bytes = OK) -> None:
        self.names: list[str | None] = []
        self._answer = answer
        self.server = RawServer(self._script, context=context)

    async def _script(self, peer: Conversation) -> None:
        while True:
            await peer.request()
            shown = peer._writer.get_extra_info("peercert")
            self.names.append(
                dict(pair for each in shown["subject"] for pair in each)["commonName"] if shown else None
            )
            await peer.say(self._answer)


def settings(authority: Authority, *keys: str) -> Settings:
    return Settings(dev=True, ca_file=str(authority.root), secret_key=keys)


def everything_in(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.iterdir())


async def settled(hooks: Hookline, event: str) -> list[tuple[str, State, ErrorKind | None]]:
    """What became of an event's deliveries: the endpoint's description, the state and the last error."""
    world = World("")
    names = {each.id: each.description for each in (await hooks.store.catalogue()).endpoints}

    while True:
        found = [await world.delivery(hooks, event, n) for n in range(len(names))]
        if found and all(each.state is not State.PENDING for each in found):
            return sorted((names[each.endpoint_id], each.state, each.last_error) for each in found)
        await until(lambda: hooks._sender.in_flight == 0)


async def test_a_receiver_that_requires_a_certificate_gets_the_endpoint_s(
    tmp_path: Path, authority: Authority
):
    receiver = Receiver(authority.requiring("127.0.0.1"))
    async with (
        receiver.server as server,
        Hookline(f"sqlite:///{tmp_path}/h.db", settings=settings(authority)) as hooks,
    ):
        fields = {"url": server.url, "events": ["*"], "retry": {"schedule": [0]}, "circuit": None}
        await hooks.create_endpoint(**fields, description="one", client_certificate=authority.identity("one"))
        two = await hooks.create_endpoint(
            **fields, description="two", client_certificate=authority.identity("two")
        )
        await hooks.create_endpoint(**fields, description="without")
        found = await settled(hooks, (await hooks.publish("order.paid", {})).id)
        assert [(name, state) for name, state, _ in found] == [
            ("one", State.DELIVERED),
            ("two", State.DELIVERED),
            ("without", State.DEAD),
        ]
        assert sorted(receiver.names) == ["one", "two"]
        # Changed and removed, as any field is.
        changed = await hooks.update_endpoint(two.id, client_certificate=authority.identity("one"))
        assert changed.client_certificate.subject == "CN=one"
        found = await settled(hooks, (await hooks.publish("order.paid", {})).id)
        assert sorted(receiver.names[2:]) == ["one", "one"]
        removed = await hooks.update_endpoint(two.id, client_certificate=None)
        assert removed.client_certificate is None
        found = await settled(hooks, (await hooks.publish("order.paid", {})).id)
        assert found[1][:2] == ("two", State.DEAD)


async def test_a_redirect_to_another_origin_is_not_shown_the_certificate(
    tmp_path: Path, authority: Authority
):
    asking = authority.requiring("127.0.0.1")
    asking.verify_mode = ssl.CERT_OPTIONAL
    other = Receiver(asking)
    async with other.server as there:
        moved = b"HTTP/1.1 307 -\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % there.url.encode()
        receiver = Receiver(asking, moved)
        async with (
            receiver.server as server,
            Hookline(f"sqlite:///{tmp_path}/h.db", settings=settings(authority)) as hooks,
        ):
            await hooks.create_endpoint(
                url=server.url, events=["*"], max_redirects=1, client_certificate=authority.identity("one")
            )
            [(_, state, _)] = await settled(hooks, (await hooks.publish("order.paid", {})).id)
            assert (state, receiver.names, other.names) == (State.DELIVERED, ["one"], [None])


async def test_the_key_is_never_shown_and_at_rest_it_is_sealed(tmp_path: Path, authority: Authority):
    pem, path = authority.identity("one"), f"{tmp_path}/h.db"
    secret_lines = {line for line in pem.splitlines() if not line.startswith("-----")}
    async with Hookline(f"sqlite:///{path}", settings=settings(authority, KEY)) as hooks:
        made = await hooks.create_endpoint(url="https://a.example/", events=["*"], client_certificate=pem)
        assert made.client_certificate.issuer == "CN=Test Authority"
        shown = [made, await hooks.reports.endpoint((await hooks.store.catalogue()).endpoints[0])]
        assert not any(line in str(shown) for line in secret_lines)
        for value in ("x", pem.replace("MI", "AA"), 7):
            with pytest.raises(Invalid) as refused:
                await hooks.update_endpoint(made.id, client_certificate=value)
            assert refused.value.pointer == "/client_certificate"
    content = everything_in(tmp_path)
    assert not any(line.encode() in content for line in secret_lines)


async def test_it_is_sealed_anew_and_unsealed_with_the_secrets(tmp_path: Path, authority: Authority):
    path = f"{tmp_path}/h.db"
    async with Hookline(f"sqlite:///{path}", settings=settings(authority)) as hooks:
        pem = authority.identity("one")
        await hooks.create_endpoint(url="https://a.example/", events=["*"], client_certificate=pem)
    store = SqliteStore(path)
    await store.open()
    try:

        async def stored() -> str:
            [endpoint] = (await store.catalogue()).endpoints
            assert endpoint.client_certificate is not None
            return endpoint.client_certificate.pem

        plain = await stored()
        assert await seal_all(store, Sealer([KEY]), audit_of()) == Rewritten(1, 0)
        sealed = await stored()
        assert sealed.startswith("sealed1 ")
        assert await seal_all(store, Sealer([OTHER, KEY]), audit_of()) == Rewritten(1, 0)
        assert await stored() not in (sealed, plain)
        [endpoint] = (await store.catalogue()).endpoints
        assert Sealer([OTHER]).open_certificate(endpoint).client_certificate.pem == plain
        assert await unseal_all(store, Sealer([OTHER]), audit_of()) == Rewritten(1, 0)
        assert await stored() == plain
    finally:
        await store.close()


async def test_a_stored_certificate_that_no_longer_loads_spoils_its_endpoint_alone(
    tmp_path: Path, authority: Authority
):
    path = f"{tmp_path}/h.db"
    receiver = Receiver(authority.requiring("127.0.0.1"))
    async with receiver.server as server:
        fields = {"url": server.url, "events": ["*"], "retry": {"schedule": [0]}, "circuit": None}
        async with Hookline(f"sqlite:///{path}", settings=settings(authority)) as hooks:
            for name in ("broken", "good"):
                await hooks.create_endpoint(
                    **fields, description=name, client_certificate=authority.identity(name)
                )
        with sqlite3.connect(path) as database:
            (text,) = database.execute(
                "SELECT client_certificate FROM endpoints WHERE description = 'broken'"
            ).fetchone()
            damaged = json.dumps(
                json.loads(text) | {"pem": authority.identity("good").partition("-----END")[0]}
            )
            database.execute(
                "UPDATE endpoints SET client_certificate = ? WHERE description = 'broken'", (damaged,)
            )
        database.close()
        async with Hookline(f"sqlite:///{path}", settings=settings(authority)) as hooks:
            event = (await hooks.publish("order.paid", {})).id
            assert await settled(hooks, event) == [
                ("broken", State.DEAD, ErrorKind.INTERNAL),
                ("good", State.DELIVERED, None),
            ]
            [broken] = [
                each for each in (await hooks.store.catalogue()).endpoints if each.description == "broken"
            ]
            report = await hooks.reports.endpoint(broken)
            assert [each.field for each in report.problems] == ["client_certificate"]
            await hooks.update_endpoint(report.id, client_certificate=authority.identity("broken"))
            found = await settled(hooks, (await hooks.publish("order.paid", {})).id)
            assert [state for _, state, _ in found] == [State.DELIVERED] * 2


async def test_a_file_of_authorities_that_cannot_be_used_keeps_hookline_from_starting(tmp_path: Path):
    (tmp_path / "empty.pem").touch()
    for name in ("none.pem", "empty.pem"):
        with pytest.raises(ConfigError, match="ca_file: "):
            Hookline(f"sqlite:///{tmp_path}/h.db", settings=Settings(ca_file=f"{tmp_path}/{name}"))
