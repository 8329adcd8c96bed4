"""A mover that is killed at any step loses nothing, doubles nothing, and leaves nothing behind."""

import pytest

from hookline.outbox import Draft
from hookline.store.contract import RefusedFilter
from outbox.moved import emptied, running, stored
from server_process import ServerProcess

pytestmark = pytest.mark.anyio

OWN = ("outbox.looked", "accept.after", "refuse.after", "outbox.accepted", "drop_from_outbox.after")
FOREIGN = ("outbox.accepted", "outbox.dropped")
CASES = [
    *((place, step) for place in ("own sqlite", "own postgres") for step in OWN),
    *((place, step) for place in ("foreign sqlite", "foreign postgres") for step in FOREIGN),
]


@pytest.mark.parametrize(("place", "step"), CASES, indirect=["place"])
async def test_a_mover_that_is_killed(place, receiver, tmp_path, step):
    async with running(place, receiver):
        pass
    place.commit(*(Draft("a", n) for n in range(10)), Draft("a", "bad key", idempotency_key="k"))
    place.commit(Draft("a", "another", idempotency_key="k"), *(Draft("a", n) for n in range(10, 20)))
    settings = place.settings
    environment = {
        "HOOKLINE_DATABASE": settings.database,
        "HOOKLINE_OUTBOX": ",".join(settings.outbox),
        "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8",
        "HOOKLINE_FAILPOINTS": f"{step}=kill",
    }
    server = ServerProcess("--dev", cwd=tmp_path, env=environment)
    server.start()
    assert server.wait() == -9, server.stderr
    async with running(place, receiver) as hookline:
        await emptied(hookline)
        await receiver.wait_for(lambda: len(set(receiver.bodies())) == 21)
        refused = await hookline.store.refused_rows(RefusedFilter(), after=None, limit=10)
    events = [payload for _, payload in stored(place)]
    assert sorted(events) == sorted([*(b"%d" % n for n in range(20)), b'"bad key"'])
    assert [int(payload) for payload in events if payload.isdigit()] == list(range(20))
    assert [row.code for row in refused] == ["idempotency_conflict"]
