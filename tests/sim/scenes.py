"""Scenes: simulated worlds that make rare situations likely.

A scene runs the same product with the same checks, and a seed still decides who does what when; only the situation
that it is named after is made likely. It finds bugs that a few hundred ordinary worlds do not show.
"""

import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from hookline.app import Hookline
from hookline.errors import HooklineError
from hookline.model import EndpointId, EventId
from hookline.pipeline.intake.drafts import Draft
from tests.sim.process import Died

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.world import World


class Scene(NamedTuple):
    """How a scene differs from an ordinary world."""

    prepare: Callable[["World"], None]  # before the first process starts
    play: Callable[["World"], Coroutine[Any, Any, None]] | None = (
        None  # beside clients, operators and nemesis
    )


def _several(world: "World") -> None:
    world.workers = world.rng.choice((2, 3))
    world.has_api = False


def _lanes_that_move(world: "World") -> None:
    """Lanes with a limit go from one worker to the next sooner than a bucket fills."""
    _several(world)
    world.faults.only("crash", "drain", every=2.0)
    world.clients.every = 0.1
    world.operators.always = {
        "events": ["*"],
        "rate_limit": {"per_second": 1, "burst": world.rng.choice((4, 8))},
        "ordering": "parallel",
        "circuit": None,
    }
    world.operators.mood = "ok"


def _throttled(world: "World") -> None:
    """A Retry-After that is shorter than the policy's wait does not shorten it."""
    _several(world)
    world.faults.only()
    world.operators.always = {
        "events": ["*"],
        "retry": {"schedule": [0, 2, 3, 5], "jitter": world.rng.choice(("none", "equal"))},
        "circuit": None,
    }
    world.operators.mood = "throttling"


def _late_settlements(world: "World") -> None:
    """A worker is stopped for longer than the takeover time while its settlements travel to the store."""
    _several(world)
    world.faults.only()
    world.faults.lame = {"settle": 10.0}

    def stop(process: "Process") -> None:
        others = [each for each in world.processes if each.is_up and not each.owner.is_held]
        if process in others and len(others) > 1:
            world.hold(process)
            world.loop.call_later(
                world.rng.uniform(4.0, 9.0), world.let_go, process, context=world.owner.context
            )

    world.faults.on_lame = stop
    world.clients.every = 0.1
    world.operators.always = {"events": ["*"], "circuit": None, "max_in_flight": 5}
    world.operators.mood = "ok"


def _slow_loads(world: "World") -> None:
    """Loads are so slow that the rows they read are sent and settled before they return."""
    world.workers, world.has_api = 1, False
    world.faults.only()
    world.faults.lame = {"load": 0.5}
    world.clients.every = 0.1
    world.operators.always = {"events": ["*"], "ordering": "parallel", "circuit": None, "max_in_flight": 5}
    world.operators.mood = "ok"


def _death_before_the_wake(world: "World") -> None:
    """A process that only publishes dies between commit and wake, and is not replaced."""
    _several(world)
    world.has_api = True
    world.faults.only()
    world.replaces_the_dead = False
    world.clients.is_over = True
    world.operators.always = {"events": ["*"], "ordering": "parallel", "circuit": None}
    world.operators.mood = "ok"


async def _publish_and_die(world: "World") -> None:
    api: Process = next(process for process in world.processes if not process.delivers)
    await world.until(lambda: api.is_up, within=30.0)
    world.faults.deadly = frozenset({(api, "wake")})
    for n, account in enumerate(world.operators.accounts):
        with suppress(HooklineError, Died):
            draft = Draft("a.b", json.dumps({"n": n}).encode(), account)
            await api.ask(methodcaller("accept", [draft]))


def _poison(world: "World") -> None:
    """An event kills every process that sends it, while endpoints fail and change, and workers come and go."""
    _several(world)
    world.faults.only("crash", "drain", "config", every=8.0)
    world.clients.every = 0.1
    world.receivers.is_poisoned = True


