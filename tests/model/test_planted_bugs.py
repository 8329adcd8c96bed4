"""The model of the stores catches a store that is wrong.

Each bug is planted in the statements of one store and must make the two disagree with the reference. One that is
not caught means that the machine never gets to where it matters. A commit plants its share of them (tests/shares.py), any four in
a row plant all; HOOKLINE_MODEL_BUGS=all plants all at once. One that takes two sessions at the same time (B1, a burial
without FOR UPDATE) is planted in tests/contract/test_burial_waits.py.
"""

import os
import re
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from hookline.store.postgres import columns as postgres_columns
from hookline.store.postgres import sql as postgres
from hookline.store.sqlite import columns as sqlite_columns
from hookline.store.sqlite import sql as sqlite
from tests.model.driver import Disagreement
from tests.model.machine import FOREVER, N, has_owner, pick, when
from tests.model.machine_operators import OperatedMachine
from tests.shares import SHARES, dealt, share_of_the_commit

EXAMPLES = 70  # of a seed: most bugs are found within 12
SEEDS = 20


class Bug(NamedTuple):
    """What is wrong in one statement."""

    store: str
    statement: str
    right: str  # a pattern
    wrong: str = ""

    def __str__(self) -> str:
        return f"{self.store}-{self.statement.lower()}"


BUGS = {
    "the fence does not look at the burial": Bug("postgres", "SETTLE", "AND buried_at IS NULL"),
    "a settle does not compare the attempts": Bug("postgres", "SETTLE", r"AND d\.attempts = s\.number - 1"),
    "a wake does nothing": Bug("postgres", "WAKE", r"k\.owner IS NULL AND", "false AND"),
    "a redrive does not begin a new life": Bug("sqlite", "REDRIVE", r"replays = replays \+ 1", "replays = replays"),
    "a take keeps the epoch": Bug("postgres", "TAKE", r"l\.epoch \+ 1", "l.epoch"),
    "freed lanes keep their epoch": Bug("sqlite", "FREE", r"epoch = epoch \+ 1", "epoch = epoch"),
    "a load brings what is known": Bug("postgres", "LOAD", "NOT IN", "IS NOT NULL OR d.id IN"),
    "deliveries of a deleted endpoint wait for ever": Bug("postgres", "CANCEL_DELETED", r"WHERE l\.deleted", "WHERE false"),
    "an accept does not see that it is stale": Bug("sqlite", "ACCEPT_IS_STALE", "catalogue > :catalogue", "0"),
    "a redrive forgets the death": Bug("postgres", "REDRIVE", r"THEN d\.reason", "THEN NULL"),
    "a wake forgets the timed queue": Bug("sqlite", "WAKE", "'timed'", "'later'"),
    "a buried worker takes": Bug("sqlite", "TAKE_THESE", "AND buried_at IS NULL"),
    "a take counts copies that were sent": Bug("postgres", "TAKE_THESE", r"d\.state = 'pending' AND d\.attempts = 0 AND", ""),
    "freed lanes are not suspect": Bug("postgres", "FREE", "suspect = true", "suspect = false"),
    "lanes are freed from the living": Bug("sqlite", "FREE", "AND buried_at IS NOT NULL"),
    "an owner of lanes is retired": Bug("sqlite", "RETIRE", "AND NOT EXISTS.*"),
    "an update wins over another": Bug("sqlite", "UPDATE_ENDPOINT", "AND updated_at = :was"),
    "what was delivered is discarded": Bug("sqlite", "DISCARD", "= 'dead'", "<> 'pending'"),
    "a sweep leaves lanes out": Bug("sqlite", "SWEEP", r"endpoint_id > :after AND", "endpoint_id > :after AND hold_until > :now AND"),
    "the fence does not look at the epoch": Bug(
        "sqlite", "SETTLE_DELIVERIES", r"l\.epoch = u\.epoch", "l.epoch >= u.epoch"
    ),
    "a settle does not compare the replays": Bug("sqlite", "SETTLE_DELIVERIES", r"AND \S+replays = u\.replays"),
    "a repeated accept writes its deliveries again": Bug(
        "postgres", "ACCEPT", r"WHERE p\.id IN \(SELECT id FROM stored\)", "WHERE d.id NOT IN (SELECT x.id FROM deliveries x WHERE x.state = 'pending')"
    ),
    "an idempotency key is not looked at": Bug("sqlite", "READ_PRIORS", r"k\.key = u\.key", "k.key = u.key || 'x'"),
    "a take does not look at the pause": Bug("sqlite", "TAKE", "AND paused = 0"),
    "a worker that lost the lane releases it": Bug("postgres", "RELEASE", r"l\.epoch = r\.epoch", "l.epoch >= r.epoch"),
    "a burial does not compare the beat": Bug("postgres", "BURY", r"AND w\.beat = \$2", "AND $2 IS NOT NULL"),
    "a wake does not know of resets": Bug("postgres", "WAKE", "c.kind = 'reset'", "c.kind = 'never'"),
    "a lane sleeps on when its head is moved": Bug("sqlite", "WAKE_WITHOUT_HEAD", "head = :head", "0"),
}  # fmt: skip


