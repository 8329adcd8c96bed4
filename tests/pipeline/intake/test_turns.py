"""One account's large request does not hold up another's."""

import asyncio
from collections.abc import Sequence

import pytest

from factories import an_endpoint
from hookline.app import Hookline
from hookline.errors import Invalid, StoreUnavailable
from hookline.model import EndpointId, EventId
from hookline.pipeline.intake.drafts import Draft, Published
from hookline.rules.admission import MOST_DELIVERIES, REQUEST_DELIVERIES
from hookline.rules.loop_budget import (
    DELIVERIES,
    SLICE,
)
from hookline.store.contract import EventFanout
from tests.world import World

pytestmark = pytest.mark.anyio

BIG = "big"


class Commits:
    """Records what was committed, in which order."""

    def __init__(self, hooks: Hookline) -> None:
        self.batches: list[list[EventFanout]] = []
        self.failing_from: int | None = None
        self._accept = hooks.store.accept
        hooks.store.accept = self._watched

    async def _watched(self, batch: Sequence[EventFanout], *, catalogue: int, now: float):
        if self.failing_from is not None and len(self.batches) >= self.failing_from:
            raise StoreUnavailable("The disk is full.")
        acceptance = await self._accept(batch, catalogue=catalogue, now=now)
        if not acceptance.stale:
            self.batches.append(list(batch))
        return acceptance

    def deliveries(self) -> list[int]:
        return [sum(len(each.endpoints) for each in batch) for batch in self.batches]

    def of(self, account: str) -> list[int]:
        """The commits that hold events of the account."""
        return [n for n, batch in enumerate(self.batches) if any(e.event.account == account for e in batch)]


async def endpoints(world: World, hooks: Hookline, count: int, **fields) -> list[EndpointId]:
    """So many paused endpoints: nothing is sent to them."""
    made = [an_endpoint(**({"account": BIG, "paused": True} | fields)) for _ in range(count)]
    for endpoint in made:
        await hooks.store.create_endpoint(endpoint, now=world.clock.now())
    await hooks._catalogue.catch_up()
    return [endpoint.id for endpoint in made]


def drafts(count: int, **fields) -> list[Draft]:
    return [Draft("order.paid", b"%d" % n, account=BIG, **fields) for n in range(count)]


async def test_a_large_batch_is_stored_in_commits_that_have_an_end_in_its_order(world: World):
    hooks = await world.start()
    await endpoints(world, hooks, 60)
    commits = Commits(hooks)
    results = await world.pass_until(hooks.accept(drafts(80)))
    assert [type(result) for result in results] == [Published] * 80
    assert sum(commits.deliveries()) == 80 * 60
    assert max(commits.deliveries()) <= MOST_DELIVERIES
    stored = [each.event for batch in commits.batches for each in batch]
    assert [event.payload for event in stored] == [b"%d" % n for n in range(80)]
    assert [event.id for event in stored] == [result.id for result in results]


async def test_a_publish_of_another_account_is_stored_before_a_large_batch_is(world: World):
    hooks = await world.start()
    await endpoints(world, hooks, 60)
    commits = Commits(hooks)
    batch = asyncio.ensure_future(hooks.accept(drafts(80)))
    await asyncio.sleep(0)  # it is handed in
    others = [hooks.publish_draft(Draft("order.paid", b"1", account=f"other{n}")) for n in range(3)]
    await world.pass_until(asyncio.gather(batch, *others))
    assert len(commits.of(BIG)) == 80 // (MOST_DELIVERIES // 60)
    for n in range(3):
        assert commits.of(f"other{n}") == [1]


async def test_an_event_with_more_deliveries_than_a_commit_holds_is_stored_whole_and_by_itself(world: World):
    hooks = await world.start()
    await endpoints(world, hooks, MOST_DELIVERIES + 100)
    commits = Commits(hooks)
    results = await world.pass_until(hooks.accept(drafts(2)))
    assert [result.deliveries for result in results] == [MOST_DELIVERIES + 100] * 2
    assert commits.deliveries() == [MOST_DELIVERIES + 100] * 2
    assert sum((await hooks.store.counts()).values()) == 2 * (MOST_DELIVERIES + 100)


async def test_what_was_committed_is_handed_over_a_part_at_a_time(world: World):
    hooks = await world.start()
    await endpoints(world, hooks, DELIVERIES + 50)
    (result,) = await world.pass_until(hooks.accept(drafts(1)))
    assert result.deliveries == DELIVERIES + 50
    await hooks.intake._handing.until_now()
    assert hooks.intake._handing.longest == DELIVERIES