def _taken_for_dead(world: "World") -> None:
    """A buried worker takes its own lanes again while its earlier settlements still travel to the store."""
    world.workers, world.has_api = 1, True
    world.faults.only("partition", "slow_store", every=3.0)
    world.faults.lame = {"settle": 6.0, "mark": 8.0}
    world.clients.every = 0.05
    world.operators.always = {"events": ["*"], "circuit": None, "max_in_flight": 20}
    world.operators.mood = "ok"


def _database_restarts(world: "World") -> None:
    """The database restarts again and again: all locks are free although all workers live."""
    _several(world)
    world.faults.only()
    world.clients.every = 0.1
    world.operators.always = {"events": ["*"], "circuit": None}
    world.operators.mood = "ok"


async def _restart_again_and_again(world: "World") -> None:
    while not world.faults.is_over:
        await world.moment(world.rng.uniform(2.0, 5.0))
        if not world.faults.is_over:
            world.faults.happened("restart")
            world.database.restart(away=world.rng.choice((0.05, 0.5, 1.5, 3.0)))


def _asks_for_ever(world: "World") -> None:
    """Receivers fail and answer probes with an endless Retry-After; operators retry and close circuits."""
    _several(world)
    world.faults.only("drain", every=8.0)
    world.operators.always = {
        "events": ["*"],
        "retry": {"schedule": [0], "jitter": "none"},
        "circuit": {
            "consecutive_failures": 2,
            "failure_rate": 1.0,
            "window_s": 10,
            "min_attempts": 100,
            "cooldown_s": 1,
            "max_cooldown_s": 4,
        },
    }
    world.operators.mood = "insistent"
    world.longest_drain = 400.0  # a lane rests for five minutes


async def _close_circuits(world: "World") -> None:
    """An operator closes the circuits again and again."""
    while not world.faults.is_over:
        await world.moment(1.0)
        for id in list(world.database.shadow.rows["endpoints"]):
            up = [process for process in world.processes if process.is_up]
            if up:
                with suppress(HooklineError, Died):
                    await up[0].ask(_closing(EndpointId(id)))


def _closing(id: EndpointId) -> Callable[[Hookline], Coroutine[Any, Any, None]]:
    return lambda hooks: hooks.endpoints.reset_circuit(id)


def _refused_notes(world: "World") -> None:
    """The database refuses all writes to one endpoint's lane; all others continue."""
    world.workers, world.has_api = 1, False
    world.faults.only()
    world.expected_errors = frozenset({"lane.note_refused"})
    world.operators.always = {"events": ["*"], "ordering": "parallel", "circuit": None}
    world.operators.mood = "throttling"


async def _refuse(world: "World") -> None:
    lanes = world.database.shadow.rows["lanes"]
    await world.until(lambda: lanes, within=30.0)
    world.refused.add(min(lanes))


def _shared_out(world: "World") -> None:
    """A worker owns all lanes, each with more work than its cap, and gives some to a worker that starts later."""
    world.workers, world.has_api = 1, False
    world.settings = msgspec.structs.replace(world.settings, max_in_flight=512)
    world.faults.only(*world.rng.choice(((), ("lost_request", "lost_answer"))))
    world.clients.is_over = True
    world.operators.accounts = ["acc0"]
    world.operators.least = 20
    world.operators.always = {
        "events": ["*"],
        "ordering": "parallel",
        "circuit": None,
        "rate_limit": None,
        "max_in_flight": 4,
        "timeout_ms": 3_000,
    }
    world.operators.mood = "stalling"


def _shed(world: "World") -> None:
    """As before, with so few slots that most lanes wait for one."""
    _shared_out(world)
    world.settings = msgspec.structs.replace(world.settings, max_in_flight=4)
    world.operators.least = 8


async def _come_later(world: "World") -> None:
    first = world.processes[0]

    async def publish(events: int) -> None:
        drafts = [Draft("a.b", json.dumps({"n": n}).encode(), "acc0") for n in range(events)]
        with suppress(HooklineError, Died):
            await first.ask(methodcaller("accept", drafts))

    await publish(4)
    second = world.launch(delivers=True)
    await world.until(lambda: second.is_up, within=5.0)
    await world.moment(world.rng.uniform(0.0, 1.0))
    await publish(44)