def free_heads(reference):
    """The heads of strict lanes that nobody owns."""
    return [lane.head for lane in reference.lanes.values() if lane.head is not None and lane.owner is None]


class MovedHeads(OperatedMachine):
    """Operators who move the heads of free lanes, which they otherwise hardly ever meet."""

    @when(free_heads)
    @rule(verb=st.sampled_from(["retry", "cancel"]), n=N)
    def move_head(self, verb, n):
        self.move_one(verb, pick(free_heads(self.reference), n), wakes=False)


class ResetsOfOwned(OperatedMachine):
    """Operators who reset the circuit of a lane just before its owner lets it go."""

    @when(has_owner)
    @rule(n=N)
    def reset_and_release(self, n):
        lane = self.owned_lane(n).endpoint_id
        done = self.reference.reset_circuit(lane, now=self.now)
        self.driver.do("reset_circuit", lane, now=self.now, expected=done)
        self.release(n=n, lost=0, until=FOREVER, wakes=True)


# Those that the usual machine hardly ever shows, and one that is about their situation.
MACHINE_OF = {
    "a lane sleeps on when its head is moved": MovedHeads,
    "a wake does not know of resets": ResetsOfOwned,
}
# The seed by which each was last noticed, if not by 0, with the stores and the model as they then were: a place to begin.
SEEN_AT = {"a lane sleeps on when its head is moved": 1}


def plant(monkeypatch, bug):
    modules = {"sqlite": (sqlite, sqlite_columns), "postgres": (postgres, postgres_columns)}[bug.store]
    module = next(each for each in modules if hasattr(each, bug.statement))
    right = getattr(module, bug.statement)
    wrong = re.sub(bug.right, lambda _: bug.wrong, right)
    assert wrong != right, "the statement has changed: plant the bug anew"
    monkeypatch.setattr(module, bug.statement, wrong)


def chosen(share):
    return list(BUGS) if os.environ.get("HOOKLINE_MODEL_BUGS") == "all" else dealt(list(BUGS), share)


def test_four_commits_in_a_row_plant_every_bug(monkeypatch):
    monkeypatch.delenv("HOOKLINE_MODEL_BUGS", raising=False)
    assert sorted(name for share in range(SHARES) for name in chosen(share)) == sorted(BUGS)


PLANTED = chosen(share_of_the_commit())


@pytest.mark.parametrize("name", PLANTED)
def test_it_is_noticed_when(new_driver, monkeypatch, name, capsys):
    bug = BUGS[name]
    plant(monkeypatch, bug)
    seeds = [SEEN_AT.get(name, 0), *range(SEEDS)]
    tried, found = first_disagreement(MACHINE_OF.get(name, OperatedMachine), new_driver, seeds)
    with capsys.disabled():
        print(f"\nplanted: {name}: {'not noticed' if found is None else f'noticed by seed {seeds[tried]}'}")
    assert str(found).startswith(f"{bug.store}: ")


def first_disagreement(kind, new_driver, seeds):
    for tried, number in enumerate(seeds):
        try:
            try_examples(kind, new_driver, number)
        except Disagreement as found:
            return tried, found
    return len(seeds), None


def try_examples(kind, new_driver, number):
    machine = type("Machine", (kind,), {"new_driver": staticmethod(new_driver)})
    run_state_machine_as_test(
        seed(number)(machine),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=50,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
        ),
    )
