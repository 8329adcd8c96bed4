"""Study: what is lost when PostgreSQL fails over to its standby."""

import time

from tests.chaos.database import Database
from tests.chaos.process import wait_for
from tests.chaos.row import POSTGRES
from tests.chaos.scene import TAKEOVER_S
from tests.chaos.stage import Publishing, Stage
from tests.chaos.standby import Standby
from tests.chaos.study import Study

LANES = 12
PER_S = 200.0
LATENCY_S = 0.1
RECOVERY_S = 10.0


def fail_over(stage: Stage) -> None:
    """F03: the connection to the standby breaks, the primary hangs, the standby is promoted, the old primary dies."""
    primary = stage.server
    assert primary is not None
    name = stage.url.rpartition("/")[2]
    proxy = stage.proxied()
    catcher = stage.catcher()
    catcher.answer(latency=LATENCY_S)
    stage.start(workers=2)
    types = [f"over.t{n}" for n in range(LANES)]
    for n, each in enumerate(types):
        stage.endpoint(catcher.url(f"/{n}"), each)
    standby = Standby(primary)
    try:
        standby.follow(waited_for=not stage.bug)
        load = Publishing(stage, types, per_second=PER_S, threads=4)
        wait_for(lambda: len(load.sent_at) > PER_S, "the load", 60)
        stage.rest(0.0, 1.0)
        standby.line.cut(resets=True)
        cut = time.time()
        stage.rest(0.1, 0.6)
        standby.freeze_primary()
        standby.promote()
        proxy.aim(standby.port)
        aimed = time.time()
        primary.kill()
        stage.database = Database(standby.url(name))
        wait_for(lambda: max(load.sent_at.values()) > aimed, "a publish that is accepted again", 60)
        again = time.time()
        seen = len(load.sent_at)
        wait_for(lambda: len(load.sent_at) > seen + PER_S, "some more load", 60)
        sent = load.stop()
        stage.drained(60)
        _judge(stage, sent, cut=cut, aimed=aimed)
        stage.at_most("accepted_again_s", again - aimed, RECOVERY_S, is_time=True)
        stage.at_most("errors_5xx", sum(n for status, n in load.statuses.items() if status in (500, 502)), 0)
        stage.figures["slowest_publish_s"] = load.slowest
    finally:
        standby.destroy()


def _judge(stage: Stage, sent: dict[str, float], *, cut: float, aimed: float) -> None:
    arrivals = stage.arrivals()
    arrived = {each.id for each in arrivals}
    kept = stage.events()
    stage.at_most("lost", len(sent.keys() - (arrived & kept)), 0)
    # What was under way while nothing could be settled; a worker that sees the database may begin for a second more.
    under_way = {each.id for each in arrivals if cut - 1.0 < each.began < aimed + TAKEOVER_S + 1.0}
    stage.at_most("duplicates", len(arrivals) - len(arrived), len(under_way))
    stage.figures["bound"] = len(under_way)
    stage.figures["acked"] = len(sent)
    first = min((each.began for each in arrivals if each.began > aimed), default=aimed + 99)
    stage.at_most("first_delivery_s", first - aimed, RECOVERY_S, is_time=True)


ROWS = {
    "F03": Study(
        "PostgreSQL fails over to a standby that commits wait for",
        POSTGRES,
        0,
        "standby-left-behind",
        "lost",
        fail_over,
    )
}
