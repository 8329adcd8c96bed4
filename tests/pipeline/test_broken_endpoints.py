"""A stored endpoint that today's rules would refuse harms only itself."""

import math
from typing import Any

import pytest

from hookline.admin.resealing import Rewritten, seal_all
from hookline.admin.secrets import RotationInput
from hookline.app import Hookline, audit_of
from hookline.crypto.sealing import PREFIX, Sealer
from hookline.errors import Invalid
from hookline.ids import read, show
from hookline.model import Attempt, EndpointId, ErrorKind, State
from hookline.reports.queries import EndpointReport
from hookline.store.contract import DeliveryFilter
from tests.planting import is_sqlite, plant
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

MANY = '{"base": 1, "factor": 2, "cap": null, "attempts": 1000000000, "jitter": "full"}'
CERTIFICATE = (
    '{"pem": "PEM", "facts": {"subject": "", "issuer": "", "serial": "", "not_before": "", "not_after": "", '
    '"fingerprint": ""}}'
)
BROKEN: list[tuple[str, Any]] = [
    ("url", ""),
    ("url", "no url at all"),
    ("url", "http://[::1"),
    ("url", "http://h.example:99999/"),
    ("url", "http://h.example/ HTTP/1.1\r\nHost: evil"),
    ("url", "ftp://h.example/"),
    ("headers", "no json"),
    ("headers", "null"),
    ("headers", "[1, 2]"),
    ("headers", '{"x-number": 1}'),
    ("headers", '{"x-two": "a\\r\\nHost: evil"}'),
    ("headers", '{"x-nul": "\\u0000"}'),
    ("headers", '{"Host": "evil"}'),
    ("headers", '{"a name": "x"}'),
    ("headers", '{"webhook-id": "mine"}'),
    ("headers", "[" * 5_000),
    ("client_certificate", "no json"),
    ("client_certificate", '{"pem": "sealed1 ?"}'),
    ("client_certificate", CERTIFICATE.replace("PEM", "no longer one")),
    ("client_certificate", CERTIFICATE.replace("PEM", "sealed1 ?")),
    ("retry", '{"preset": "never heard of"}'),
    ("retry", "[]"),
    ("retry", "{}"),
    ("retry", '{"schedule": [0, "soon"], "jitter": "full"}'),
    ("retry", MANY),
    ("retry_statuses", '{"a": 1}'),
    ("retry_statuses", '["9xx"]'),
    ("circuit", '"x"'),
    ("circuit", '{"cooldown_s": -5}'),
    ("circuit", '{"consecutive_failures": "many"}'),
    ("rate_limit", "7"),
    ("rate_limit", "{}"),
    ("rate_limit", '{"per_second": -1, "burst": 0}'),
    ("filter", "[[["),
    ("secret", ""),
    ("secret", "nonsense"),
    ("secret", "sealed1 ?"),
    ("signing", "mystic"),
    ("signature", "v9"),
    ("ordering", "random"),
    ("timeout", -1.0),
    ("timeout", math.inf),
    ("max_in_flight", -3),
    ("max_redirects", 100),
]
# A column of SQLite takes values of any type.
BROKEN_SQLITE: list[tuple[str, Any]] = [
    ("url", b"\xff\xfe"),
    ("url", 7),
    ("headers", 7),
    ("secret", b"\x00"),
    ("timeout", "soon"),
    ("max_in_flight", "few"),
    ("enabled", 7),
    ("paused", "maybe"),
    ("description", b"\xff"),
]
# A harmless fault is shown, and the endpoint is sent to all the same.
HARMLESS: list[tuple[str, Any]] = [("metadata", "no json"), ("metadata", "[]"), ("description", "x" * 2_000)]
GOOD: dict[str, Any] = {
    "client_certificate": None,
    "headers": {"x-good": "1"},
    "retry": {"preset": "quick"},
    "retry_statuses": [500],
    "circuit": None,
    "rate_limit": None,
    "filter": None,
    "signing": "standard",
    "ordering": "parallel",
    "timeout": 10_000,
    "max_in_flight": 5,
    "max_redirects": 0,
    "enabled": True,
    "paused": False,
    "description": "fine",
}


