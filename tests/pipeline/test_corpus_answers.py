"""What happens to a delivery when its receiver answers all sorts of things.

Each test is named by the id of its row in tests/corpus/bad-input.jsonl, as in test_corpus_receivers.py.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import pytest

from hookline.app import Hookline
from hookline.ids import read
from hookline.model import Attempt, CircuitState, Delivery, EndpointId, ErrorKind, Outcome, Reason, State
from hookline.reports.queries import attempt_report
from pipeline.sending.certificates import Authority, old_tls, other_ciphers
from pipeline.sending.raw_server import Conversation, RawServer, always
from pipeline.sending.sending import OK
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

TWICE = {"schedule": [0, 1], "jitter": "none"}
DAY = 86_400


async def first_attempt(
    world: World, url: str, *, number: int = 1, **endpoint: object
) -> tuple[Hookline, Delivery, Attempt]:
    """An event's delivery to this URL after its first attempt (or that of another number)."""
    hooks = await world.start()
    await hooks.create_endpoint(url=url, events=["*"], **{"retry": TWICE, "circuit": None, **endpoint})
    event = await world.pass_until(hooks.publish("order.paid", {"id": 42}))

    async def is_there() -> bool:
        delivery = await world.delivery(hooks, event.id)
        return len(await hooks.store.attempts(delivery.id)) >= number

    await world.until(is_there)
    delivery = await world.delivery(hooks, event.id)
    return hooks, delivery, (await hooks.store.attempts(delivery.id))[number - 1]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_R11_a_redirect_is_not_followed(world: World, receiver: Receiver, status: int) -> None:
    receiver.answers["/"] = [Answer(status, {"Location": receiver.url("/elsewhere")})]
    _, delivery, attempt = await first_attempt(world, receiver.url())
    assert (delivery.state, delivery.reason, attempt.error) == (
        State.DEAD,
        Reason.REJECTED,
        ErrorKind.HTTP_3XX,
    )
    assert [request.path for request in receiver.requests] == ["/"]


MEANINGS = {
    **dict.fromkeys((400, 401, 403, 404, 409, 413, 422), (Outcome.REJECTED, State.DEAD)),
    410: (Outcome.GONE, State.DEAD),
    429: (Outcome.THROTTLED, State.PENDING),
    **dict.fromkeys((500, 502, 503, 504), (Outcome.TRANSIENT, State.PENDING)),
}


@pytest.mark.parametrize("status", MEANINGS)
async def test_R12_a_status_means_what_the_table_says(world: World, receiver: Receiver, status: int) -> None:
    receiver.answers["/"] = [Answer(status)]
    retry = {"schedule": [0, 3_600], "jitter": "none"}
    hooks, delivery, attempt = await first_attempt(world, receiver.url(), retry=retry)
    assert (attempt.outcome, delivery.state) == MEANINGS[status]
    if delivery.state is State.DEAD:
        assert delivery.reason is (Reason.GONE if status == 410 else Reason.REJECTED)

        async def is_enabled_unless_gone() -> bool:
            [endpoint] = (await hooks.store.catalogue()).endpoints
            return endpoint.enabled is (status != 410)

        await world.until(is_enabled_unless_gone)


async def test_R12_a_503_with_retry_after_is_throttled(world: World, receiver: Receiver) -> None:
    receiver.answers["/"] = [Answer(503, {"Retry-After": "3600"})]
    _, delivery, attempt = await first_attempt(world, receiver.url())
    assert (attempt.outcome, delivery.state) == (Outcome.THROTTLED, State.PENDING)


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        ("120", 120),
        ("in 120 s", 120),
        ("an hour ago", 60),
        ("0", 60),
        (str(30 * DAY), DAY),
        ("9" * 60, DAY),
        ("soon", 60),
        ("-5", 60),
    ],
)
async def test_R13_retry_after_is_a_floor_of_at_most_a_day(
    world: World, receiver: Receiver, asked: str, wait: float
) -> None:
    world.step = 0.01

    def answer(_: bytes) -> Answer:
        dates = {"in 120 s": 121, "an hour ago": -3_600}  # a second more: dates have whole ones
        given = formatdate(world.clock.wall() + dates[asked], usegmt=True) if asked in dates else asked
        return Answer(429, {"Retry-After": given})

    receiver.answer = answer
    retry = {"schedule": [0, 60], "jitter": "none"}
    _, delivery, attempt = await first_attempt(world, receiver.url(), retry=retry)
    assert attempt.outcome is Outcome.THROTTLED
    assert wait <= delivery.due_at - attempt.at < wait + 3


# --- TLS ---


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """The only authority that the hooklines of this test trust, set by OpenSSL's own variable."""
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made._root))
    return made


