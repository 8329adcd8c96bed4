"""With an egress proxy every request goes through it, and what it refuses is said plainly."""

import asyncio
import socket
from base64 import b64encode
from collections.abc import Callable

import pytest

from hookline.model import ErrorKind
from hookline.pipeline.sending.tls_contexts import TlsContexts
from hookline.pipeline.sending.tunnel import MOST_HEAD_BYTES
from hookline.rules.egress_proxy import EgressProxy, read
from pipeline.sending.certificates import Authority
from pipeline.sending.connect_proxy import ConnectProxy
from pipeline.sending.raw_server import RawServer, always
from pipeline.sending.sending import OK, Names, Posts

pytestmark = pytest.mark.anyio

MakePosts = Callable[..., Posts]


@pytest.mark.parametrize("is_slow", [False, True])
async def test_requests_to_http_and_https_go_through_it_by_name_and_share_connections(
    make_posts: MakePosts, authority: Authority, is_slow: bool
):
    names = Names()  # no name is known here
    async with (
        ConnectProxy(is_slow=is_slow) as proxy,
        RawServer(always(OK)) as plain,
        RawServer(always(OK), context=authority.server("good.test")) as secured,
    ):
        posts = make_posts(
            names, contexts=TlsContexts(authority.client), proxy=EgressProxy("127.0.0.1", proxy.port)
        )
        for _ in range(2):
            assert (await posts.post(f"http://plain.test:{plain.port}/a")).status == 200
            assert (
                await posts.post(f"https://good.test:{secured.port}/b", body=b"x" * 100_000)
            ).status == 200
        places = [f"plain.test:{plain.port}", f"good.test:{secured.port}"]
        assert [each.splitlines()[:2] for each in proxy.asked] == [
            [b"CONNECT %b HTTP/1.1" % place.encode(), b"Host: %b" % place.encode()] for place in places
        ]
        assert b"proxy-authorization" not in b"".join(proxy.asked).lower()
        assert plain.requests[0].startswith(b"POST /a HTTP/1.1\r\nHost: plain.test:")
        assert (names.lookups, set(names.dialled)) == ([], {"127.0.0.1"})
        answer = await posts.post(f"https://other.test:{secured.port}/")
        assert answer.error is ErrorKind.TLS  # it is the receiver's certificate that counts


async def test_its_user_and_password_go_to_it_alone(make_posts: MakePosts):
    async with ConnectProxy() as proxy, RawServer(always(OK)) as server:
        url = read(f"http://me:se%40same@127.0.0.1:{proxy.port}")
        assert (await make_posts(Names(), proxy=url).post(f"http://plain.test:{server.port}/")).status == 200
        assert b"\r\nProxy-Authorization: Basic %b\r\n" % b64encode(b"me:se@same") in proxy.asked[0]
        assert b"roxy" not in server.requests[0]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 403 secret words of the proxy\r\n\r\nmore", "The egress proxy answered 403."),
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n",
            "The egress proxy answered 407; check the user and the password in HOOKLINE_EGRESS_PROXY.",
        ),
        (b"HTTP/1.0 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad", "The egress proxy answered 502."),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "The egress proxy answered 100."),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "The egress proxy does not answer as an HTTP proxy."),
        (b"HTTP/1.1 20", "The egress proxy closed the connection without an answer."),
        (b"", "The egress proxy closed the connection without an answer."),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "The egress proxy said more than its answer."),
        (
            b"HTTP/1.1 200 OK\r\nX: " + b"x" * MOST_HEAD_BYTES + b"\r\n\r\n",
            "The head of the egress proxy's answer is too large.",
        ),
        (b"x" * 10 * MOST_HEAD_BYTES, "The head of the egress proxy's answer is too large."),
    ],
)
async def test_what_it_refuses_is_a_failed_connection_of_the_request_and_no_shortage(
    make_posts: MakePosts, answer: bytes, said: str
):
    async with ConnectProxy(answer) as proxy, RawServer(always(OK)) as server:
        posts = make_posts(Names(), proxy=EgressProxy("127.0.0.1", proxy.port))
        result = await posts.post(f"http://plain.test:{server.port}/")
        assert (result.error, result.detail) == (ErrorKind.CONNECT_FAILED, said)
        assert (result.sent, result.short, posts.sender.shortages) == (True, False, 0)
        assert server.connections == 0
        await proxy.until_gone()


