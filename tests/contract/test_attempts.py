"""Attempts are read back whole and in order, late ones too."""

import pytest

from factories import NOW, a_settlement, an_attempt, ids
from hookline.ids import delivery_of
from hookline.model import ErrorKind, Outcome, Reason, State, Timings
from scenes import an_owned_lane, published

pytestmark = pytest.mark.anyio


def a_full_attempt(id, **fields):
    return an_attempt(
        id,
        at=NOW + 0.25,
        outcome=Outcome.THROTTLED,
        duration=1.0625,
        status=429,
        error=ErrorKind.HTTP_429,
        error_detail="Too Many Requests \U0001f6a6",
        timings=Timings(dns=0.001, connect=0.25, tls=0.5, first_byte=0.75),
        request_url="https://receiver.example/hooks?q=ü",
        request_headers={"webhook-id": "evt_1", "authorization": "***"},
        response_headers={"retry-after": "5", "a": "b"},
        response_body=b"\x00slow down\xff",
        response_truncated=True,
        final_url="https://receiver.example/elsewhere",
        **fields,
    )


async def test_an_attempt_with_everything_is_read_back_whole(store):
    worker, lane = await an_owned_lane(store)
    id = await published(store, lane.endpoint_id)
    attempt = a_full_attempt(id)
    settlement = a_settlement(
        id, lane.endpoint_id, epoch=lane.epoch, attempt=attempt, state=State.PENDING, due_at=NOW + 5
    )
    await store.settle(worker, [settlement], now=NOW)
    [read] = await store.attempts(id)
    assert read == attempt
    assert list(read.response_headers) == ["retry-after", "a"]


async def test_an_attempt_with_next_to_nothing_is_read_back_whole(store):
    worker, lane = await an_owned_lane(store)
    id = await published(store, lane.endpoint_id)
    attempt = an_attempt(id, status=None)
    await store.settle(
        worker, [a_settlement(id, lane.endpoint_id, epoch=lane.epoch, attempt=attempt)], now=NOW
    )
    assert await store.attempts(id) == [attempt]


async def test_attempts_of_all_lives_come_oldest_first(store):
    worker, lane = await an_owned_lane(store)
    id = await published(store, lane.endpoint_id)
    expected = []
    for life in range(3):
        for number in (1, 2):
            last = number == 2
            attempt = an_attempt(id, number=number, replays=life, at=NOW + 10 * life + number, status=500)
            settlement = a_settlement(
                id,
                lane.endpoint_id,
                epoch=lane.epoch,
                attempt=attempt,
                state=State.DEAD if last else State.PENDING,
                reason=Reason.EXHAUSTED if last else None,
            )
            await store.settle(worker, [settlement], now=NOW)
            expected.append(attempt)
        await store.redrive(id, now=NOW)
    assert await store.attempts(id) == expected


async def test_a_late_attempt_is_kept_beside_the_one_that_counted(store):
    worker, lane = await an_owned_lane(store)
    id = await published(store, lane.endpoint_id)
    counted = an_attempt(id, at=NOW, duration=1.0)
    late = a_full_attempt(id, late=True)
    await store.settle(
        worker,
        [
            a_settlement(id, lane.endpoint_id, epoch=lane.epoch, attempt=counted),
            a_settlement(id, lane.endpoint_id, epoch=lane.epoch - 1, attempt=late),
        ],
        now=NOW,
    )
    assert await store.attempts(id) == [counted, late]
    found = await store.delivery(id)
    assert (found.last_duration, found.last_error_detail, found.last_status) == (1.0, None, 200)


async def test_a_delivery_without_attempts_has_none(store):
    assert await store.attempts(delivery_of(ids.event(), 0)) == []
