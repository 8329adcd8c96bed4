"""Sends the messages to people that are due.

They are in the database, written in the commit that publishes the own event they tell of. A message is sent at least
once: one whose sender dies before it is ended is sent again. What cannot be sent is tried again for hours, logged, and
has no effect on deliveries; it is never told of by another message.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import structlog

from hookline import rfc3339
from hookline.clock import Clock
from hookline.errors import StoreUnavailable
from hookline.model import OWN_ACCOUNT, Notify
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.notifying.channels import ChannelAnswer, Channels, shown
from hookline.rules.people import (
    DEAD,
    Channel,
    Deaths,
    Message,
    Recipient,
    about_a_test,
    about_alert,
    about_deaths,
    channels_of,
    gathered,
    wait_before,
)
from hookline.store.contract import DueNotification, Store

EVERY = 5.0  # seconds between two looks
WHEN_NOBODY_IS_TOLD = 60.0  # likewise; some may be left from before
AT_ONCE = 20
HELD_S = 120.0  # seconds for which a message is taken; sending one takes a quarter of that at most

log = structlog.get_logger()


class Notifications:
    """The messages of this installation; this process sends those that it takes."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        channels: Channels,
        clock: Clock,
        *,
        try_own_event: Callable[[bytes], Awaitable[int]],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._channels = channels
        self._clock = clock
        self._try_own_event = try_own_event  # publishes one for a test; how many endpoints get it
        self._wanted = asyncio.Event()
        self.sent: Counter[str] = Counter()  # by channel, since the start
        self.failed: Counter[str] = Counter()

    def nudge(self) -> None:
        """There may be a message that is due."""
        self._wanted.set()

    async def run(self) -> None:
        """Send what is due until cancelled."""
        while True:
            self._wanted.clear()
            try:
                is_more = await self.send_due()
            except StoreUnavailable as error:
                log.debug("notifications.interrupted", error=str(error))
                is_more = False
            if not is_more:
                every = EVERY if self._catalogue.notified else WHEN_NOBODY_IS_TOLD
                await self._clock.wait(self._wanted, every)

    async def send_due(self) -> bool:
        """Take and send some; whether there may be more."""
        now = self._clock.now()
        taken = await self._store.take_notifications(gather=DEAD, limit=AT_ONCE, now=now, until=now + HELD_S)
        if not taken:
            return False
        groups: dict[tuple[object, ...], list[DueNotification]] = {}
        for each in taken:
            key = (each.channel, each.recipient, each.account) if each.kind == DEAD else (each.n,)
            groups.setdefault(key, []).append(each)
        results = await asyncio.gather(*(self._send(group) for group in groups.values()))
        done: list[int] = []
        again: list[tuple[int, float]] = []
        for ended, repeated in results:
            done += ended
            again += repeated
        await self._store.end_notifications(done, again)
        return True

    async def _send(self, group: Sequence[DueNotification]) -> tuple[list[int], list[tuple[int, float]]]:
        """Send one message; the numbers that are done with, and those to try again with their time."""
        first = group[0]
        numbers = [each.n for each in group]
        try:
            to = Recipient(Channel(first.channel), first.recipient, first.account or OWN_ACCOUNT)
            message = _message(group)
        except (ValueError, msgspec.DecodeError) as error:
            # Written by another version, or by hand: nobody can ever read it.
            log.error("notification.dropped", n=first.n, channel=first.channel, error=str(error))
            return numbers, []
        answer = await self._channels.send(to, message, id=f"notification.{first.n}.{int(first.at)}")
        if answer.ok:
            self.sent[answer.channel] += 1
            return numbers, []
        self.failed[answer.channel] += 1
        tries = max(each.tries for each in group)
        wait = wait_before(tries)
        facts = {
            "channel": answer.channel,
            "recipient": shown(to),
            "account": to.account,
            "kind": first.kind,
            "tries": tries,
            "error": answer.detail,
        }
        if wait is None:
            log.error("notification.dropped", **facts)
            return numbers, []
        log.warning("notification.failed", **facts, again_in_s=round(wait))
        at = self._clock.now() + wait
        return [], [(n, at) for n in numbers]

    async def try_channels(self, account: str) -> list[ChannelAnswer]:
        """Send a test on every channel of an account, all at once; the answers."""
        notify = self._catalogue.notified.get(account, Notify())
        message = about_a_test(account, at=rfc3339.show(self._clock.wall()))
        id = f"test.{int(self._clock.wall() * 1e6)}"
        answers = await asyncio.gather(
            *(self._channels.send(to, message, id=id) for to in channels_of(account, notify))
        )
        return [*answers, *(await self._try_events(message) if account == OWN_ACCOUNT else [])]

    async def _try_events(self, message: Message) -> list[ChannelAnswer]:
        if not self._catalogue.find(OWN_ACCOUNT, "alert.test"):
            return []
        number = await self._try_own_event(msgspec.json.encode(message.data))
        detail = f"alert.test was published to {number} endpoint{'' if number == 1 else 's'}"
        return [ChannelAnswer(channel="events", recipient=f"account {OWN_ACCOUNT}", ok=True, detail=detail)]


def _message(group: Sequence[DueNotification]) -> Message:
    first = group[0]
    account = first.account or OWN_ACCOUNT
    if first.kind == DEAD:
        return about_deaths(
            account, gathered([msgspec.json.decode(each.detail, type=Deaths) for each in group])
        )
    event = msgspec.json.decode(first.detail, type=dict[str, Any])
    if not isinstance(event.get("data"), dict):
        raise ValueError("it tells of no alert")
    return about_alert(event, is_for_operators=account == OWN_ACCOUNT)
