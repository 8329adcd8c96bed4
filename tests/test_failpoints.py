"""A failpoint does nothing until a test plants something, and then exactly that."""

import inspect
import os
import re
import signal
import subprocess
import sys
import timeit
from pathlib import Path

import pytest

from hookline.failpoints import NAMES, NETWORK, STEPS, VERBS, Planted, failpoint, plant
from hookline.pipeline.sending.net import Net
from hookline.store.contract import Store
from hookline.store.failpoints import (
    READS,
    writing_verbs,
)
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.store import SqliteStore

SOURCE = Path(__file__).parent.parent / "src"


@pytest.fixture(autouse=True)
def _nothing_planted():
    plant("")
    yield
    plant("")


def hit(*names: str) -> list[str]:
    """The names at which a planted error was raised."""
    raised = []
    for name in names:
        try:
            failpoint(name)
        except Planted:
            raised.append(name)
    return raised


def run(planted: str, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", f"from hookline.failpoints import failpoint\n{code}"],
        env={**os.environ, "HOOKLINE_FAILPOINTS": planted},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_nothing_happens_at_any_failpoint_by_default():
    assert hit(*NAMES) == []


def test_an_error_is_raised_at_the_planted_name_only():
    plant("settle.before=error")
    assert hit("settle.after", "settle.before", "take.after", "settle.before") == [
        "settle.before",
        "settle.before",
    ]


def test_with_a_number_only_that_hit_fails():
    plant("settle.before=error@3,take.after=error@1")
    assert hit(*["settle.before"] * 5) == ["settle.before"]
    assert hit("take.after", "take.after") == ["take.after"]


def test_planting_again_forgets_what_was_planted_and_counted():
    plant("beat.before=error@2")
    assert hit("beat.before") == []
    plant("beat.before=error@2,take.after=error")
    assert hit("beat.before") == []
    plant("take.after=error")
    assert hit("beat.before", "beat.before", "take.after") == ["take.after"]


@pytest.mark.parametrize(
    "text", ["nowhere=error", "settle.before=explode", "settle.before", "settle.before=error@x"]
)
def test_a_name_or_an_action_that_does_not_exist_is_refused(text):
    with pytest.raises(ValueError, match=re.escape(text) if "@" not in text else "x"):
        plant(text)


def test_a_process_is_killed_at_the_planted_hit():
    process = run("send.after=kill@2", "print(1, flush=True); failpoint('send.after'); print(2, flush=True)\n"
                                       "failpoint('send.after'); print(3, flush=True)")  # fmt: skip
    output, _ = process.communicate(timeout=30)
    assert (output, process.returncode) == ("1\n2\n", -signal.SIGKILL)


def test_a_paused_process_goes_on_when_it_is_told_to():
    process = run("load.after=pause", "failpoint('load.after'); print('on', flush=True)")
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert (output, process.returncode) == ("on\n", 0)


def called() -> set[str]:
    """The names in the code, but for those around the store's verbs."""
    return {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r'\bfailpoint\(\s*"([^"]+)"', path.read_text())
        if path.name != "failpoints.py"
    }


def test_every_step_that_has_a_name_is_called_in_the_code_and_no_other():
    assert called() == STEPS | NETWORK


def test_every_verb_of_the_contract_that_writes_has_its_two_names():
    """A new one fails here until it is named in `failpoints`, or among those that only read in `store.failpoints`."""
    assert writing_verbs() == VERBS
    assert {verb for verb in READS if not hasattr(Store, verb)} == set()
    assert {f"{verb}.{side}" for verb in writing_verbs() for side in ("before", "after")} <= NAMES


@pytest.mark.parametrize("store", [SqliteStore, PostgresStore])
def test_both_stores_have_failpoints_around_every_verb_that_writes(store):
    """They are around the store's own; the verbs that it has from its nouns are inside."""
    wrapped = {name: verb for name, verb in vars(store).items() if hasattr(verb, "__wrapped__")}
    # A verb that is only measured is a coroutine function.
    around = {name for name, verb in wrapped.items() if not inspect.iscoroutinefunction(verb)}
    assert around == writing_verbs()


def test_every_step_of_the_network_is_between_two_names():
    """What `Net` and a connection do, in their order."""
    verbs = {name for name, _ in inspect.getmembers(Net, inspect.iscoroutinefunction)}
    assert verbs == {"resolve", "connect", "start_tls"}
    steps = ["resolve", "connect", "tls", "send"]
    assert {f"{step}.{side}" for step in steps for side in ("before", "after")} | {"head.after"} == NETWORK
    assert "answer.after" in STEPS  # the body


def test_a_failpoint_that_nothing_is_planted_at_costs_next_to_nothing():
    """Against an empty function, so that the machine's load cancels out: they differ by one look at a dictionary."""

    def nothing(name: str) -> None:
        return None

    def best(call) -> float:
        return min(timeit.repeat(lambda: call("settle.before"), number=2_000, repeat=25))

    assert best(failpoint) < 5 * best(nothing)
