"""hookline tells its own events to the endpoints of the account `hookline`, each once."""

import msgspec
import pytest

from hookline import failpoints
from hookline.ids import read
from hookline.model import OWN_ACCOUNT, Account, EndpointId, Notify, State
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.intake.announcing import Announcer
from hookline.pipeline.intake.drafts import Draft
from hookline.pipeline.notifying.telling import Telling
from hookline.reports.own_events import OwnEvents
from hookline.rules.people import DEAD
from hookline.store.contract.events import EventFilter
from hookline.store.contract.measuring.announcements import ANNOUNCE_CHUNK
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

ONCE = {"schedule": [0], "jitter": "none"}
QUICK = {"schedule": [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "jitter": "none"}


@pytest.fixture(autouse=True)
def nothing_planted():
    yield
    failpoints.plant("")


async def listen(hooks, receiver, *, path="/own", **fields):
    """An endpoint of the account `hookline` that gets own events, without those of alerts: looks for these take time."""
    events = ["delivery.*", "endpoint.*", "circuit.*"]
    return await hooks.create_endpoint(url=receiver.url(path), events=events, account=OWN_ACCOUNT, **fields)


def heard(receiver, *types, path="/own"):
    """The own events that arrived."""
    found = [msgspec.json.decode(body) for body in receiver.bodies(path)]
    return [each for each in found if not types or each["type"] in types]


def an_announcer(hooks, *, catalogue=None, **fields):
    """One that the test moves; the process's own does nothing more."""
    hooks._tasks._tasks.clear()
    return Announcer(
        hooks.store,
        catalogue or hooks._catalogue,
        hooks.clock,
        hooks.ids,
        people=Telling(catalogue or hooks._catalogue, gather_s=900.0),
        **{
            "show": OwnEvents(hooks.store, hooks.reports, hooks.clock).payloads,
            "wake": hooks.worker.handover.announce,
        }
        | fields,
    )


async def notify(hooks, account, **channels):
    """Say where an account is notified."""
    await hooks.store.put_account(Account(id=account, notify=Notify(**channels)), now=hooks.clock.now())
    await hooks._catalogue.include_own()
    await hooks._catalogue.read_notified()


async def until_all_is_told(world, hooks):
    """Everything that was announced is published, and everything published to `hookline` has ended."""

    async def is_quiet():
        if await hooks.store.announcements(limit=1):
            return False
        return (await hooks.store.counts())[State.PENDING] == 0

    await world.until(is_quiet)


async def test_a_delivery_that_dies_is_told_once_as_the_api_shows_it(world: World, receiver: Receiver):
    hooks = await world.start()
    await listen(hooks, receiver)
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], account="acme", retry=ONCE)
    receiver.answers["/"] = [Answer(500)]
    event = await hooks.publish("order.paid", {}, account="acme")
    await world.until(lambda: heard(receiver))
    await until_all_is_told(world, hooks)
    [told] = heard(receiver)
    delivery = await world.delivery(hooks, event.id)
    [shown] = await hooks.reports.deliveries([delivery], now=world.clock.now())
    assert told.keys() == {"type", "at", "account", "data"}
    assert (told["type"], told["account"], told["at"]) == ("delivery.dead", "acme", shown.dead_at)
    assert told["data"] == msgspec.to_builtins(shown)
    assert (told["data"]["endpoint_id"], told["data"]["reason"]) == (endpoint.id, "exhausted")
    [request] = [each for each in receiver.requests if each.path == "/own"]
    assert request.headers["webhook-event"] == "delivery.dead"


