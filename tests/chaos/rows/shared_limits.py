"""Rows: an endpoint's limits hold exactly while four workers share its work and die."""

import time

from tests.chaos.checker import Limits, Receipt
from tests.chaos.process import wait_for
from tests.chaos.row import POSTGRES, REDELIVERY_S, Row, pause, replace
from tests.chaos.scene import ENDPOINT, TAKEOVER_S, Scene
from tests.chaos.system import System
from tests.chaos.windows import gap_after, most_at_once, most_within

PATH = "/0"
FOUR = Scene(workers=4, endpoints=1, slowest_s=0.05)
REDELIVERED = Limits(redelivery_s=REDELIVERY_S)

RATE, BURST = 50, 10
RATED = 1_000  # events of one trial
SHARE = 0.95  # of what the limit allows must be sent

CAP = 5
CAPPED = 40
ANSWER_S = 1.0

DOWN = 1_000
FAILURES, COOLDOWN_S, DEADLINE_S, GRACE_S = 5, 2.0, 3.0, 2.0
HELD_S = 4.5  # the receiver has a dead prober's request open for longer than the takeover takes
CLOCKS_S = 0.25  # the receiver may read a request this late,
BUSY = (
    3.0  # and so many times as late on a busy machine; no later, or a probe that is sent at once would pass
)


def limit_the_rate(system: System) -> list[str]:
    """F29: the owner is killed on the way; the next one has no tokens but those that came in meanwhile."""
    system.order(path=PATH, wait=0.0)
    began = time.time()
    system.publish(RATED)
    pause(system, 4.0, 9.0)
    victim = wait_for(lambda: system.owner(PATH), "an owner")
    victim.kill()
    system.note("kill", victim)
    killed = time.time()
    replace(system, victim)
    system.published()
    system.is_drained(RATED / RATE + 30)
    receipts = [each for each in system.receipts() if each.began > began]
    known = system.database.starts()
    # The database has the start of the request that was settled: of two for one attempt, the last.
    settled = {(each.id, each.attempt): each for each in sorted(receipts, key=lambda each: each.began)}
    lags = [each.began - known[key] for key, each in settled.items() if key in known]
    # A request that was lost with its worker is in no table: it began when it arrived, or a little before.
    lost = [each for each in receipts if settled[each.id, each.attempt] is not each]
    lost += [each for key, each in settled.items() if key not in known]
    starts = [known[key] for key in settled if key in known] + [
        each.began - min(lags, default=0.0) for each in lost
    ]
    system.worst("most_in_1_s", most_within(starts, 1.0))
    system.worst("most_in_10_s", most_within(starts, 10.0))
    wrong = [
        f"rate: {most} began within {seconds:g} s, allowed {RATE * seconds + BURST:g}"
        for seconds in (1.0, 10.0)
        if (most := most_within(starts, seconds)) > RATE * seconds + BURST
    ]
    # The receiver sees the same, apart from how unevenly it reads.
    uneven = max(lags, default=0.0) - min(lags, default=0.0)
    most = most_within((each.began for each in receipts), 1.0)
    if most > RATE * (1.0 + uneven) + BURST:
        wrong.append(f"rate: {most} arrived within 1 s, allowed {RATE * (1 + uneven) + BURST:.0f}")
    outage = gap_after(sorted(starts), killed)
    allowed = BURST + RATE * (max(starts) - min(starts) - outage)
    share = len(starts) / allowed
    system.figures["share_of_the_rate"] = min(share, system.figures.get("share_of_the_rate", 1.0))
    if share < 1 - (1 - SHARE) * system.leeway:
        wrong.append(f"only {share:.0%} of what the rate allows was sent")
    return wrong


def limit_what_is_in_flight(system: System) -> list[str]:
    """F30: the owner is killed with as many requests open as it may have."""
    system.order(path=PATH, wait=ANSWER_S)
    began = time.time()
    system.publish(CAPPED)
    pause(system, 3.5, 5.0)
    victim = wait_for(lambda: system.owner(PATH), "an owner")
    victim.kill()
    system.note("kill", victim)
    killed = time.time()
    replace(system, victim)
    system.published()
    system.is_drained(CAPPED / CAP * ANSWER_S + 30)
    receipts = [each for each in system.receipts() if each.began > began]
    orphans = [each for each in receipts if each.by == victim.name and each.ended > killed]
    most, beside = most_at_once(receipts), most_at_once(each for each in receipts if each not in orphans)
    system.worst("most_at_once", most)
    system.worst("orphans", len(orphans))
    wrong = [f"concurrency {beside}, allowed {CAP}"] if beside > CAP else []
    if most > CAP + len(orphans):
        wrong.append(f"concurrency {most}, allowed {CAP} and {len(orphans)} of a dead worker")
    return wrong if most >= CAP else [*wrong, f"never more than {most} at once, though {CAP} may be"]


