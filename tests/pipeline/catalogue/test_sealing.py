"""Sealing changes nothing but what is in the database."""

from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from hookline.admin.secrets import RotationInput
from hookline.app import Hookline
from hookline.config import Settings
from hookline.crypto.sealing import PREFIX
from hookline.errors import ConfigError, SealBroken
from hookline.ids import read
from hookline.model import EndpointId
from tests.world import World

pytestmark = pytest.mark.anyio

KEY, OTHER = ("k" * 32,), ("o" * 43,)


@pytest.fixture
async def world(world: World) -> World:
    world.clock = type(world.clock)(datetime.now(UTC).timestamp())  # the verifier looks at its own clock
    return world


async def stored(hooks) -> list[str]:
    endpoints = (await hooks.store.catalogue()).endpoints
    return [secret for each in endpoints for secret in (each.secret, each.old_secret) if secret]


async def refused(world: World, **settings) -> None:
    hooks = Hookline(world.database, settings=Settings(dev=True, **settings), clock=world.clock)
    try:
        await world.pass_until(hooks.start())
    finally:
        await hooks.store.close()


async def test_secrets_are_sealed_in_the_database_and_requests_signed_as_ever(world, receiver):
    hooks = await world.start(secret_key=KEY)
    created = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    id = EndpointId(read("endpoint", created.id))
    await world.pass_until(hooks.update_endpoint(created.id, description="changed", signing="classic"))
    await world.pass_until(hooks.update_endpoint(created.id, signing="standard"))
    report = await world.pass_until(hooks.rotation.rotate(id, RotationInput()))
    assert report.old.secret == created.secret
    assert [each[:8] for each in await stored(hooks)] == [PREFIX, PREFIX]
    await world.stop(hooks)
    hooks = await world.start(secret_key=KEY)
    assert (await hooks.rotation.read(id)) == report
    await hooks.publish("order.paid", {"id": 42})
    await world.until(lambda: receiver.requests)
    for secret in (created.secret, report.secret):
        assert Webhook(secret).verify(receiver.requests[0].body, receiver.requests[0].headers) == {"id": 42}


async def test_a_wrong_key_is_refused_at_the_start(world, receiver):
    hooks = await world.start(secret_key=KEY)
    await world.stop(hooks)
    with pytest.raises(ConfigError, match="HOOKLINE_SECRET_KEY"):
        await refused(world, secret_key=OTHER)


async def test_no_key_is_refused_at_the_start_when_secrets_are_sealed(world, receiver):
    hooks = await world.start(secret_key=KEY)
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await world.stop(hooks)
    with pytest.raises(SealBroken, match="HOOKLINE_SECRET_KEY is not set"):
        await refused(world)


async def test_what_was_stored_plain_goes_on_working_and_is_sealed_when_it_is_written(world, receiver):
    hooks = await world.start()
    created = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await world.stop(hooks)
    hooks = await world.start(secret_key=KEY)
    assert await stored(hooks) == [created.secret]
    await hooks.publish("order.paid", {"id": 42})
    await world.until(lambda: receiver.requests)
    assert Webhook(created.secret).verify(receiver.requests[0].body, receiver.requests[0].headers)
    await world.pass_until(hooks.update_endpoint(created.id, description="written"))
    assert [each[:8] for each in await stored(hooks)] == [PREFIX]


async def test_an_endpoint_that_another_process_sealed_with_another_key_is_not_sent_to_and_nothing_else_suffers(
    shared_world, receiver
):
    world = shared_world
    plain = await world.start()
    sealing = await world.start(deliver=False, secret_key=KEY)
    await sealing.create_endpoint(url=receiver.url("/sealed"), events=["*"])
    await sealing.create_endpoint(url=receiver.url("/sealed"), events=["*"])
    n = sealing._catalogue.n
    await world.until(lambda: plain._catalogue.n >= n)
    await plain.create_endpoint(url=receiver.url("/plain"), events=["*"])
    event = await world.pass_until(plain.publish("order.paid", {}))
    assert event.deliveries == 3
    await world.until(lambda: receiver.requests)
    assert {each.path for each in receiver.requests} == {"/plain"}