async def test_a_circuit_is_told_when_it_opens_and_when_it_closes(world: World, receiver: Receiver):
    hooks = await world.start()
    await listen(hooks, receiver)
    circuit = {"cooldown_s": 60, "max_cooldown_s": 60}
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, circuit=circuit)
    receiver.answers["/"] = [Answer(500)] * 6 + [Answer(200)]
    event = await hooks.publish("order.paid", {})
    await world.until(lambda: heard(receiver, "circuit.opened"))
    await world.until_state(hooks, event.id, State.DELIVERED)
    await world.until(lambda: heard(receiver, "circuit.closed"))
    await until_all_is_told(world, hooks)
    assert len([each for each in receiver.requests if each.path == "/"]) == 7, "one probe failed"
    told = heard(receiver, "circuit.opened", "circuit.closed")
    assert [each["type"] for each in told] == ["circuit.opened", "circuit.closed"]
    assert [each["data"]["id"] for each in told] == [endpoint.id] * 2
    assert told[1]["data"]["circuit_state"]["state"] == "closed"


async def test_an_endpoint_that_is_gone_is_told_with_its_delivery(world: World, receiver: Receiver):
    hooks = await world.start()
    await listen(hooks, receiver)
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(410)]
    await hooks.publish("order.paid", {})
    await world.until(lambda: len(heard(receiver)) == 2)
    await until_all_is_told(world, hooks)
    assert sorted(each["type"] for each in heard(receiver)) == ["delivery.dead", "endpoint.disabled"]
    [disabled] = heard(receiver, "endpoint.disabled")
    assert (disabled["data"]["id"], disabled["data"]["enabled"]) == (endpoint.id, False)
    assert "410" in disabled["data"]["disabled_reason"]
    assert "secret" not in disabled["data"]


async def test_an_endpoint_that_an_operator_disables_is_told_once(world: World, receiver: Receiver):
    hooks = await world.start()
    await listen(hooks, receiver)
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    for fields in ({"enabled": False}, {"description": "still disabled"}, {"enabled": True}):
        await world.pass_until(hooks.update_endpoint(endpoint.id, **fields))
    await world.until(lambda: heard(receiver))
    await until_all_is_told(world, hooks)
    assert [each["type"] for each in heard(receiver)] == ["endpoint.disabled"]


async def test_own_events_never_cause_themselves(world: World, receiver: Receiver):
    """The endpoint that gets them fails, opens its circuit, is gone and is disabled."""
    hooks = await world.start()
    circuit = {"consecutive_failures": 1, "cooldown_s": 5, "max_cooldown_s": 5}
    await listen(hooks, receiver, retry={"schedule": [0, 1], "jitter": "none"}, circuit=circuit)
    await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=ONCE, circuit=None)
    receiver.answers["/"] = [Answer(500)]
    receiver.answers["/own"] = [Answer(500), Answer(500), Answer(410)]
    await hooks.publish("order.paid", {})
    await world.until(lambda: len(heard(receiver)) == 2)
    await until_all_is_told(world, hooks)
    await hooks.publish("order.paid", {})
    await world.until(lambda: len(heard(receiver)) == 3)
    await until_all_is_told(world, hooks)
    assert {each["account"] for each in heard(receiver)} == {"default"}
    assert (await hooks.store.counts())[State.DEAD] == 4
    assert await hooks.store.announcements(limit=1) == []
    await world.until(lambda: not hooks._catalogue.announces)  # nobody listens any more


async def test_while_nobody_listens_nothing_is_announced(world: World, receiver: Receiver):
    hooks = await world.start()
    listener = await listen(hooks, receiver)
    assert hooks._catalogue.announces
    await world.pass_until(hooks.update_endpoint(listener.id, enabled=False))
    assert not hooks._catalogue.announces
    await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=ONCE)
    receiver.answers["/"] = [Answer(500)]
    event = await hooks.publish("order.paid", {})
    await world.until_state(hooks, event.id, State.DEAD)
    assert await hooks.store.announcements(limit=1) == []
    await world.pass_until(notify(hooks, "acme", email="ops@acme.example"))
    assert hooks._catalogue.announces, "people are told although no endpoint is"
    await world.pass_until(hooks.delete_endpoint(listener.id))
    await world.pass_until(notify(hooks, "acme"))
    assert not hooks._catalogue.announces