async def test_of_a_batch_whose_later_commit_fails_what_is_stored_is_answered_as_stored(world: World):
    hooks = await world.start()
    await endpoints(world, hooks, 100)
    commits = Commits(hooks)
    commits.failing_from = 2
    stored = 2 * MOST_DELIVERIES // 100
    results = await world.pass_until(hooks.accept(drafts(35)))
    assert [type(result) for result in results] == [Published] * stored + [StoreUnavailable] * (35 - stored)
    for result in results[:stored]:
        assert await hooks.store.event(EventId(result.id)) is not None
    assert sum((await hooks.store.counts()).values()) == stored * 100
    commits.failing_from = None
    again = await world.pass_until(hooks.accept(drafts(1)))
    assert isinstance(again[0], Published), "and the line has moved on"
    assert (hooks.intake._gathering.events, hooks.intake._gathering.bytes) == (0, 0)


async def test_of_a_batch_of_which_nothing_is_stored_the_error_is_the_answer(world: World):
    hooks = await world.start()
    await endpoints(world, hooks, 100)
    Commits(hooks).failing_from = 0
    with pytest.raises(StoreUnavailable, match="disk is full"):
        await world.pass_until(hooks.accept(drafts(35)))
    assert sum((await hooks.store.counts()).values()) == 0


async def test_the_same_key_in_two_commits_of_one_batch_is_a_duplicate(world: World):
    hooks = await world.start()
    await endpoints(world, hooks, 100)
    commits = Commits(hooks)
    key = Draft("order.paid", b"k", account=BIG, idempotency_key="key")
    results = await world.pass_until(hooks.accept([key, *drafts(20), key]))
    assert len(commits.batches) > 1
    assert (results[-1].id, results[-1].duplicate) == (results[0].id, True)
    assert not results[0].duplicate


async def test_a_request_for_more_deliveries_than_one_may_ask_for_is_refused_as_a_whole(world: World):
    hooks = await world.start()
    await endpoints(world, hooks, 101)
    with pytest.raises(Invalid) as refused:
        await hooks.accept(drafts(1_000))
    assert refused.value.code == "fanout_limit"
    assert "101,000" in str(refused.value)
    assert f"{REQUEST_DELIVERIES:,}" in str(refused.value)
    assert sum((await hooks.store.counts()).values()) == 0
    assert hooks.intake._gathering.events == 0


# Scans a list of 5,000: more steps than all filters of an event have.
EXPENSIVE = "length(lines[?n == `1` && m == `2`]) > `5000`"
LONG = b'{"lines":[' + b",".join([b'{"n":1,"m":3}'] * 5_000) + b"]}"


async def test_filters_are_judged_in_slices_and_others_overtake(world: World):
    hooks = await world.start()
    await endpoints(world, hooks, 1, filter=EXPENSIVE)
    await endpoints(world, hooks, 1, account="other", filter="total > `1`")
    commits = Commits(hooks)
    batch = asyncio.ensure_future(hooks.accept([Draft("order.paid", LONG, account=BIG)] * 5))
    await asyncio.sleep(0)
    plain = await hooks.publish_draft(Draft("order.paid", b"1", account="third"))
    filtered = await hooks.publish_draft(Draft("order.paid", b'{"total":2}', account="other"))
    assert (plain.deliveries, filtered.deliveries) == (0, 1)
    assert not batch.done()
    assert commits.of(BIG) == []
    results = await world.pass_until(batch)
    assert [result.deliveries for result in results] == [1] * 5
    # The unit that crosses the limit is the last of its turn: a part of a filter, or a payload that is read.
    assert SLICE <= hooks.intake._gathering.judging.slice.longest < 2 * SLICE


async def test_what_was_judged_by_a_filter_that_has_changed_is_judged_again(world: World):
    hooks = await world.start()
    (id,) = await endpoints(world, hooks, 1, filter="total > `1`")
    accept, going, flow = hooks.store.accept, asyncio.Event(), asyncio.Event()

    async def held(batch, *, catalogue, now):
        going.set()
        await flow.wait()
        return await accept(batch, catalogue=catalogue, now=now)

    hooks.store.accept = held
    first = asyncio.ensure_future(hooks.accept([Draft("order.paid", b"1", account="other")]))
    await going.wait()
    judged = asyncio.ensure_future(hooks.accept([Draft("order.paid", b'{"total":1}', account=BIG)] * 3))
    await asyncio.sleep(0)
    assert not hooks.intake._gathering.judging.is_idle
    await world.until(lambda: hooks.intake._gathering.judging.is_idle)
    endpoint = (await hooks.store.endpoints_by_id([id]))[0]
    changed = an_endpoint(id=id, account=BIG, paused=True, filter="total > `0`", updated_at=world.clock.now())
    assert await hooks.store.update_endpoint(changed, was=endpoint.updated_at, now=world.clock.now())
    flow.set()
    await world.pass_until(first)
    assert [result.deliveries for result in await world.pass_until(judged)] == [1] * 3
