"""SyncHookline serves any number of threads, ends when it is told to or when the program ends, and knows forks."""

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hookline import NewEvent, Published, Settings, SyncHookline, errors
from hookline.testing import Answer, WebhookReceiver
from server_process import environment

SETTINGS = Settings(dev=True, retry="quick", poll_s=0.05)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/hooks.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def receiver():
    with WebhookReceiver() as receiver:
        yield receiver


def test_threads_share_one_and_every_event_is_delivered_once(database, receiver):
    def work(thread: int) -> list[str]:
        ids = [hooks.publish("a", {"thread": thread, "n": n}).id for n in range(10)]
        many = hooks.publish_many(
            [NewEvent(type="a", payload={"thread": thread, "n": n}) for n in range(10, 20)]
        )
        assert hooks.event(ids[-1]).json() == {"thread": thread, "n": 9}
        return ids + [each.id for each in many if isinstance(each, Published)]

    with SyncHookline(database, settings=SETTINGS) as hooks:
        hooks.create_endpoint(receiver.url, ["*"], secret=receiver.secret)
        with ThreadPoolExecutor(8) as pool:
            published = [id for ids in pool.map(work, range(8)) for id in ids]
        requests = receiver.wait(160, within=120)
        assert Counter(each.event_id for each in requests) == dict.fromkeys(published, 1)
        assert {(each.json()["thread"], each.json()["n"]) for each in requests} == {
            (thread, n) for thread in range(8) for n in range(20)
        }
        assert len(list(hooks.deliveries())) == 160


def test_it_can_be_started_again_and_what_was_published_is_still_there(database):
    hooks = SyncHookline(database, settings=SETTINGS)
    with pytest.raises(errors.NotRunning):
        hooks.publish("a", 1)
    assert hooks.stop()  # nothing to do
    hooks.start()
    hooks.start()  # it runs already
    first = hooks.publish("a", 1)
    assert hooks.stop()
    with pytest.raises(errors.NotRunning):
        hooks.event(first.id)
    with hooks:
        assert hooks.event(first.id).json() == 1
    assert [each.name for each in threading.enumerate() if each.name.startswith("hookline")] == []


def test_what_keeps_it_from_starting_is_raised(tmp_path):
    with pytest.raises(errors.ConfigError):
        SyncHookline("mysql://nowhere")  # when it is made
    hooks = SyncHookline(f"sqlite:///{tmp_path}/no/such/folder/hooks.db")
    with pytest.raises(errors.HooklineError):
        hooks.start()
    with pytest.raises(errors.NotRunning):
        hooks.health()


def test_what_was_published_before_its_end_is_there_after_it(tmp_path):
    hooks = SyncHookline(f"sqlite:///{tmp_path}/hooks.db", settings=SETTINGS)
    hooks.start()
    published = threading.Event()
    said: list[object] = []

    def publish_until_the_end() -> None:
        try:
            while True:
                said.append(hooks.publish("a", 1).id)
                published.set()
        except errors.HooklineError as error:
            said.append(error)

    threads = [threading.Thread(target=publish_until_the_end) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert published.wait(120)
    hooks.stop()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    refused = [each for each in said if not isinstance(each, str)]
    assert len(refused) == 4
    assert {type(each) for each in refused} <= {errors.NotRunning, errors.StoreUnavailable}
    with hooks:
        assert {each.id for each in hooks.events()} >= {each for each in said if isinstance(each, str)}


def test_a_call_that_its_end_overtakes_says_so(tmp_path):
    hooks = SyncHookline(f"sqlite:///{tmp_path}/hooks.db", settings=SETTINGS)
    hooks.start()
    life = hooks._life  # no call takes long enough, and none can be made to stop between two lines
    assert life is not None
    began = threading.Event()

    async def without_end() -> None:
        began.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(life.run, without_end())
        assert began.wait(120)
        assert hooks.stop()
        with pytest.raises(errors.NotRunning, match="before it was done"):
            waiting.result(120)
    with pytest.raises(errors.NotRunning, match="is stopped"):
        life.run(life.hooks.health())


# --- the end of the program ---

ENDS = """
import sys
from hookline import Settings, SyncHookline
hooks = SyncHookline(sys.argv[1], settings=Settings(dev=True, drain_s=60))
hooks.start()
hooks.create_endpoint(sys.argv[2], ["*"], secret=sys.argv[3])
hooks.publish("a", 1)
sys.stdin.readline()
print("leaving", flush=True)
"""


class SlowReceiver(WebhookReceiver):
    """Answers when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.came, self.may_answer = threading.Event(), threading.Event()

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        self.came.set()
        assert self.may_answer.wait(120)
        return super()._take(path, headers, body)


def test_the_end_of_the_program_ends_it_and_what_is_under_way_is_finished(database):
    with SlowReceiver() as receiver:
        program = [sys.executable, "-W", "error", "-c", ENDS, database, receiver.url, receiver.secret]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            program, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1
        )
        assert process.stdin
        assert process.stdout
        assert receiver.came.wait(120)
        process.stdin.write("\n")
        assert process.stdout.readline() == "leaving\n"
        receiver.may_answer.set()
        _, err = process.communicate(timeout=120)
        said = [line for line in err.splitlines() if "statement.slow" not in line]  # on a busy machine
        assert (process.returncode, said) == (0, [])
        [request] = receiver.requests
    with SyncHookline(database, settings=SETTINGS, deliver=False) as hooks:
        # A process that was killed would still be listed.
        assert [each.pid for each in hooks.workers() if each.pid != os.getpid()] == []
        [delivery] = hooks.event_deliveries(str(request.event_id))
        assert (delivery.state, delivery.attempts) == ("delivered", 1)


# --- forks ---

FORKS = """
import os, sys
from hookline import Settings, SyncHookline, errors
hooks = SyncHookline(sys.argv[1], settings=Settings(dev=True))
hooks.start()
hooks.publish("a", "parent")
if (child := os.fork()) == 0:
    try:
        for call in (lambda: hooks.publish("a", 1), hooks.health):
            try:
                call()
            except errors.NotRunning as error:
                assert "forked" in str(error)
            else:
                os._exit(1)
        assert hooks.stop()  # touches nothing of the parent's
        if sys.argv[1].startswith("sqlite:"):
            try:
                hooks.start()
            except errors.StoreRefused as error:
                os._exit(0)
            os._exit(2)
        hooks.start()
        hooks.publish("a", "child")
        assert {each.json() for each in hooks.events()} == {"parent", "child"}
        assert hooks.stop()
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
    os._exit(3)
_, status = os.waitpid(child, 0)
hooks.publish("a", "parent again")
print(os.waitstatus_to_exitcode(status), len(list(hooks.events())), hooks.stop())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_is_told_to_start_its_own_and_leaves_the_parent_s_alone(database):
    done = subprocess.run(
        [sys.executable, "-c", FORKS, database],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    events = 2 if database.startswith("sqlite:") else 3
    assert (done.returncode, done.stdout) == (0, f"0 {events} True\n"), done.stderr