def broken_for(database: str) -> list[tuple[str, Any]]:
    return BROKEN + (BROKEN_SQLITE if is_sqlite(database) else [])


async def create(hooks: Hookline, receiver: Receiver, number: int) -> list[EndpointId]:
    made = [
        await hooks.create_endpoint(url=receiver.url(f"/{n}"), events=["*"], account="broken")
        for n in range(number)
    ]
    return [EndpointId(read("endpoint", each.id)) for each in made]


async def only_attempt(hooks: Hookline, endpoint: EndpointId) -> Attempt | None:
    [delivery] = await hooks.store.list_deliveries(DeliveryFilter(endpoint_id=endpoint), after=None, limit=10)
    assert delivery.state is State.PENDING
    found = await hooks.store.attempts(delivery.id)
    return found[0] if found else None


async def shown(hooks: Hookline, endpoint: EndpointId) -> EndpointReport:
    [found] = await hooks.store.endpoints_by_id([endpoint])
    return await hooks.reports.endpoint(found)


async def repair(hooks: Hookline, receiver: Receiver, n: int, endpoint: EndpointId, column: str) -> None:
    if column in ("secret", "signature"):
        await hooks.rotation.rotate(endpoint, RotationInput())
    elif column == "url":
        await hooks.update_endpoint(show("endpoint", endpoint), url=receiver.url(f"/{n}"))
    else:
        name = "timeout_ms" if column == "timeout" else column
        await hooks.update_endpoint(show("endpoint", endpoint), **{name: GOOD[column]})


@pytest.mark.parametrize("when", ["at the start", "while running"])
async def test_a_broken_endpoint_spoils_itself_alone_says_why_and_can_be_repaired(
    world: World, receiver: Receiver, when: str
):
    hooks = await world.start()
    broken = broken_for(world.database)
    endpoints = await world.pass_until(create(hooks, receiver, len(broken)))
    await world.pass_until(hooks.create_endpoint(url=receiver.url("/fine"), events=["*"]))
    await world.pass_until(hooks.create_endpoint(url=receiver.url("/beside"), events=["*"], account="broken"))
    if when == "at the start":
        await world.stop(hooks)
    for endpoint, (column, value) in zip(endpoints, broken, strict=True):
        plant(world.database, endpoint, column, value, tell=when == "while running")
    if when == "at the start":
        hooks = await world.start()
    await world.pass_until(hooks.publish("order.paid", 1))
    await world.pass_until(hooks.publish("order.paid", 1, account="broken"))
    await world.until(lambda: receiver.bodies("/fine") and receiver.bodies("/beside"))
    for endpoint, (column, value) in zip(endpoints, broken, strict=True):
        if column == "description":
            continue
        await world.until(lambda: only_attempt(hooks, endpoint))  # noqa: B023
        attempt = await world.pass_until(only_attempt(hooks, endpoint))
        assert attempt is not None
        assert (attempt.error, attempt.status) == (ErrorKind.INTERNAL, None)
        assert (attempt.error_detail or "").startswith(f"endpoint.{column} is not valid: "), (column, value)
        report = await world.pass_until(shown(hooks, endpoint))
        field = "timeout_ms" if column == "timeout" else column
        assert [each.field for each in report.problems] == [field], (column, value)
    assert {each.path for each in receiver.requests} <= {"/fine", "/beside", f"/{len(broken) - 1}"}
    for n, (endpoint, (column, _)) in enumerate(zip(endpoints, broken, strict=True)):
        await world.pass_until(repair(hooks, receiver, n, endpoint, column))
        assert (await world.pass_until(shown(hooks, endpoint))).problems == ()
    await world.pass_until(hooks.publish("order.paid", 2, account="broken"))
    await world.until(lambda: all(b"2" in receiver.bodies(f"/{n}") for n in range(len(broken))))


