"""The client for programs on an event loop.

It uses aiohttp, which is loaded with the first call: `pip install 'hookline[client]'`.
"""

import io
import ssl
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from hookline.client.aio.dead_letters import AsyncDeadLetterMethods
from hookline.client.aio.deliveries import AsyncDeliveryMethods
from hookline.client.aio.endpoints import AsyncEndpointMethods
from hookline.client.aio.events import AsyncEventMethods
from hookline.client.aio.installation import AsyncInstallationMethods
from hookline.client.aio.outbox import AsyncOutboxMethods
from hookline.client.call import ClientCall
from hookline.client.errors import ClientClosed, Unreachable
from hookline.client.exchange import ClientExchange, HttpAnswer, Wait
from hookline.client.server import KEEP_IDLE_S, server
from hookline.clock import Clock, SystemClock
from hookline.errors import demand

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

_IN_ONE_PIECE_BYTES = 1 << 20  # above this size aiohttp expects a file


class HooklineClient(
    AsyncEventMethods,
    AsyncEndpointMethods,
    AsyncDeliveryMethods,
    AsyncDeadLetterMethods,
    AsyncOutboxMethods,
    AsyncInstallationMethods,
):
    """A server's API. Use it in `async with`, or close it; any number of tasks of one loop can share a client."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 30.0,
        retry_for: float = 30.0,
        connections: int = 100,
        ssl_context: ssl.SSLContext | None = None,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        """Without `url` and `api_key`: HOOKLINE_URL and HOOKLINE_API_KEY.

        `timeout` limits one try. A new try may begin until `retry_for` seconds after the first; 0 means one try.
        """
        demand("aiohttp", what="HooklineClient")
        self._server = server(url, api_key, timeout=timeout, retry_for=retry_for)
        self._connections = connections
        self._ssl_context = ssl_context
        self._clock = clock or SystemClock()
        self._rng = rng or Random()
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"HooklineClient({self._server.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; later calls are refused."""
        self._is_closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(self, call: ClientCall[T]) -> T:
        """Make a call, and try again where that is safe."""
        clock = self._clock
        exchange = ClientExchange(
            call, retry_for=self._server.retry_for, now=clock.monotonic(), rng=self._rng
        )
        while True:
            try:
                answer = await self._try(call)
            except Unreachable as error:
                result: T | Wait = exchange.failed(error, now=clock.monotonic())
            else:
                result = exchange.answered(answer, now=clock.monotonic(), wall=clock.wall())
            if not isinstance(result, Wait):
                return result
            await clock.sleep(result.seconds)

    async def _try(self, call: ClientCall[T]) -> HttpAnswer:
        session = self._session or self._open()
        import aiohttp
        from yarl import URL

        body = call.body
        try:
            async with session.request(
                call.method,
                URL(self._server.url + call.target, encoded=True),  # sent as it is: ".." is only an id, too
                data=body if body is None or len(body) < _IN_ONE_PIECE_BYTES else io.BytesIO(body),
                headers=self._server.headers(call),
                allow_redirects=False,  # the key is for this server only
            ) as answer:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return HttpAnswer(answer.status, headers, await answer.read())
        except aiohttp.ClientConnectorCertificateError as error:
            why = f"its certificate is not accepted ({error.certificate_error})"
            raise Unreachable(self._server.url, why, may_be_done=False, may_pass=False) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Unreachable(self._server.url, _why(error), may_be_done=False) from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(self._server.url, _why(error), may_be_done=True) from None

    def _open(self) -> "aiohttp.ClientSession":
        if self._is_closed:
            raise ClientClosed()
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._connections, keepalive_timeout=KEEP_IDLE_S, ssl=self._ssl_context or True
            ),
            timeout=aiohttp.ClientTimeout(total=self._server.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        # aiohttp would repeat a DELETE by itself, and we would see only the second answer: "not found".
        self._session._retry_connection = False
        return self._session


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return str(error).rstrip(".") or type(error).__name__