async def test_only_endpoints_that_ask_for_it_and_whose_filter_passes_get_it(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    for path, fields in {
        "/all": {"events": ["*"]},
        "/circuits": {"events": ["circuit.*"]},
        "/acme": {"events": ["delivery.dead"], "filter": "account == 'acme'"},
    }.items():
        await hooks.create_endpoint(url=receiver.url(path), account=OWN_ACCOUNT, **fields)
    receiver.answers["/"] = [Answer(500)]
    for account in ("acme", "other"):
        await hooks.create_endpoint(url=receiver.url(), events=["*"], account=account, retry=ONCE)
        await hooks.publish("order.paid", {}, account=account)
    await world.until(lambda: len(heard(receiver, path="/all")) == 2 and heard(receiver, path="/acme"))
    await until_all_is_told(world, hooks)
    assert [each["account"] for each in heard(receiver, path="/acme")] == ["acme"]
    assert heard(receiver, path="/circuits") == []


@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_failure_around_the_commit_leaves_one_event(world: World, receiver: Receiver, side: str):
    hooks = await world.start()
    await listen(hooks, receiver)
    await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=ONCE)
    receiver.answers["/"] = [Answer(500)]
    failpoints.plant(f"publish_announcements.{side}=error@1")
    await hooks.publish("order.paid", {})
    await world.until(lambda: heard(receiver))
    await until_all_is_told(world, hooks)
    assert len(heard(receiver)) == 1


async def test_what_is_gone_by_then_is_told_with_what_is_known(world: World, receiver: Receiver):
    hooks = await world.start()
    await listen(hooks, receiver)
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], account="acme")
    failpoints.plant("publish_announcements.before=error")
    await world.pass_until(hooks.update_endpoint(endpoint.id, enabled=False))
    await world.pass_until(hooks.delete_endpoint(endpoint.id))
    failpoints.plant("")
    await world.until(lambda: heard(receiver))
    [told] = heard(receiver)
    assert (told["type"], told["account"]) == ("endpoint.disabled", "acme")
    assert told["data"]["id"] == endpoint.id


async def test_two_processes_publish_each_once(shared_world: World, receiver: Receiver):
    one, two = await shared_world.start(), await shared_world.start()
    await listen(one, receiver)
    await shared_world.pass_until(two._catalogue.catch_up())
    await one.create_endpoint(url=receiver.url(), events=["*"], retry=ONCE, circuit=None)
    receiver.answers["/"] = [Answer(500)]
    for n in range(30):
        await (one, two)[n % 2].publish("order.paid", n)
    await shared_world.until(lambda: len(heard(receiver)) >= 30)
    await until_all_is_told(shared_world, one)
    assert len({each["data"]["id"] for each in heard(receiver)}) == len(heard(receiver)) == 30


@pytest.mark.parametrize("side", ["before", "after"])
async def test_who_is_told_is_stored_in_the_commit_that_ends_the_announcement(
    world: World, receiver: Receiver, side: str
):
    hooks = await world.start(notify_deaths_s=0.0)
    await hooks.create_endpoint(url=receiver.url(), events=["*"], account="acme", retry=ONCE)
    await world.pass_until(notify(hooks, "acme", webhook=receiver.url("/people")))
    receiver.answers["/"] = [Answer(500)]
    failpoints.plant(f"publish_announcements.{side}=error@1")
    await hooks.publish("order.paid", {}, account="acme")
    await world.until(lambda: heard(receiver, path="/people"))
    await until_all_is_told(world, hooks)
    [told] = heard(receiver, path="/people")
    assert (told["type"], told["account"], told["data"]["count"]) == ("deliveries.dead", "acme", 1)


async def test_own_events_that_nobody_gets_are_not_stored(world: World, receiver: Receiver):
    """People are told of deaths of other accounts alone."""
    hooks = await world.start()
    announcer = an_announcer(hooks)
    await hooks.create_endpoint(url=receiver.url(), events=["*"], account="acme", retry=ONCE)
    await world.pass_until(notify(hooks, "other", email="ops@other.example"))
    receiver.answers["/"] = [Answer(500)]
    event = await hooks.publish("order.paid", {}, account="acme")
    await world.until_state(hooks, event.id, State.DEAD)
    assert await hooks.store.announcements(limit=1)
    await world.pass_until(announcer.work())
    assert announcer.published == 0
    assert await hooks.store.announcements(limit=1) == []
    assert await hooks.store.list_events(EventFilter(account=OWN_ACCOUNT), after=None, limit=1) == []
    far = world.clock.now() + 10_000_000
    taken = await world.pass_until(
        hooks.store.take_notifications(channels=["email"], gather=DEAD, limit=10, now=far, until=far)
    )
    assert taken == []


