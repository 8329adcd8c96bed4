"""Study: hookline starts on what a crash left behind, or says in one line why not."""

import time
from pathlib import Path

from tests.chaos.process import wait_for
from tests.chaos.row import BOTH
from tests.chaos.scene import TAKEOVER_S
from tests.chaos.stage import Stage
from tests.chaos.study import Study

LANES = 100
KILLED = -9
STEPS = 400  # more than there are
STRIDE = {"sqlite": 24, "postgres": 12}  # so that a trial has a few kills


def start_cold(stage: Stage) -> None:
    """F36: a killed migration, then lanes that dead workers own, beside files that nobody removed."""
    _kill_a_migration(stage)
    _start_among_the_dead(stage)


def _kill_a_migration(stage: Stage) -> None:
    """At steps chosen by the seed; after each the server starts with a whole schema or refuses in one clear line."""
    killed = 0
    step = 0
    while True:
        step += stage.rng.randint(1, STRIDE[stage.store])
        stage.scene = stage.scene._replace(settings={"CHAOS_MIGRATION_STEP": str(step)})
        status, log = stage.run("migrate")
        if status == 0:
            break
        if status != KILLED:
            stage.wrong.append(f"migrate: exit {status}: {log[-300:]}")
            return
        killed += 1
        if stage.store == "postgres" and _has_some(stage):
            stage.scene = stage.scene._replace(settings={})
            _must_refuse(stage)
        if step > STEPS:
            raise RuntimeError("the migrations have no end")
    stage.scene = stage.scene._replace(settings={})
    stage.at_least("migrations_killed", killed, 1)


def _has_some(stage: Stage) -> bool:
    """The server itself creates the schema of an empty database."""
    return bool(
        stage.query("SELECT 1 FROM information_schema.tables WHERE table_name = 'schema_migrations'")
        and stage.query("SELECT 1 FROM schema_migrations")
    )


def _must_refuse(stage: Stage) -> None:
    status, log = stage.run("serve", "--dev", "--port", "0", "--no-worker", within=30)
    lines = log.strip().splitlines()
    is_refused = status not in (0, None) and len(lines) == 1 and "hookline migrate" in lines[0]
    stage.figures["refusals"] = stage.figures.get("refusals", 0) + is_refused
    if not is_refused:
        stage.wrong.append(f"half-migrated: exit {status}: {log[-300:]}")


def _start_among_the_dead(stage: Stage) -> None:
    catcher = stage.catcher()
    stage.start()
    lanes = [stage.endpoint(catcher.url(f"/{n}"), f"cold.t{n}") for n in range(LANES)]
    stage.api.kill()
    sent = stage.seed(lanes, LANES)
    dead = bytes(15) + b"\1"
    now = "now()" if stage.store == "postgres" else str(time.time())
    hole = "%s" if stage.store == "postgres" else "?"
    owner = dead.hex() if stage.store == "postgres" else dead
    stage.query(
        "INSERT INTO workers (id, kind, host, pid, version, started_at, seen_at, beat)"
        f" VALUES ({hole}, 'worker', 'gone', 1, '0', {now}, {now}, 41)",
        owner,
    )
    stage.query(f"UPDATE lanes SET owner = {hole}, epoch = epoch + 1", owner)
    if stage.store == "sqlite":
        _leave_files_lying(Path(stage.url.removeprefix("sqlite:///")))
    stage.start(workers=1)
    began = time.time()
    wait_for(lambda: len({each.id for each in catcher.arrivals()}) == LANES, "what dead workers owned", 30)
    stage.drained(10)
    arrivals = catcher.arrivals()
    stage.at_most("taken_over_s", max(each.began for each in arrivals) - began, TAKEOVER_S + 2, is_time=True)
    stage.at_most("lost", len(set(sent) - {each.id for each in arrivals}), 0)
    stage.at_most("duplicates", len(arrivals) - LANES, 0)


def _leave_files_lying(file: Path) -> None:
    """Leave the lock of a process that is gone, and sockets and process ids as others leave them."""
    Path(f"{file}.lock").write_text("1\n")
    for name in ("hookline.pid", "hookline.sock"):
        file.with_name(name).write_text("1\n")


ROWS = {
    "F36": Study(
        "a start on what a crash left: a half-applied migration, 100 dead owners, stale files",
        BOTH,
        5,
        "",
        "",
        start_cold,
    )
}
