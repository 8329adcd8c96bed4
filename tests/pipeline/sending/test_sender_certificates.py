"""A request shows the certificate of its endpoint, and no connection carries that of another."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any, Self

import msgspec
import pytest

from hookline.errors import ConfigError
from hookline.model import ErrorKind
from hookline.pipeline.sending import Request, parse
from hookline.pipeline.sending.contract import ClientIdentity
from hookline.pipeline.sending.tls_contexts import MOST_KEPT, TlsContexts, read_authorities, trusting
from pipeline.sending.certificates import Authority
from pipeline.sending.raw_server import Conversation, RawServer, always
from pipeline.sending.sending import HEADERS, OK, Names, Posts

pytestmark = pytest.mark.anyio

MakePosts = Callable[..., Posts]


class Seen:
    """A receiver that asks for a certificate and notes which one each connection showed."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.names: list[tuple[int, str | None]] = []  # of each request: its connection, and the name
        self.server = RawServer(self._script, context=context)

    async def _script(self, peer: Conversation) -> None:
        while True:
            await peer.request()
            shown = peer._writer.get_extra_info("peercert")
            name = dict(pair for each in shown["subject"] for pair in each)["commonName"] if shown else None
            self.names.append((peer.number, name))
            await peer.say(OK)


async def sent(posts: Posts, url: str, pem: str | None) -> Any:
    target = msgspec.structs.replace(parse(url), identity=None if pem is None else ClientIdentity(pem))
    return await posts.wait(Request(target, HEADERS, b"{}", 30.0))


async def test_each_certificate_has_connections_of_its_own(make_posts: MakePosts, authority: Authority):
    context = authority.requiring("good.test")
    context.verify_mode = ssl.CERT_OPTIONAL
    seen = Seen(context)
    posts = make_posts(Names(good_test=["127.0.0.1"]), contexts=TlsContexts(authority.client))
    async with seen.server as server:
        url = f"https://good.test:{server.port}/"
        one, two = authority.identity("one"), authority.identity("two")
        for pem in (one, two, None, one, two, None):
            assert (await sent(posts, url, pem)).status == 200
        assert seen.names == [(1, "one"), (2, "two"), (3, None), (1, "one"), (2, "two"), (3, None)]
        assert posts.sender.idle == 3


class Refusing:
    """A server that asks for a certificate, and says so to who has none: as servers do, but for asyncio's."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)
        self._listener.close()

    def _serve(self) -> None:
        peer, _ = self._listener.accept()
        secured = self._context.wrap_socket(peer, server_side=True, do_handshake_on_connect=False)
        with contextlib.suppress(ssl.SSLError):
            secured.do_handshake()
        with socket.socket(fileno=secured.detach()) as left, contextlib.suppress(ConnectionError):
            while left.recv(
                65_536
            ):  # or its unread bytes would reset the connection before the alert is read
                pass


async def test_a_server_that_wants_a_certificate_refuses_who_has_none(
    make_posts: MakePosts, authority: Authority
):
    posts = make_posts(Names(good_test=["127.0.0.1"]), contexts=TlsContexts(authority.client))
    with Refusing(authority.requiring("good.test")) as server:
        refused = await sent(posts, f"https://good.test:{server.port}/", None)
    assert (refused.error, refused.status) == (ErrorKind.TLS, None)
    assert "CERTIFICATE_REQUIRED" in (refused.detail or "")


async def test_a_certificate_that_does_not_load_opens_no_connection(
    make_posts: MakePosts, authority: Authority
):
    posts = make_posts(Names(good_test=["127.0.0.1"]), contexts=TlsContexts(authority.client))
    async with RawServer(always(OK), context=authority.server("good.test")) as server:
        url = f"https://good.test:{server.port}/"
        for pem in ("", authority.identity("one").replace("MI", "AA")):
            refused = await sent(posts, url, pem)
            assert refused.error is ErrorKind.TLS
            assert "client_certificate cannot be used" in (refused.detail or "")
        assert server.connections == 0
        assert (await sent(posts, url, None)).status == 200


async def test_only_so_many_contexts_are_kept(authority: Authority):
    made: list[ssl.SSLContext] = []

    def make() -> ssl.SSLContext:
        made.append(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return made[-1]

    contexts, pem = TlsContexts(make), authority.identity("one")
    identities = [ClientIdentity(pem + "\n" * n) for n in range(MOST_KEPT + 1)]
    first = contexts.of(identities[0])
    assert contexts.of(identities[0]) is first
    for identity in identities:
        contexts.of(identity)
    assert len(made) == 1 + len(identities)
    assert contexts.of(identities[-1]) is made[-1]
    assert contexts.of(identities[0]) is not first  # it was the one used longest ago


async def test_a_file_of_authorities_is_trusted_besides_those_of_the_machine(
    make_posts: MakePosts, authority: Authority
):
    contexts = TlsContexts(trusting(read_authorities(str(authority.root))))
    machine = ssl.create_default_context().cert_store_stats()["x509_ca"]
    assert contexts.of(None).cert_store_stats()["x509_ca"] == machine + 1
    posts = make_posts(Names(good_test=["127.0.0.1"]), contexts=contexts)
    async with RawServer(always(OK), context=authority.server("good.test")) as server:
        assert (await posts.post(f"https://good.test:{server.port}/")).status == 200


async def test_a_file_of_authorities_may_have_notes_in_any_language(authority: Authority, tmp_path):
    file = tmp_path / "ca.pem"
    file.write_bytes("# Bürge\n".encode() + authority.root.read_bytes() + b"\xff\n")
    assert read_authorities(str(file)) == read_authorities(str(authority.root))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory."),
        (b"", "has no certificate in PEM form."),
        (b"hello", "has no certificate in PEM form."),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "a certificate in"),
    ],
)
async def test_a_file_of_authorities_that_cannot_be_used_is_refused_in_one_line(tmp_path, content, said):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        read_authorities(str(file))
    assert said in str(refused.value)
    assert "ca_file: " in str(refused.value)
    assert "\n" not in str(refused.value)