def kill_the_prober(system: System) -> list[str]:
    """F31: one probe fails, the next one's worker is killed during it, the third succeeds."""
    system.order(path=PATH, status=500, wait=0.02)
    began = time.time()
    system.publish(DOWN)
    wait_for(lambda: len(_failures(system, began)) > FAILURES, "the first probe's failure")
    system.order(path=PATH, status=500, wait=HELD_S)
    [probe] = wait_for(lambda: system.order(ask="open"), "the second probe")
    [prober] = [each for each in system.workers if each.name == probe["by"]]
    prober.kill()
    killed = time.time()
    system.note("kill", prober)
    system.order(path=PATH, wait=0.0)
    replace(system, prober)
    system.published()
    system.is_drained()
    known = system.database.starts()
    # A busy receiver gets round to a request late, and answers one whose sender is dead: neither is the sender's doing.
    receipts = [
        each._replace(
            began=min(each.began, known.get((each.id, each.attempt), each.began)),
            ended=min(each.ended, killed) if each.by == prober.name else each.ended,
        )
        for each in system.receipts()
        if each.began > began
    ]
    receipts.sort(key=lambda each: each.began)
    return _probes_in_order(system, receipts, prober.name)


def _failures(system: System, began: float) -> list[Receipt]:
    """Failures since then, without those that were under way when the circuit tripped."""
    failed = [each for each in system.receipts() if each.began > began and not each.is_accepted]
    if len(failed) < FAILURES:
        return failed
    tripped = sorted(each.ended for each in failed)[FAILURES - 1]
    return failed[:FAILURES] + [each for each in failed if each.began > tripped + COOLDOWN_S / 2]


def _probes_in_order(system: System, receipts: list[Receipt], dead: str) -> list[str]:
    """Was there one probe in each cooldown, and nothing else until one succeeded?"""
    failed = [each for each in receipts if not each.is_accepted]
    tripped = sorted(each.ended for each in failed)[FAILURES - 1]
    last = next(n for n, each in enumerate(receipts) if each.is_accepted)
    probes = [each for each in receipts[: last + 1] if each.began > tripped + COOLDOWN_S / 2]
    wrong = []
    if len(probes) != 3:
        wrong.append(f"probes: {len(probes)} until one succeeded, expected 3")
    if (most := most_at_once(probes)) > 1:
        wrong.append(f"probes: {most} in flight at once")
    cooldown, since = COOLDOWN_S, tripped
    for probe in probes:
        waited = probe.began - since
        if waited < cooldown - CLOCKS_S * min(system.patience, BUSY):
            wrong.append(f"probes: one after {waited:.2f} s, allowed after {cooldown:g}")
        since = probe.ended
        cooldown *= 2
        if probe.by == dead and probe is not probes[0]:  # its end is unknown: its place is kept
            since, cooldown = probe.began, DEADLINE_S + GRACE_S
    if len(probes) == 3:
        freed = probes[2].began - probes[1].began
        system.worst("probe_after_death_s", freed)
        allowed = (DEADLINE_S + GRACE_S) * system.leeway + TAKEOVER_S
        if freed > allowed:
            wrong.append(f"the dead prober's place was free after {freed:.1f} s, allowed {allowed:g}")
    system.worst("stragglers", len(failed) - FAILURES - sum(not each.is_accepted for each in probes))
    return wrong


ROWS = {
    "F29": Row(
        "rate limit over four workers and a kill",
        POSTGRES,
        5,
        "take-what-is-taken",
        "rate",
        limit_the_rate,
        REDELIVERED,
        FOUR._replace(
            endpoint={**ENDPOINT, "rate_limit": {"per_second": RATE, "burst": BURST}, "max_in_flight": 100}
        ),
        everyday=True,
    ),
    "F30": Row(
        "in-flight cap over four workers and a kill",
        POSTGRES,
        5,
        "take-what-is-taken",
        "concurrency",
        limit_what_is_in_flight,
        REDELIVERED,
        FOUR._replace(endpoint={**ENDPOINT, "max_in_flight": CAP}),
        everyday=True,
    ),
    "F31": Row(
        "half-open circuit over four workers and a kill",
        POSTGRES,
        10,
        "probe-unwritten",
        "probes",
        kill_the_prober,
        Limits(),
        FOUR._replace(
            endpoint={
                **ENDPOINT,
                "timeout_ms": int(DEADLINE_S * 1_000),
                "circuit": {
                    "consecutive_failures": FAILURES,
                    "min_attempts": 10_000,
                    "cooldown_s": COOLDOWN_S,
                },
            }
        ),
        everyday=True,
    ),
}