def _replayed_in_doubt(world: "World") -> None:
    """Deliveries of free lanes are replayed and the answer is lost; the replay is not repeated, or finds nothing."""
    world.workers, world.has_api = 1, True
    world.faults.only()
    world.clients.is_over = True
    world.operators.accounts = ["acc0"]
    world.operators.always = {"events": ["*"], "ordering": "parallel", "circuit": None, "rate_limit": None}
    world.operators.mood = "ok"


async def _replay_again(world: "World") -> None:
    """The answer to the replay is lost."""
    api, events = await _with_free_lanes(world)
    for id in events:
        world.faults.silent.add("redrive_event")
        for _ in range(world.rng.choice((1, 2))):
            with suppress(HooklineError, Died):
                await api.ask(_replaying(EventId(id)))


async def _replay_unread(world: "World") -> None:
    """The replay is answered, but what it changed cannot be read back."""
    api, events = await _with_free_lanes(world)
    world.faults.deaf.add((api, "pulse"))
    for id in events:
        with suppress(HooklineError, Died):
            await api.ask(_replaying(EventId(id)))
    world.faults.deaf.clear()


async def _with_free_lanes(world: "World") -> tuple["Process", list[bytes]]:
    """A process that only publishes, and events that were delivered by a worker that has left."""
    api: Process = next(process for process in world.processes if not process.delivers)
    first: Process = next(process for process in world.processes if process.delivers)
    await world.until(lambda: api.is_up and first.is_up, within=30.0)
    with suppress(HooklineError, Died):
        await api.ask(methodcaller("accept", [Draft("a.b", b"1", "acc0")]))
    rows = world.database.shadow.rows
    await world.until(
        lambda: all(row["state"] != "pending" for row in rows["deliveries"].values()), within=10.0
    )
    world.drain(first)
    second = world.launch(delivers=True)
    await world.until(lambda: second.is_up and first not in world.processes, within=10.0)
    return api, list(rows["events"])


def _replaying(id: EventId) -> Callable[[Hookline], Coroutine[Any, Any, Any]]:
    return lambda hooks: hooks.deliveries.replay_event(id)


def _short_of_files(world: "World") -> None:
    """Half of all new connections find no descriptor; the receivers are well."""
    _several(world)
    world.faults.only()
    world.faults.short = 0.5
    world.clients.every = 0.1
    world.operators.always = {"events": ["*"]}
    world.operators.mood = "ok"


def _large_payloads(world: "World") -> None:
    """Every event is large, memory is for a few of them, and most endpoints hang."""
    world.workers, world.has_api = 1, False
    world.settings = msgspec.structs.replace(world.settings, max_in_flight=64)
    world.memory_bytes = world.rng.choice((160_000, 240_000))
    world.faults.only()
    world.clients.is_over = True
    world.operators.accounts = ["acc0"]
    world.operators.least = 12
    world.operators.always = {
        "events": ["*"],
        "ordering": "parallel",
        "circuit": None,
        "rate_limit": None,
        "max_in_flight": 8,
    }
    world.operators.mood = "stalling"


async def _publish_large(world: "World") -> None:
    worker = world.processes[0]
    await world.until(lambda: worker.is_up, within=30.0)
    filler = "x" * 18_000
    for n in range(12):
        with suppress(HooklineError, Died):
            body = json.dumps({"n": n, "filler": filler}).encode()
            await worker.ask(methodcaller("accept", [Draft("a.b", body, "acc0")]))
        await world.moment(world.rng.uniform(0.0, 0.3))


def _slow_notes(world: "World") -> None:
    """What is to be written down of a lane overtakes what was to be written before; circuits open and close."""
    world.workers, world.has_api = 1, False
    world.faults.only()
    world.faults.lame = {"note": 1.5, "settle": 1.5}
    world.clients.every = 0.1
    world.operators.always = {
        "events": ["*"],
        "ordering": "parallel",
        "rate_limit": None,
        "max_in_flight": 5,
        "retry": {"schedule": [0, 0.3, 0.5, 1, 1, 1], "jitter": "none"},
        "circuit": {
            "consecutive_failures": 2,
            "failure_rate": 1.0,
            "window_s": 10,
            "min_attempts": 100,
            "cooldown_s": 1,
            "max_cooldown_s": 1,
        },
    }
    world.operators.mood = "flap"


