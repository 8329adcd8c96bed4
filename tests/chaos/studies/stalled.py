"""Study: a worker keeps its lanes while its event loop stands still."""

from tests.chaos.instruments import STALL_S
from tests.chaos.process import wait_for
from tests.chaos.row import POSTGRES
from tests.chaos.stage import Publishing, Stage
from tests.chaos.study import Study

LANES = 24
IN_FLIGHT = 100
LATENCY_S = 0.4
PULSE_S = 0.5  # two reads of the database: by then a worker that is taken for dead is buried


def stall(stage: Stage) -> None:
    """F34: two seconds of work in the loop, under load, with the takeover time at its default."""
    # The planted bug is an operator's: a takeover time that is shorter than a stall.
    heartbeat_s, takeover_s = (0.2, 1.0) if stage.bug else (2.0, 10.0)
    stage.configure(heartbeat_s=heartbeat_s, takeover_s=takeover_s)
    catcher = stage.catcher()
    catcher.answer(latency=LATENCY_S)
    stage.start(workers=3)
    types = [f"stall.t{n}" for n in range(LANES)]
    for n, each in enumerate(types):
        stage.endpoint(catcher.url(f"/{n}"), each, max_in_flight=20)
    load = Publishing(stage, types, per_second=IN_FLIGHT / LATENCY_S, batch=10)
    wait_for(lambda: len(catcher.arrivals()) > 3 * IN_FLIGHT, "the load")
    victim = stage.busy()
    victim.arm("send.before=stall@5")
    victim.wait_until(r"(chaos\.stalled)")
    # Until the others would have noticed, had it been taken for dead.
    seen = len(load.sent_at)
    wait_for(
        lambda: len(load.sent_at) > seen + (takeover_s - STALL_S + PULSE_S) * IN_FLIGHT / LATENCY_S,
        "some more load",
    )
    sent = load.stop()
    stage.drained(30)
    arrivals = catcher.arrivals()
    arrived = {each.id for each in arrivals}
    stage.at_most("burials", sum("worker.buried" in each.log for each in stage.workers), 0)
    stage.at_most("lost", len(sent.keys() - arrived), 0)
    stage.at_most("duplicates", len(arrivals) - len(arrived), 0)
    stage.figures["events"] = len(sent)


ROWS = {
    "F34": Study(
        "an event loop stands still for 2 s", POSTGRES, 5, "takeover-below-a-stall", "burials", stall
    )
}