async def test_the_deadline_covers_its_answer(make_posts: MakePosts):
    async with ConnectProxy(None) as proxy:
        posts = make_posts(Names(), proxy=EgressProxy("127.0.0.1", proxy.port))
        result = await posts.post("http://plain.test/", timeout=1.0)
        assert (result.error, result.detail) == (
            ErrorKind.CONNECT_TIMEOUT,
            "The deadline passed while waiting for the egress proxy.",
        )
        await proxy.until_gone()  # and the connection to it is closed


async def test_its_answer_may_not_take_for_ever_within_a_long_deadline(make_posts: MakePosts):
    async with ConnectProxy(None) as proxy:
        posts = make_posts(
            Names(), proxy=EgressProxy("127.0.0.1", proxy.port), connect_timeout=0.1, lookup_timeout=0.1
        )
        result = await posts.post("http://plain.test/", timeout=3_600.0)
        assert (result.error, result.detail) == (
            ErrorKind.CONNECT_TIMEOUT,
            "No answer in time while waiting for the egress proxy.",
        )
        await proxy.until_gone()


async def test_a_sender_that_is_closed_leaves_no_connection_to_it(make_posts: MakePosts):
    async with ConnectProxy(None) as proxy:
        posts = make_posts(Names(), proxy=EgressProxy("127.0.0.1", proxy.port))
        begun = posts.begin("http://plain.test/")
        async with asyncio.timeout(60):
            while not proxy.asked:  # noqa: ASYNC110 - what is waited for has no event to wait on
                await asyncio.sleep(0.005)
        await posts.sender.close()
        assert (await begun).error is ErrorKind.INTERNAL
        await proxy.until_gone()


@pytest.mark.parametrize("host", ["127.0.0.1", "proxy.test"])
async def test_one_that_cannot_be_reached_is_a_failed_connection_that_does_not_say_where_it_is(
    make_posts: MakePosts, host: str
):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        proxy = EgressProxy(host, closed.getsockname()[1])
        result = await make_posts(Names(proxy_test=["127.0.0.1"]), proxy=proxy).post("http://plain.test/")
    assert result.error is ErrorKind.CONNECT_FAILED
    assert result.detail == "The egress proxy cannot be reached: Connection refused."


async def test_one_whose_name_is_not_found_is_a_failed_connection(make_posts: MakePosts):
    names = Names(proxy_test=socket.gaierror(-2, "Name or service not known"))
    result = await make_posts(names, proxy=EgressProxy("proxy.test", 3128)).post("http://plain.test/")
    assert (result.error, result.detail) == (
        ErrorKind.CONNECT_FAILED,
        "The egress proxy cannot be reached: its name has no address.",
    )


async def test_literal_addresses_are_vetted_here_all_the_same(make_posts: MakePosts):
    async with ConnectProxy() as proxy, RawServer(always(OK)) as server:
        posts = make_posts(Names(), proxy=EgressProxy("127.0.0.1", proxy.port))
        posts.blocked = {"10.0.0.1", "::1"}
        for host in ("10.0.0.1", "[::1]"):
            assert (await posts.post(f"http://{host}:{server.port}/")).error is ErrorKind.BLOCKED_ADDRESS
        assert proxy.connections == 0
        assert (await posts.post(f"http://[2600:1234::1]:{server.port}/")).status == 200
        assert proxy.asked[0].startswith(b"CONNECT [2600:1234::1]:%d HTTP/1.1\r\n" % server.port)
