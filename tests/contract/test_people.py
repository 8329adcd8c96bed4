"""Messages to people are taken by one process at a time, gathered where they may be, and kept until they are ended."""

import asyncio

import pytest

from factories import NOW
from hookline.store.contract import NotificationRow
from hookline.store.contract.measuring.people import GATHER_MOST

pytestmark = pytest.mark.anyio

DEAD = "delivery.dead"
UNTIL = NOW + 120


def a_message(**fields) -> NotificationRow:
    given = {
        "channel": "email",
        "recipient": "ops@acme.example",
        "kind": "alert.fired",
        "account": "acme",
        "detail": "{}",
        "due_at": NOW,
    }
    return NotificationRow(**given | fields)


async def written(store, *messages):
    catalogue = (await store.catalogue()).n
    acceptance = await store.publish_announcements(
        [], [], notifications=messages, catalogue=catalogue, now=NOW
    )
    assert acceptance is not None


async def taken(store, *, now=NOW, limit=10, until=UNTIL, channels=("email", "slack")):
    return await store.take_notifications(channels=channels, gather=DEAD, limit=limit, now=now, until=until)


async def test_what_is_due_is_taken_as_it_was_written(store):
    await written(store, a_message(detail='{"a":"ä"}'), a_message(detail="later", due_at=NOW + 1))
    [found] = await taken(store)
    assert (found.channel, found.recipient, found.kind) == ("email", "ops@acme.example", "alert.fired")
    assert (found.account, found.detail, found.at, found.tries) == ("acme", '{"a":"ä"}', NOW, 1)


async def test_nobody_else_has_it_until_its_time_is_over(store):
    await written(store, a_message())
    [first] = await taken(store)
    assert await taken(store, now=UNTIL - 1) == []
    [again] = await taken(store, now=UNTIL)
    assert (again.n, again.tries) == (first.n, 2)


async def test_the_accounts_that_wait_for_longest_come_first_with_all_that_is_due(store):
    await written(
        store,
        *(a_message(account=f"a{n}", due_at=NOW - n) for n in range(4)),
        a_message(account="a3", detail="also"),
        a_message(account="a2", channel="slack", due_at=NOW - 9),
    )
    assert [(each.account, each.detail) for each in await taken(store, limit=3)] == [
        ("a2", "{}"),
        ("a3", "{}"),
        ("a3", "also"),
        ("a2", "{}"),
    ]
    assert [each.account for each in await taken(store)] == ["a0", "a1"]


async def test_only_the_channels_that_are_asked_for_are_taken(store):
    await written(store, a_message(), a_message(channel="webhook"), a_message(account=None, channel="fax"))
    assert [each.channel for each in await taken(store, channels=("webhook", "fax"))] == ["webhook", "fax"]
    assert [each.channel for each in await taken(store, channels=("email",))] == ["email"]


async def test_what_was_ended_is_gone_and_the_rest_is_tried_at_its_time(store):
    await written(store, *(a_message(detail=str(n)) for n in range(3)))
    first, second, third = await taken(store)
    await store.end_notifications([first.n, third.n], [(second.n, NOW + 30)])
    assert await taken(store, now=NOW + 29) == []
    [found] = await taken(store, now=NOW + 30)
    assert (found.n, found.tries) == (second.n, 2)
    await store.end_notifications([], [])
    await store.end_notifications([found.n], [])
    assert await taken(store, now=UNTIL + 1_000) == []


async def test_deaths_are_gathered_for_a_channel_and_an_account(store):
    later = NOW + 900
    await written(
        store,
        a_message(kind=DEAD, detail="due"),
        a_message(kind=DEAD, detail="waits", due_at=later),
        a_message(kind=DEAD, detail="another account", account="other", due_at=later),
        a_message(kind=DEAD, detail="another channel", channel="slack", due_at=later),
        a_message(detail="another kind", due_at=later),
    )
    assert [each.detail for each in await taken(store)] == ["due", "waits"]
    assert await taken(store) == []


async def test_a_death_that_was_tried_waits_for_its_own_time(store):
    """Somebody may be sending it just now."""
    await written(store, a_message(kind=DEAD, detail="tried"))
    [tried] = await taken(store)
    await written(store, a_message(kind=DEAD, detail="new"))
    assert [each.detail for each in await taken(store, now=NOW + 1)] == ["new"]
    await store.end_notifications([], [(tried.n, NOW + 60)])
    assert [each.detail for each in await taken(store, now=NOW + 60, until=NOW + 500)] == ["tried"]


async def test_what_failed_together_is_taken_together_again(store):
    await written(store, *(a_message(kind=DEAD) for _ in range(30)))
    tried = await taken(store)
    await store.end_notifications([], [(each.n, NOW + 60) for each in tried])
    assert len(await taken(store, now=NOW + 60, limit=1)) == 30


async def test_only_so_many_are_gathered_into_one(store):
    await written(store, *(a_message(kind=DEAD, due_at=NOW + n) for n in range(GATHER_MOST + 2)))
    far = NOW + 10 * GATHER_MOST
    assert len(await taken(store, until=far)) == GATHER_MOST
    assert len(await taken(store, now=NOW + GATHER_MOST + 1, limit=1)) == 2


async def test_each_is_taken_by_one_of_many(store):
    await written(store, *(a_message(account=f"a{n}") for n in range(40)))
    found = await asyncio.gather(*(taken(store, limit=7) for _ in range(12)))
    numbers = [each.n for part in found for each in part]
    assert len(numbers) == len(set(numbers))
    rest = [each.n for _ in range(12) for each in await taken(store, limit=7)]
    assert len({*numbers, *rest}) == len(numbers) + len(rest) == 40