async def test_an_endpoint_that_another_process_created_meanwhile_gets_it_too(
    world: World, receiver: Receiver
):
    """The store says that the fan-out is stale; the next step fans out again."""
    hooks = await world.start()
    behind = Catalogue(hooks.store)
    announcer = an_announcer(hooks, catalogue=behind)
    await listen(hooks, receiver)
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await world.pass_until(hooks.update_endpoint(endpoint.id, enabled=False))
    await world.pass_until(behind.open())
    await listen(hooks, receiver, path="/late")
    assert await world.pass_until(announcer.work()) == 0.0
    assert announcer.published == 0
    await world.pass_until(announcer.work())
    assert announcer.published == 1
    await world.until(lambda: heard(receiver) and heard(receiver, path="/late"))
    await until_all_is_told(world, hooks)
    assert [len(heard(receiver, path=path)) for path in ("/own", "/late")] == [1, 1]


async def test_many_are_published_in_full_batches_at_once(world: World, receiver: Receiver):
    hooks = await world.start()
    announcer = an_announcer(hooks)
    await listen(hooks, receiver, max_in_flight=50)
    await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=ONCE, circuit=None, max_in_flight=50)
    receiver.answers["/"] = [Answer(500)]
    drafts = [Draft("order.paid", b"%d" % n) for n in range(ANNOUNCE_CHUNK + 20)]
    await world.pass_until(hooks.accept(drafts))

    async def have_all_died():
        return (await hooks.store.counts())[State.DEAD] == len(drafts)

    await world.until(have_all_died)
    assert await world.pass_until(announcer.work()) == 0.0
    assert announcer.published == ANNOUNCE_CHUNK
    assert await world.pass_until(announcer.work()) is None
    assert announcer.published == len(drafts)
    await world.until(lambda: len(heard(receiver)) >= len(drafts))
    await until_all_is_told(world, hooks)
    assert len({each["data"]["id"] for each in heard(receiver)}) == len(heard(receiver)) == len(drafts)


async def test_the_lanes_of_what_was_published_are_woken(world: World, receiver: Receiver):
    """Otherwise it would wait for the next sweep."""
    hooks = await world.start()
    woken = []
    announcer = an_announcer(hooks, wake=woken.append)
    listener = await listen(hooks, receiver)
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await world.pass_until(hooks.update_endpoint(endpoint.id, enabled=False))
    await world.pass_until(announcer.work())
    assert woken == [EndpointId(read("endpoint", listener.id))]


async def test_an_endpoint_that_appears_while_announcements_are_read_gets_all_of_them(
    world: World, receiver: Receiver
):
    """Nobody wanted the death of `other` when its turn began."""
    hooks = await world.start()
    show = OwnEvents(hooks.store, hooks.reports, hooks.clock).payloads
    listeners = []

    async def show_and_listen(announcements):
        if not listeners:
            listeners.append(await listen(hooks, receiver))
        return await show(announcements)

    announcer = an_announcer(hooks, show=show_and_listen)
    await world.pass_until(notify(hooks, "acme", email="ops@acme.example"))
    receiver.answers["/"] = [Answer(500)]
    for account in ("acme", "other"):
        await hooks.create_endpoint(url=receiver.url(), events=["*"], account=account, retry=ONCE)
        event = await hooks.publish("order.paid", {}, account=account)
        await world.until_state(hooks, event.id, State.DEAD)
    assert await world.pass_until(announcer.work()) == 0.0, "it is stale"
    await world.pass_until(announcer.work())
    await world.until(lambda: len(heard(receiver)) == 2)
    assert sorted(each["account"] for each in heard(receiver)) == ["acme", "other"]