@pytest.mark.parametrize(("column", "value"), HARMLESS, ids=repr)
async def test_what_is_for_people_only_is_shown_and_spoils_nothing(world, receiver, column, value):
    hooks = await world.start()
    [endpoint] = await world.pass_until(create(hooks, receiver, 1))
    plant(world.database, endpoint, column, value, tell=True)
    await world.pass_until(hooks.publish("order.paid", 1, account="broken"))
    await world.until(lambda: receiver.bodies("/0"))
    assert [each.field for each in (await world.pass_until(shown(hooks, endpoint))).problems] == [column]


async def test_of_broken_patterns_those_that_can_be_read_still_match(world: World, receiver: Receiver):
    """What matches is retried and can be delivered after the repair; what does not is lost without a trace."""
    hooks = await world.start()
    some, none = await world.pass_until(create(hooks, receiver, 2))
    both = (
        (["not a pattern!", "order.*"], [None])
        if not is_sqlite(world.database)
        else ('["!", "order.*"]', "{}")
    )
    plant(world.database, some, "events", both[0], tell=True)
    plant(world.database, none, "events", both[1], tell=True)
    event = await world.pass_until(hooks.publish("order.paid", 1, account="broken"))
    assert event.deliveries == 1
    await world.until(lambda: only_attempt(hooks, some))
    attempt = await world.pass_until(only_attempt(hooks, some))
    assert attempt is not None
    assert (attempt.error_detail or "").startswith("endpoint.events is not valid: ")
    for endpoint in (some, none):
        assert [each.field for each in (await world.pass_until(shown(hooks, endpoint))).problems] == [
            "events"
        ]
        await world.pass_until(hooks.update_endpoint(show("endpoint", endpoint), events=["*"]))
    await world.until_state(hooks, event.id, State.DELIVERED)


async def test_a_broken_endpoint_can_be_deleted(world: World, receiver: Receiver):
    hooks = await world.start()
    [endpoint] = await world.pass_until(create(hooks, receiver, 1))
    plant(world.database, endpoint, "headers", "no json", tell=True)
    event = await world.pass_until(hooks.publish("order.paid", 1, account="broken"))
    await world.pass_until(hooks.delete_endpoint(show("endpoint", endpoint)))
    await world.until_state(hooks, event.id, State.CANCELLED)
    assert await world.pass_until(hooks.store.endpoints_by_id([endpoint])) == []


async def test_what_cannot_be_read_is_not_overwritten_unasked(world: World, receiver: Receiver):
    hooks = await world.start()
    [endpoint] = await world.pass_until(create(hooks, receiver, 1))
    plant(world.database, endpoint, "headers", '{"authorization": "Bearer x"', tell=True)
    id = show("endpoint", endpoint)
    with pytest.raises(Invalid, match="headers of this endpoint is not valid") as raised:
        await world.pass_until(hooks.update_endpoint(id, description="new"))
    assert raised.value.pointer == "/headers"
    with pytest.raises(Invalid, match="headers of this endpoint is not valid"):
        await world.pass_until(hooks.rotation.rotate(endpoint, RotationInput()))
    await world.pass_until(
        hooks.update_endpoint(id, description="new", headers={"authorization": "Bearer x"})
    )
    assert (await world.pass_until(shown(hooks, endpoint))).problems == ()


async def test_sealing_all_secrets_leaves_broken_rows_as_they_are(world: World, receiver: Receiver):
    hooks = await world.start()
    unread, garbled, fine = await world.pass_until(create(hooks, receiver, 3))
    plant(world.database, unread, "headers", "no json")
    plant(world.database, garbled, "secret", "sealed1 ?")
    assert await world.pass_until(seal_all(hooks.store, Sealer(["k" * 40]), audit_of())) == Rewritten(1, 0)
    found = {
        each.id: each for each in await world.pass_until(hooks.store.endpoints_by_id([unread, garbled, fine]))
    }
    assert found[unread].unread.keys() == {"headers"}
    assert not found[unread].secret.startswith(PREFIX)
    assert found[garbled].secret == "sealed1 ?"
    assert found[fine].secret.startswith(PREFIX)
