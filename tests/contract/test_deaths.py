"""Dead letters are counted by what they died of, and when."""

from collections import defaultdict
from random import Random
from typing import Any

import pytest

from factories import NOW, a_publication, a_settlement, an_attempt
from hookline.ids import delivery_of
from hookline.model import DeliveryId, EndpointId, ErrorKind, Outcome, Reason, State
from hookline.store.contract import Store, Taken, Verdict
from hookline.store.contract.measuring.deaths import DeathCount, DeathSlice
from hookline.store.postgres.measuring import deaths as postgres_deaths
from hookline.store.sqlite.measuring import deaths as sqlite_deaths
from scenes import accepted, an_owned_lane, dead_letters, died, published

pytestmark = pytest.mark.anyio

HOUR = 3_600.0


async def all_deaths(store: Store, **asked: Any) -> list[DeathCount]:
    """What all steps find, in the order of their positions."""
    found, after = [], None
    while True:
        step: DeathSlice = await store.count_deaths(**({"since": NOW} | asked), after=after)
        found += step.counts
        if step.after is None:
            return found
        assert after is None or step.after > after
        after = step.after


async def dies(
    store: Store,
    worker: Any,
    lane: Taken,
    *,
    at: float = NOW,
    attempts: int = 1,
    status: int | None = 503,
    error: ErrorKind | None = ErrorKind.HTTP_5XX,
    reason: Reason = Reason.EXHAUSTED,
    **event: Any,
) -> DeliveryId:
    delivery = await published(store, lane.endpoint_id, **event)
    for number in range(1, attempts + 1):
        is_last = number == attempts
        settlement = a_settlement(
            delivery,
            lane.endpoint_id,
            epoch=lane.epoch,
            attempt=an_attempt(
                delivery, number=number, outcome=Outcome.TRANSIENT, status=status, error=error, at=at
            ),
            state=State.DEAD if is_last else State.PENDING,
            reason=reason if is_last else None,
        )
        assert await store.settle(worker, [settlement], now=at) == [Verdict.APPLIED]
    return delivery


async def test_a_store_without_dead_letters_counts_none(store):
    _, lane = await an_owned_lane(store)
    await published(store, lane.endpoint_id)
    assert await store.count_deaths(since=0.0) == DeathSlice((), None)


