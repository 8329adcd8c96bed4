"""Receivers can change to another secret without missing a request."""

import hashlib
import hmac
from base64 import b64decode
from datetime import UTC, datetime

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from hookline.admin.secrets import RotationInput
from hookline.errors import Invalid, NotFound, OverlapUnderWay
from hookline.ids import read
from hookline.model import EndpointId
from tests.receiver import Received, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

DAY = 86_400


def is_accepted_with(secret: str, request: Received) -> bool:
    """By the published verifier, unchanged."""
    try:
        Webhook(secret).verify(request.body, request.headers)
    except WebhookVerificationError:
        return False
    return True


def is_accepted_with_public_key(public_key: str, request: Received) -> bool:
    """As the Standard Webhooks specification says, by hand."""
    key = Ed25519PublicKey.from_public_bytes(b64decode(public_key.removeprefix("whpk_")))
    head = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode()
    for signature in request.headers["webhook-signature"].split(" "):
        version, _, value = signature.partition(",")
        if version == "v1a":
            try:
                key.verify(b64decode(value), head + request.body)
            except InvalidSignature:
                continue
            return True
    return False


def body_signature(secret: str, body: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


@pytest.fixture
async def world(world: World) -> World:
    world.clock = type(world.clock)(datetime.now(UTC).timestamp())  # the verifier looks at its own clock
    return world


async def an_endpoint(hooks, receiver: Receiver, **fields) -> tuple[EndpointId, str]:
    created = await hooks.create_endpoint(url=receiver.url(), events=["*"], **fields)
    return EndpointId(read("endpoint", created.id)), created.secret


async def next_request(world: World, hooks, receiver: Receiver) -> Received:
    before = len(receiver.requests)
    await hooks.publish("order.paid", {"id": 42})
    await world.until(lambda: len(receiver.requests) > before)
    return receiver.requests[before]


async def test_both_secrets_verify_during_the_overlap_and_the_new_one_alone_after_it(world, receiver):
    hooks = await world.start()
    id, old = await an_endpoint(hooks, receiver)
    report = await world.pass_until(hooks.rotation.rotate(id, RotationInput(overlap_s=10)))
    new = report.secret
    assert (report.old.secret, report.signature, report.public_key) == (old, "v1", None)
    request = await next_request(world, hooks, receiver)
    assert is_accepted_with(old, request)
    assert is_accepted_with(new, request)
    assert len(request.headers["webhook-signature"].split(" ")) == 2

    world.clock.advance(11)
    request = await next_request(world, hooks, receiver)
    assert is_accepted_with(new, request)
    assert not is_accepted_with(old, request)
    assert (await hooks.rotation.read(id)).old is None


async def test_a_receiver_of_classic_signatures_finds_the_old_one_where_it_was_and_the_next_beside_it(
    world, receiver
):
    hooks = await world.start()
    id, old = await an_endpoint(hooks, receiver, signing="classic", secret="a-secret-that-was-there-before")
    report = await world.pass_until(hooks.rotation.rotate(id, RotationInput(overlap_s=10)))
    request = await next_request(world, hooks, receiver)
    assert request.headers["x-webhook-signature"] == body_signature(old, request.body)
    assert request.headers["x-webhook-signature-next"] == body_signature(report.secret, request.body)

    world.clock.advance(11)
    request = await next_request(world, hooks, receiver)
    assert request.headers["x-webhook-signature"] == body_signature(report.secret, request.body)
    assert "x-webhook-signature-next" not in request.headers


async def test_without_an_overlap_the_old_secret_signs_no_more(world, receiver):
    hooks = await world.start()
    id, old = await an_endpoint(hooks, receiver)
    report = await world.pass_until(hooks.rotation.rotate(id, RotationInput(overlap_s=0)))
    request = await next_request(world, hooks, receiver)
    assert is_accepted_with(report.secret, request)
    assert not is_accepted_with(old, request)


async def test_an_endpoint_with_an_ed25519_key_is_verified_with_the_public_half(world, receiver):
    hooks = await world.start()
    id, secret = await an_endpoint(hooks, receiver, signature="v1a")
    assert secret.startswith("whsk_")
    shown = await hooks.rotation.read(id)
    assert (shown.secret, shown.signature, shown.public_key[:5]) == (secret, "v1a", "whpk_")
    request = await next_request(world, hooks, receiver)
    assert request.headers["webhook-signature"].startswith("v1a,")
    assert is_accepted_with_public_key(shown.public_key, request)


async def test_a_rotation_leads_from_a_shared_secret_to_a_key_and_both_verify_meanwhile(world, receiver):
    hooks = await world.start()
    id, old = await an_endpoint(hooks, receiver)
    report = await world.pass_until(hooks.rotation.rotate(id, RotationInput(overlap_s=10, signature="v1a")))
    request = await next_request(world, hooks, receiver)
    assert is_accepted_with(old, request)
    assert is_accepted_with_public_key(report.public_key, request)
    world.clock.advance(11)
    rotated = await world.pass_until(hooks.rotation.rotate(id, RotationInput(overlap_s=10)))
    assert rotated.signature == "v1a"  # as it was
    request = await next_request(world, hooks, receiver)
    assert is_accepted_with_public_key(report.public_key, request)
    assert is_accepted_with_public_key(rotated.public_key, request)
    assert not is_accepted_with(old, request)


async def test_the_overlap_is_a_day_unless_said_otherwise(world, receiver):
    hooks = await world.start()
    id, _ = await an_endpoint(hooks, receiver)
    await world.pass_until(hooks.rotation.rotate(id, RotationInput()))
    [endpoint] = await hooks.store.endpoints_by_id([id])
    assert endpoint.old_secret_until == pytest.approx(endpoint.updated_at + DAY, abs=1)


async def test_a_second_rotation_within_the_overlap_is_refused_unless_it_ends_it(world, receiver):
    hooks = await world.start()
    id, old = await an_endpoint(hooks, receiver)
    first = await world.pass_until(hooks.rotation.rotate(id, RotationInput()))
    with pytest.raises(OverlapUnderWay):
        await hooks.rotation.rotate(id, RotationInput())
    assert (await hooks.rotation.read(id)).secret == first.secret
    leaked = await world.pass_until(hooks.rotation.rotate(id, RotationInput(overlap_s=0)))
    request = await next_request(world, hooks, receiver)
    assert [is_accepted_with(secret, request) for secret in (old, first.secret, leaked.secret)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"overlap_s": -1}, "/overlap_s"),
        ({"overlap_s": 30 * DAY + 1}, "/overlap_s"),
        ({"overlap_s": "1h"}, "/overlap_s"),
        ({"secret": "short"}, "/secret"),
        ({"secret": 7}, "/secret"),
        ({"signature": "v2"}, "/signature"),
        ({"signature": "v1a", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "/signature"),
        ({"secret": "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "/secret"),
    ],
)
async def test_what_will_not_do_is_refused_and_changes_nothing(world, receiver, asked, pointer):
    hooks = await world.start()
    id, secret = await an_endpoint(hooks, receiver)
    with pytest.raises(Invalid) as refused:
        await hooks.rotation.rotate(id, RotationInput(**asked))
    assert refused.value.pointer == pointer
    shown = await hooks.rotation.read(id)
    assert (shown.secret, shown.old) == (secret, None)


async def test_the_secret_that_signs_already_is_no_other_one(world, receiver):
    hooks = await world.start()
    id, secret = await an_endpoint(hooks, receiver)
    with pytest.raises(Invalid):
        await hooks.rotation.rotate(id, RotationInput(secret=secret))


async def test_an_endpoint_that_is_not_there_has_no_secret(world):
    hooks = await world.start()
    with pytest.raises(NotFound):
        await hooks.rotation.read(EndpointId(bytes(16)))
    with pytest.raises(NotFound):
        await hooks.rotation.rotate(EndpointId(bytes(16)), RotationInput())


async def test_another_process_signs_with_both_as_soon_as_it_has_seen_the_change(shared_world, receiver):
    world = shared_world
    world.clock = type(world.clock)(datetime.now(UTC).timestamp())
    hooks = await world.start()
    operator = await world.start(deliver=False)
    id, old = await an_endpoint(hooks, receiver)
    report = await world.pass_until(operator.rotation.rotate(id, RotationInput()))
    n = operator._catalogue.n
    await world.until(lambda: hooks._catalogue.n >= n)
    request = await next_request(world, hooks, receiver)
    assert is_accepted_with(old, request)
    assert is_accepted_with(report.secret, request)