async def test_R14_a_certificate_that_holds_is_fine(world: World, authority: Authority) -> None:
    async with RawServer(always(OK), context=authority.server("127.0.0.1")) as server:
        _, delivery, _ = await first_attempt(world, server.url)
        assert delivery.state is State.DELIVERED


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("self-signed", "self-signed certificate"),
        ("expired", "expired"),
        ("wrong host", "IP address mismatch"),
        ("unknown authority", "unable to get local issuer"),
        # The tests' server hangs up without the alert that others send; those are tested below.
        ("TLS 1.0 only", "closed while shaking hands"),
        ("no shared cipher", "closed while shaking hands"),
    ],
)
async def test_R14_tls_that_does_not_hold_is_a_tls_error_with_its_reason(
    world: World, authority: Authority, tmp_path: Path, fault: str, told: str
) -> None:
    (tmp_path / "other").mkdir()
    contexts = {
        "self-signed": lambda: authority.server("127.0.0.1", self_signed=True),
        "expired": lambda: authority.server("127.0.0.1", expired=True),
        "wrong host": lambda: authority.server("127.0.0.2"),
        "unknown authority": lambda: Authority(tmp_path / "other").server("127.0.0.1"),
        "TLS 1.0 only": lambda: old_tls(authority.server("127.0.0.1")),
        "no shared cipher": lambda: other_ciphers(authority.server("127.0.0.1")),
    }
    async with RawServer(always(OK), context=contexts[fault]()) as server:
        _, _, attempt = await first_attempt(world, server.url, number=2)
        assert (attempt.error, attempt.status) == (ErrorKind.TLS, None)
        assert told.lower() in (attempt.error_detail or "").lower().replace("_", " ")
        assert server.requests == []


@contextmanager
def blocking_server(context: ssl.SSLContext) -> Iterator[str]:
    """The address of a server that does the TLS handshake as OpenSSL does, alerts included, and no more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    with peer, contextlib.suppress(ssl.SSLError):
                        context.wrap_socket(peer, server_side=True).close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/"
        listener.shutdown(socket.SHUT_RDWR)  # wakes the thread, which closing alone does not
        thread.join(120)


@pytest.mark.parametrize(
    ("spoil", "told"), [(old_tls, "protocol version"), (other_ciphers, "handshake failure")]
)
async def test_R14_what_the_servers_alert_says_is_the_reason(
    world: World, authority: Authority, spoil: Callable[[ssl.SSLContext], ssl.SSLContext], told: str
) -> None:
    world.step = 0.005  # the server is a thread, and must have its turn within a deadline
    with blocking_server(spoil(authority.server("127.0.0.1"))) as url:
        _, _, attempt = await first_attempt(world, url, number=2)
        assert attempt.error is ErrorKind.TLS
        assert told in (attempt.error_detail or "").lower().replace("_", " ")


@pytest.mark.parametrize("kind", ["plaintext", "silence"])
async def test_R14_a_server_without_tls_gets_no_plaintext(
    world: World, authority: Authority, kind: str
) -> None:
    heard: list[bytes] = []

    async def script(peer: Conversation) -> None:
        heard.append(await peer._reader.read(1_000))
        if kind == "plaintext":
            await peer.say(OK)
        await peer.gone()

    async with RawServer(script) as server:
        url = server.url.replace("http:", "https:")
        _, _, attempt = await first_attempt(world, url, number=2, timeout_ms=1_000)
        assert (attempt.error, attempt.status) == (ErrorKind.TLS, None)
        assert attempt.error_detail
    assert len(heard) >= 2
    assert all(data[:1] == b"\x16" and b"POST" not in data and b"webhook" not in data for data in heard)


# --- what answers hold, and when they come ---


async def test_R16_markup_in_an_answer_is_kept_as_text(world: World, receiver: Receiver) -> None:
    script = b"</pre><script>alert(1)</script>"
    receiver.answers["/"] = [Answer(500, {"Content-Type": "text/html"}, script)]
    _, _, attempt = await first_attempt(world, receiver.url())
    assert attempt.response_body == script
    assert attempt_report(attempt, shown=float).response_body == script.decode()


async def test_R19_a_success_that_comes_too_late_is_a_failure_and_the_retry_is_signed_anew(
    world: World, receiver: Receiver
) -> None:
    hold = asyncio.Event()
    receiver.answers["/"] = [Answer(200, hold=hold), Answer(200)]
    hooks, delivery, attempt = await first_attempt(world, receiver.url(), timeout_ms=1_000)
    assert (attempt.outcome, attempt.error, attempt.status) == (Outcome.TRANSIENT, ErrorKind.TIMEOUT, None)
    hold.set()

    async def is_delivered() -> bool:
        found = await hooks.store.delivery(delivery.id)
        return found is not None and found.state is State.DELIVERED

    await world.until(is_delivered)
    first, second = (request.headers for request in receiver.requests)
    assert first["webhook-id"] == second["webhook-id"]
    assert int(first["webhook-timestamp"]) < int(second["webhook-timestamp"])
    assert first["webhook-signature"] != second["webhook-signature"]
    assert (first["webhook-attempt"], second["webhook-attempt"]) == ("1", "2")


async def test_R20_every_second_answer_failing_trips_by_rate_and_after_closing_not_before_ten_more(
    world: World, receiver: Receiver
) -> None:
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(
        url=receiver.url(),
        events=["*"],
        max_in_flight=1,
        retry={"schedule": [0, *[1] * 40], "jitter": "none"},
        circuit={"cooldown_s": 60, "max_cooldown_s": 480},
    )
    receiver.answers["/"] = [Answer(200), Answer(500)] * 100
    for number in range(20):
        await world.pass_until(hooks.publish("order.paid", number))
    opened_after = []
    for _ in range(2):
        for state in (CircuitState.OPEN, CircuitState.CLOSED):

            async def is_there(state: CircuitState = state) -> bool:
                [lane] = await hooks.store.lanes([EndpointId(read("endpoint", endpoint.id))])
                if lane.circuit.state is not state:
                    return False
                if state is CircuitState.OPEN:
                    assert "attempts failed within" in (lane.circuit.reason or "")
                return True

            await world.until(is_there)
            if state is CircuitState.OPEN:
                opened_after.append(len(receiver.requests))
    first, second = opened_after
    assert first == 10
    assert second - first >= 10
