"""The kit verifies what a real hookline sends, in each style and all through a rotation."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hookline.admin.secrets import RotationInput
from hookline.app import Hookline
from hookline.config import Settings
from hookline.errors import Invalid
from hookline.ids import read
from hookline.model import EndpointId
from hookline.receiver import VerificationError, verify
from tests.receiver import Received, Receiver

pytestmark = pytest.mark.anyio


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    await receiver.start()
    yield receiver
    await receiver.stop()


@pytest.fixture
async def hooks(tmp_path: Path) -> AsyncIterator[Hookline]:
    async with Hookline(f"sqlite:///{tmp_path}/hooks.db", settings=Settings(dev=True)) as hooks:
        yield hooks


async def sent(hooks: Hookline, receiver: Receiver) -> tuple[str, Received]:
    """A new event's id, and the request made for it."""
    number = len(receiver.requests) + 1
    event = await hooks.publish("order.paid", {"id": 42})
    return event.id, (await receiver.wait_for_requests(number))[-1]


def is_believed(secret: str | list[str], request: Received) -> bool:
    try:
        verify(secret, request.headers, request.body)
    except VerificationError:
        return False
    return True


@pytest.mark.parametrize("style", ["standard", "classic"])
async def test_either_secret_proves_a_request_while_rotating(hooks, receiver, style):
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], signing=style)
    id, request = await sent(hooks, receiver)
    verified = verify(endpoint.secret, request.headers, request.body, style=style)
    assert (verified.id, verified.event_type, verified.attempt) == (id, "order.paid", 1)

    rotated = await hooks.rotation.rotate(
        EndpointId(read("endpoint", endpoint.id)), RotationInput(overlap_s=3_600)
    )
    _, request = await sent(hooks, receiver)
    assert is_believed(endpoint.secret, request)
    assert is_believed(rotated.secret, request)
    assert verify([rotated.secret, endpoint.secret], request.headers, request.body).secret_number == 0


async def test_the_public_key_proves_a_request_and_the_way_to_it_is_a_rotation(hooks, receiver):
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    rotated = await hooks.rotation.rotate(
        EndpointId(read("endpoint", endpoint.id)), RotationInput(overlap_s=3_600, signature="v1a")
    )
    _, request = await sent(hooks, receiver)
    assert is_believed(endpoint.secret, request)
    assert is_believed(rotated.public_key, request)
    assert not is_believed(rotated.secret, request), "the private key has no place at a receiver"


@pytest.mark.parametrize("style", ["standard", "classic"])
async def test_hops_that_are_passed_on_count_up_until_a_circle_ends(hooks, receiver, style):
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], signing=style)
    hops = 0
    for expected in (1, 2, 3, 4):
        await hooks.publish("order.paid", {"id": 42}, hops=hops)
        request = (await receiver.wait_for_requests(expected))[-1]
        hops = verify(endpoint.secret, request.headers, request.body).hops
        assert hops == expected
    with pytest.raises(Invalid) as refused:
        await hooks.publish("order.paid", {"id": 42}, hops=hops)
    assert refused.value.code == "loop_detected"
