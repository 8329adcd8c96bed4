"""The kit's receiver records, verifies and answers as a test told it to."""

import asyncio
import http.client
import socket
import subprocess
import sys
import threading

import pytest

from hookline.crypto.signing import Mac, key_of, new_secret, sign_standard
from hookline.model import Signing
from hookline.testing import Answer, WebhookReceiver
from server_process import CEILING_S, environment

NOW = 1_700_000_000  # long ago: the kit does not judge by age


@pytest.fixture
def receiver():
    with WebhookReceiver() as receiver:
        yield receiver


def signed(secret: str, body: bytes, *, id: str = "evt_1", type: str = "a") -> dict[str, str]:
    mac = Mac(key_of(secret, Signing.STANDARD))
    return {
        "webhook-id": id,
        "webhook-timestamp": str(NOW),
        "webhook-signature": sign_standard(mac, id, NOW, body),
        "webhook-event": type,
        "webhook-attempt": "1",
    }


def receiver_port(receiver: WebhookReceiver) -> int:
    return int(receiver.url.split(":")[2].strip("/"))


def send(
    receiver: WebhookReceiver, body: bytes, headers: dict[str, str], path: str = "/"
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", receiver_port(receiver), timeout=CEILING_S)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def deliver(receiver: WebhookReceiver, body: bytes = b"{}", **named: str) -> tuple[int, bytes]:
    return send(receiver, body, signed(receiver.secret, body, **named))


def test_a_genuine_request_is_accepted_and_kept(receiver):
    assert deliver(receiver, b'{"id": 42}', type="order.paid", id="evt_7") == (200, b"")
    [request] = receiver.requests
    assert (request.path, request.body, request.json(), request.status) == (
        "/",
        b'{"id": 42}',
        {"id": 42},
        200,
    )
    assert (request.event_type, request.event_id, request.attempt) == ("order.paid", "evt_7", 1)
    assert request.is_accepted
    assert receiver.assert_received("order.paid", {"id": 42}) == request
    assert receiver.assert_received("order.paid", b'{"id": 42}') == request
    assert receiver.assert_received("order.paid") == request


def test_a_request_that_is_not_genuine_is_refused_and_says_why(receiver):
    assert send(receiver, b"{}", signed(new_secret(), b"{}"))[0] == 401
    assert send(receiver, b"{}", {})[0] == 401
    forged, unsigned = receiver.requests
    assert "signature" in forged.problem
    assert (forged.verified, unsigned.event_type, unsigned.is_accepted) == (None, None, False)
    with pytest.raises(AssertionError, match="not believed"):
        receiver.assert_received("a")


def test_another_secret_can_be_trusted_too(receiver):
    secret = new_secret()
    receiver.trust(secret)
    assert send(receiver, b"{}", signed(secret, b"{}"))[0] == 200
    assert deliver(receiver)[0] == 200


def test_answers_are_used_up_one_by_one_and_only_by_genuine_requests(receiver):
    receiver.answer(503, Answer(status=418, headers={"x-mood": "tea"}, body=b"short"), Answer(hang_up=True))
    assert send(receiver, b"{}", {})[0] == 401
    assert deliver(receiver) == (503, b"")
    assert deliver(receiver) == (418, b"short")
    with pytest.raises(http.client.RemoteDisconnected):
        deliver(receiver)
    assert deliver(receiver) == (200, b"")
    assert [each.status for each in receiver.requests] == [401, 503, 418, None, 200]


@pytest.mark.parametrize(
    "missed",
    [
        lambda receiver: receiver.assert_received("b"),
        lambda receiver: receiver.assert_received("a", {"id": 43}),
        lambda receiver: receiver.assert_received("a", b'{"id": 42}'),  # these bytes exactly
        lambda receiver: receiver.assert_nothing_received(),
        lambda receiver: receiver.wait(2, within=0.01),
        lambda receiver: asyncio.run(receiver.arrived(2, within=0.01)),
    ],
)
def test_a_failure_shows_what_arrived(receiver, missed):
    deliver(receiver, b'{"id":42}')
    with pytest.raises(AssertionError) as raised:
        missed(receiver)
    assert """/ a b'{"id":42}' (answered 200)""" in str(raised.value)


def test_what_was_refused_was_not_received(receiver):
    receiver.answer(500)
    deliver(receiver)
    with pytest.raises(AssertionError, match="answered 500"):
        receiver.assert_received("a")


def test_clearing_forgets(receiver):
    receiver.answer(500, 500)
    deliver(receiver)
    receiver.clear()
    receiver.assert_nothing_received()
    assert deliver(receiver)[0] == 200


def test_a_test_waits_for_what_arrives_later(receiver):
    sender = threading.Thread(target=lambda: [deliver(receiver, id=f"evt_{n}") for n in range(20)])
    sender.start()
    assert [each.event_id for each in receiver.wait(20)] == [f"evt_{n}" for n in range(20)]
    sender.join()


def test_a_test_on_an_event_loop_waits_without_holding_it_up(receiver):
    async def story() -> list[str | None]:
        sending = asyncio.get_running_loop().run_in_executor(
            None, lambda: [deliver(receiver, id=f"evt_{n}") for n in range(20)]
        )
        found = await receiver.arrived(20)
        await sending
        return [each.event_id for each in found]

    assert asyncio.run(story()) == [f"evt_{n}" for n in range(20)]


def test_a_stopped_receiver_refuses_connections_and_comes_back_at_the_same_address(receiver):
    url = receiver.url
    receiver.stop()
    with pytest.raises(ConnectionRefusedError):
        deliver(receiver)
    receiver.start()
    assert (receiver.url, deliver(receiver)[0]) == (url, 200)


def test_stopping_cuts_a_connection_that_was_accepted_at_that_very_moment(receiver):
    accepted, closing = threading.Event(), threading.Event()
    server = receiver._server
    handler, close = server.RequestHandlerClass, server.server_close

    class Late(handler):
        """Begins only when the connections have been cut."""

        def setup(self) -> None:
            accepted.set()
            closing.wait(CEILING_S)
            super().setup()

    def close_late() -> None:
        closing.set()
        close()

    server.RequestHandlerClass, server.server_close = Late, close_late
    with socket.create_connection(("127.0.0.1", receiver_port(receiver))):
        assert accepted.wait(CEILING_S)
        stopping = threading.Thread(target=receiver.stop)
        stopping.start()
        stopping.join(CEILING_S)
        assert not stopping.is_alive()


def test_the_kit_needs_no_pytest():
    program = "import hookline.testing, sys\nassert not {'pytest', 'aiohttp'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], env=environment(), check=True)