def _slow_takes(world: "World") -> None:
    """Lanes are free when their first event is published, and a reconcile finds them before the take is answered."""
    world.workers, world.has_api = 1, False
    world.faults.only()
    world.faults.lame = {"take_these": 6.0}
    world.operators.accounts = [f"acc{n}" for n in range(8)]  # each has its first event at another time
    world.operators.least = 12
    world.operators.always = {"events": ["*"], "ordering": "parallel", "circuit": None, "rate_limit": None}
    world.operators.mood = "ok"


def _very_slow_takes(world: "World") -> None:
    """Before a take is carried out, another worker takes the lane, sends what waits there, and leaves."""
    _several(world)
    world.faults.only("drain", every=1.5)
    world.faults.lame = {"take_these": 5.0}
    world.clients.every = 0.3
    world.operators.always = {"events": ["*"], "ordering": "parallel", "circuit": None, "rate_limit": None}
    world.operators.mood = "ok"


def _clocks_that_tick(world: "World") -> None:
    """Time passes between two looks at a clock; circuits of endpoints with a rate limit and a backlog open and close."""
    world.clocks_tick = True
    world.workers, world.has_api = world.rng.choice((1, 2)), False
    world.faults.only()
    world.clients.every = 0.05
    world.operators.accounts = ["acc0"]
    world.operators.always = {
        "events": ["*"],
        "ordering": "parallel",
        "max_in_flight": 1,
        "rate_limit": {"per_second": 20, "burst": 5},
        "retry": {"schedule": [0, 0.3, 0.5, 1, 1, 1], "jitter": "none"},
        "circuit": {
            "consecutive_failures": 2,
            "failure_rate": 1.0,
            "window_s": 10,
            "min_attempts": 100,
            "cooldown_s": 1,
            "max_cooldown_s": 2,
        },
    }
    world.operators.mood = "flap"


def _slow_outbox(world: "World") -> None:
    """Transactions overlap while LOOKs and DROPs are slow, movers die between accept and DROP, and operators prune."""
    _several(world)
    world.faults.only("crash", every=6.0)
    world.faults.lame = {"look_at_outbox": 1.0, "drop_from_outbox": 15.0}
    world.clients.is_over = True
    world.applications.publish = True
    world.applications.every = 0.15
    world.operators.accounts = ["acc0"]
    world.operators.prunes = 0.7
    world.operators.always = {"events": ["*"], "rate_limit": None, "circuit": None}
    world.operators.mood = "ok"


SCENES = {
    "lanes that move": Scene(_lanes_that_move),
    "throttled": Scene(_throttled),
    "late settlements": Scene(_late_settlements),
    "slow loads": Scene(_slow_loads),
    "death before the wake": Scene(_death_before_the_wake, _publish_and_die),
    "poison": Scene(_poison),
    "taken for dead": Scene(_taken_for_dead),
    "database restarts": Scene(_database_restarts, _restart_again_and_again),
    "asks for ever": Scene(_asks_for_ever),
    "believed to be back": Scene(_asks_for_ever, _close_circuits),
    "refused notes": Scene(_refused_notes, _refuse),
    "shared out": Scene(_shared_out, _come_later),
    "shed": Scene(_shed, _come_later),
    "replayed in doubt": Scene(_replayed_in_doubt, _replay_again),
    "replayed and not read back": Scene(_replayed_in_doubt, _replay_unread),
    "short of files": Scene(_short_of_files),
    "large payloads": Scene(_large_payloads, _publish_large),
    "slow notes": Scene(_slow_notes),
    "slow takes": Scene(_slow_takes),
    "very slow takes": Scene(_very_slow_takes),
    "clocks that tick": Scene(_clocks_that_tick),
    "slow outbox": Scene(_slow_outbox),
}