async def test_those_that_died_of_the_same_in_the_same_minute_are_counted_together(store):
    worker, lane = await an_owned_lane(store)
    start = NOW // 60 * 60
    first = await dies(store, worker, lane, at=start, attempts=7)
    second = await dies(store, worker, lane, at=start + 59.5, attempts=1)
    third = await dies(store, worker, lane, at=start + 60, attempts=2)
    shared = {
        "endpoint_id": lane.endpoint_id,
        "reason": Reason.EXHAUSTED,
        "status": 503,
        "error": ErrorKind.HTTP_5XX,
    }
    found = await store.count_deaths(since=start)
    assert sorted(found.counts, key=lambda each: each.minute) == [
        DeathCount(
            **shared,
            minute=int(start // 60),
            count=2,
            attempts=8,
            at_first_attempt=1,
            first_at=start,
            last_at=start + 59.5,
            newest=max(first, second),
        ),
        DeathCount(
            **shared,
            minute=int(start // 60) + 1,
            count=1,
            attempts=2,
            at_first_attempt=0,
            first_at=start + 60,
            last_at=start + 60,
            newest=third,
        ),
    ]
    assert found.after is None


async def test_what_is_no_longer_dead_is_not_counted(store):
    _, _, letters = await dead_letters(store, 3)
    await store.redrive(letters[0], now=NOW)
    await store.discard(letters[1], now=NOW)
    [left] = await all_deaths(store)
    assert (left.count, left.newest) == (1, letters[2])


async def test_what_died_earlier_is_not_counted(store):
    worker, lane = await an_owned_lane(store)
    await dies(store, worker, lane, at=NOW - 1)
    at_the_edge = await dies(store, worker, lane, at=NOW)
    [found] = await all_deaths(store, since=NOW)
    assert (found.count, found.newest) == (1, at_the_edge)


async def test_a_network_error_has_no_status_and_a_crash_neither(store):
    worker, lane = await an_owned_lane(store)
    await dies(store, worker, lane, status=None, error=ErrorKind.DNS)
    await dies(store, worker, lane, status=None, error=None, reason=Reason.CRASH_LIMIT)
    found = {(each.reason, each.status, each.error) for each in await all_deaths(store)}
    assert found == {(Reason.EXHAUSTED, None, ErrorKind.DNS), (Reason.CRASH_LIMIT, None, None)}


async def test_only_those_of_an_endpoint_or_an_account(store):
    lanes = {}
    for account in ("a", "b"):
        worker, lane = await an_owned_lane(store, account=account)
        await dies(store, worker, lane, account=account)
        lanes[account] = lane.endpoint_id
    one = lanes["a"]
    assert {each.endpoint_id for each in await all_deaths(store)} == set(lanes.values())
    assert [each.endpoint_id for each in await all_deaths(store, account="a")] == [one]
    assert [each.endpoint_id for each in await all_deaths(store, endpoint=one)] == [one]
    assert [each.endpoint_id for each in await all_deaths(store, endpoint=one, account="a")] == [one]
    assert await all_deaths(store, endpoint=one, account="b") == []
    assert await all_deaths(store, account="c") == []


async def test_dead_letters_of_a_deleted_endpoint_still_belong_to_their_account(store):
    worker, lane = await an_owned_lane(store, account="a")
    await dies(store, worker, lane, account="a")
    assert await store.delete_endpoint(lane.endpoint_id, now=NOW)
    [found] = await all_deaths(store, account="a")
    assert (found.endpoint_id, found.count) == (lane.endpoint_id, 1)
    assert await all_deaths(store, account="b") == []


async def test_many_are_counted_in_steps_and_each_once(store):
    """Against an oracle: the letters as they were made."""
    random = Random(7)
    step = max(sqlite_deaths.STEP_ROWS, postgres_deaths.STEP_ROWS)
    made: dict[Any, list[DeliveryId]] = defaultdict(list)
    for account in ("a", "b", "a"):
        worker, lane = await an_owned_lane(store, account=account)
        publications = [a_publication(lane.endpoint_id, account=account) for _ in range(step // 2)]
        for start in range(0, len(publications), 1_000):
            await accepted(store, *publications[start : start + 1_000])
        by_time: dict[float, list[Any]] = defaultdict(list)
        for publication in publications:
            status, reason = random.choice(
                [(503, Reason.EXHAUSTED), (401, Reason.REJECTED), (None, Reason.EXHAUSTED)]
            )
            by_time[NOW + 60 * random.randrange(5)].append(
                (delivery_of(publication.event.id, 0), status, reason)
            )
        for at, letters in by_time.items():
            settlements = [
                a_settlement(
                    delivery,
                    lane.endpoint_id,
                    epoch=lane.epoch,
                    attempt=an_attempt(delivery, status=status, outcome=Outcome.REJECTED, at=at),
                    state=State.DEAD,
                    reason=reason,
                )
                for delivery, status, reason in letters
            ]
            assert set(await store.settle(worker, settlements, now=at)) == {Verdict.APPLIED}
            for delivery, status, reason in letters:
                made[account, lane.endpoint_id, reason, status, int(at // 60)].append(delivery)

    async def counted(**asked: Any) -> dict[Any, tuple[int, DeliveryId]]:
        total: dict[Any, tuple[int, DeliveryId]] = {}
        for each in await all_deaths(store, **asked):
            key = each.endpoint_id, each.reason, each.status, each.minute
            count, newest = total.get(key, (0, DeliveryId(b"")))
            total[key] = count + each.count, max(newest, each.newest)
        return total

    def expected(
        *, account: str | None = None, endpoint: EndpointId | None = None, since: float = NOW
    ) -> Any:
        return {
            key[1:]: (len(letters), max(letters))
            for key, letters in made.items()
            if account in (None, key[0]) and endpoint in (None, key[1]) and key[4] * 60 >= since // 60 * 60
        }

    first = await store.count_deaths(since=NOW)
    assert first.after is not None
    assert await counted() == expected()
    assert await counted(account="a") == expected(account="a")
    assert await counted(endpoint=lane.endpoint_id) == expected(endpoint=lane.endpoint_id)
    assert await counted(since=NOW + 120) == expected(since=NOW + 120)
    assert await counted(since=NOW + HOUR) == {}


async def test_letters_that_die_meanwhile_are_counted_at_most_once(store):
    worker, lane, letters = await dead_letters(store, 4)
    step = await store.count_deaths(
        since=NOW, endpoint=lane.endpoint_id, after=(lane.endpoint_id, letters[1])
    )
    late = await published(store, lane.endpoint_id)
    await died(store, worker, lane, late)
    again = await store.count_deaths(
        since=NOW, endpoint=lane.endpoint_id, after=(lane.endpoint_id, letters[1])
    )
    assert [each.count for each in step.counts] == [2]
    assert [each.count for each in again.counts] == [3]
