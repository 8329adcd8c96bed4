"""Sends the messages to people that are due.

They are in the database, written in the commit that publishes the own event they tell of. A message is sent at least
once: one whose sender dies before it is ended is sent again, with the same id. What cannot be sent is tried again for
hours, logged, and has no effect on deliveries; it is never told of by another message. Mail and requests have places of
their own, and a recipient has one of them: one that hangs holds up nobody else.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from random import Random
from typing import Any

import msgspec
import structlog

from hookline import ids, rfc3339
from hookline.clock import Clock
from hookline.errors import HooklineError, StoreUnavailable
from hookline.model import OWN_ACCOUNT, Account, AlertId, Notify
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.notifying.channels import ChannelAnswer, Channels
from hookline.rules.people import (
    DEAD,
    FIRED,
    Channel,
    Deaths,
    Message,
    Recipient,
    about_a_test,
    about_alerts,
    about_deaths,
    channels_of,
    gathered,
    wait_before,
)
from hookline.store.contract import DueNotification, Store

EVERY = 5.0  # seconds between two looks
WHEN_NOBODY_IS_TOLD = 60.0  # likewise; some may be left from before
MAILS_AT_ONCE, POSTS_AT_ONCE = 2, 8
HELD_S = 300.0  # seconds for which messages are taken
READ_AGAIN_S = 1.0  # between two times that the settings of accounts are read
FAREWELL_S = 5.0  # for what is under way when the process leaves
MOST_POSTS = 20  # to one webhook in a row: each may take 10 s

_NOBODY_MAILS = "no process has a mail server: HOOKLINE_SMTP_HOST"

log = structlog.get_logger()


class _Readable(msgspec.Struct, frozen=True):
    """A message with what it tells."""

    row: DueNotification
    content: Any  # Deaths, or the own event of an alert


class _Places:
    """How many recipients are written to at once, on some channels."""

    def __init__(self, channels: tuple[str, ...], number: int) -> None:
        self.channels = channels
        self._number = number
        self.tasks: set[asyncio.Task[None]] = set()
        self.wanted = asyncio.Event()

    @property
    def free(self) -> int:
        return self._number - len(self.tasks)

    def begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        self.wanted.set()


class Notifications:
    """The messages of this installation; this process sends those that it takes."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        channels: Channels,
        clock: Clock,
        rng: Random,
        *,
        try_own_event: Callable[[bytes], Awaitable[int]],
        open_notify: Callable[[Account], Notify],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._channels = channels
        self._clock = clock
        self._rng = rng
        self._try_own_event = try_own_event  # publishes one for a test; how many endpoints get it
        self._open_notify = open_notify  # decrypts stored settings
        self._mails = _Places((Channel.EMAIL.value,), MAILS_AT_ONCE)
        self._posts = _Places((Channel.SLACK.value, Channel.WEBHOOK.value), POSTS_AT_ONCE)
        self._is_closing = False
        self.sent: Counter[str] = Counter()  # by channel, since the start
        self.failed: Counter[str] = Counter()

    def nudge(self) -> None:
        """There may be a message that is due."""
        self._mails.wanted.set()
        self._posts.wanted.set()

    # --- life ---

    async def run_mails(self) -> None:
        """Send mail that is due until cancelled."""
        await self._run(self._mails, self.send_mails if self._channels.has_mail else self._drop_mails)

    async def run_posts(self) -> None:
        """Send other messages that are due until cancelled."""
        await self._run(self._posts, self.send_posts)

    async def run_settings(self) -> None:
        """Read where accounts are notified whenever that changed, until cancelled."""
        while True:
            await self._catalogue.accounts_changed.wait()
            try:
                await self._catalogue.read_notified()
            except StoreUnavailable as error:
                log.debug("notifications.interrupted", error=str(error))
            await self._clock.sleep(READ_AGAIN_S)

    async def close(self) -> None:
        """Take no more, and finish what is under way; what takes longer is sent again by another process."""
        self._is_closing = True
        tasks = [*self._mails.tasks, *self._posts.tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=FAREWELL_S)

    async def _run(self, places: _Places, work: Callable[[], Awaitable[bool]]) -> None:
        try:
            while True:
                places.wanted.clear()
                is_more = False
                try:
                    is_more = places.free > 0 and not self._is_closing and await work()
                except StoreUnavailable as error:
                    log.debug("notifications.interrupted", error=str(error))
                if not is_more:
                    every = EVERY if self._catalogue.notified else WHEN_NOBODY_IS_TOLD
                    await self._clock.wait(places.wanted, every)
        finally:
            for task in places.tasks:
                task.cancel()
            await asyncio.gather(*places.tasks, return_exceptions=True)

    # --- sending ---

    async def send_mails(self) -> bool:
        """Begin to send mail that is due; whether there was any."""
        return await self._begin(self._mails)

    async def send_posts(self) -> bool:
        """Likewise for the other channels."""
        return await self._begin(self._posts)

    async def _begin(self, places: _Places) -> bool:
        now = self._clock.now()
        taken = await self._store.take_notifications(
            channels=places.channels, gather=DEAD, limit=places.free, now=now, until=now + HELD_S
        )
        groups: dict[tuple[str, str | None], list[DueNotification]] = {}
        for each in taken:
            groups.setdefault((each.channel, each.account), []).append(each)
        for group in groups.values():
            places.begin(self._send(group))
        return bool(taken)

    async def _drop_mails(self) -> bool:
        """Mail that has waited for an hour for a process that can send it, and will never be sent."""
        now = self._clock.now()
        taken = await self._store.take_notifications(
            channels=self._mails.channels, gather="", limit=100, now=now - 3_600.0, until=now + HELD_S
        )
        if taken:
            accounts = sorted({each.account or OWN_ACCOUNT for each in taken})
            log.error(
                "notification.dropped", channel="email", account=", ".join(accounts), error=_NOBODY_MAILS
            )
            await self._store.end_notifications([each.n for each in taken], [])
        return bool(taken)

    async def _send(self, group: Sequence[DueNotification]) -> None:
        """Send everything for one recipient; at the first failure the rest waits too."""
        left = list(group)
        try:
            to = self._recipient(group[0])
            readable = [] if to is None else await self._worth_telling(group)
            kept = {each.row.n for each in readable}
            if useless := [row.n for row in group if row.n not in kept]:
                await self._store.end_notifications(useless, [])
            left = [row for row in group if row.n in kept]
            if to is None:
                return
            for rows, message in _messages(readable):
                if self._is_closing:
                    break
                first = rows[0]
                answer = await self._channels.send(to, message, id=f"notification.{first.n}.{int(first.at)}")
                if not answer.ok:
                    await self._failed(to, left, answer)
                    return
                self.sent[answer.channel] += 1
                await self._store.end_notifications([row.n for row in rows], [])
                left = [row for row in left if row not in rows]
            if left:  # more than are sent in a row, or this process leaves
                await self._store.end_notifications([], [(row.n, self._clock.now()) for row in left])
        except HooklineError as error:
            log.debug("notifications.interrupted", error=str(error))
        except Exception:
            # A row that breaks this must not be tried for ever, nor keep others from being sent.
            log.exception("notification.broken", channel=group[0].channel, account=group[0].account)
            with contextlib.suppress(HooklineError):
                await self._put_back(left, asked=None)

    def _recipient(self, row: DueNotification) -> Recipient | None:
        """Where it goes by the account's settings of now; None: nowhere any more."""
        account = row.account or OWN_ACCOUNT
        notify = self._catalogue.notified.get(account, Notify())
        return next((each for each in channels_of(account, notify) if each.channel == row.channel), None)

    async def _worth_telling(self, group: Sequence[DueNotification]) -> list[_Readable]:
        """The messages that can be read; without alerts that were to be told long ago and are over."""
        readable = [each for row in group if (each := _read(row)) is not None]
        late = {
            _alert_id(each.content): each
            for each in readable
            if each.row.kind == FIRED and each.row.tries > 1
        }
        asked = [id for id in late if id is not None]
        found = await self._store.alerts_by_id(asked) if asked else []
        over = {late[alert.id].row.n for alert in found if alert.resolved_at is not None}
        return [each for each in readable if each.row.n not in over]

    async def _failed(self, to: Recipient, rows: Sequence[DueNotification], answer: ChannelAnswer) -> None:
        self.failed[answer.channel] += 1
        facts = {
            "channel": answer.channel,
            "recipient": answer.recipient,
            "account": to.account,
            "kind": rows[0].kind,
            "tries": rows[0].tries,
            "error": answer.detail,
        }
        dropped, wait = await self._put_back(rows, asked=answer.asked_wait)
        if wait is not None:
            log.warning("notification.failed", **facts, again_in_s=round(wait))
        if dropped:
            log.error("notification.dropped", **facts, messages=dropped)

    async def _put_back(
        self, rows: Sequence[DueNotification], *, asked: float | None
    ) -> tuple[int, float | None]:
        """Try them again later, except what is old by now; how many are given up, and the shortest wait."""
        now, roll = self._clock.now(), self._rng.random()
        waits = [(row.n, wait_before(row.tries, age=now - row.at, asked=asked, roll=roll)) for row in rows]
        given_up = [n for n, wait in waits if wait is None]
        again = [(n, now + wait) for n, wait in waits if wait is not None]
        await self._store.end_notifications(given_up, again)
        return len(given_up), min((wait for _, wait in waits if wait is not None), default=None)

    # --- a test by hand ---

    async def try_channels(self, account: str) -> list[ChannelAnswer]:
        """Send a test on every channel of an account, all at once; the answers."""
        stored = await self._store.account(account)
        notify = Notify() if stored is None else self._open_notify(stored)
        message = about_a_test(account, at=rfc3339.show(self._clock.wall()))
        id = f"test.{int(self._clock.wall() * 1e6)}"
        answers = await asyncio.gather(
            *(self._channels.send(to, message, id=id) for to in channels_of(account, notify))
        )
        if account == OWN_ACCOUNT:
            return [*answers, *await self._try_events(message)]
        return [_for_an_owner(each) for each in answers]

    async def _try_events(self, message: Message) -> list[ChannelAnswer]:
        if not self._catalogue.find(OWN_ACCOUNT, "alert.test"):
            return []
        try:
            number = await self._try_own_event(msgspec.json.encode(message.data))
            detail = f"alert.test was published to {number} endpoint{'' if number == 1 else 's'}"
        except HooklineError as error:
            number, detail = 0, str(error)
        recipient = f"account {OWN_ACCOUNT}"
        return [ChannelAnswer(channel="events", recipient=recipient, ok=number > 0, detail=detail)]


def _read(row: DueNotification) -> _Readable | None:
    try:
        if row.kind == DEAD:
            return _Readable(row, msgspec.json.decode(row.detail, type=Deaths))
        event = msgspec.json.decode(row.detail, type=dict[str, Any])
        alert = event.get("data")
        if isinstance(alert, dict) and isinstance(alert.get("kind"), str | None):
            return _Readable(row, event)
    except (ValueError, msgspec.DecodeError):
        pass
    # Written by another version, or by hand.
    log.error("notification.dropped", channel=row.channel, n=row.n, error="it cannot be read")
    return None


def _alert_id(event: dict[str, Any]) -> AlertId | None:
    try:
        return AlertId(ids.read("alert", str(event["data"].get("id"))))
    except HooklineError:
        return None


def _messages(readable: Sequence[_Readable]) -> Iterator[tuple[list[DueNotification], Message]]:
    """What is told together; a webhook gets each alert by itself."""
    alerts = [each for each in readable if each.row.kind != DEAD]
    deaths = [each for each in readable if each.row.kind == DEAD]
    if alerts:
        first = alerts[0].row
        is_for_operators = (first.account or OWN_ACCOUNT) == OWN_ACCOUNT
        apart = first.channel == Channel.WEBHOOK
        for group in [[each] for each in alerts[:MOST_POSTS]] if apart else [alerts]:
            events = [each.content for each in group]
            yield [each.row for each in group], about_alerts(events, is_for_operators=is_for_operators)
    if deaths:
        account = deaths[0].row.account or OWN_ACCOUNT
        yield (
            [each.row for each in deaths],
            about_deaths(account, gathered([each.content for each in deaths])),
        )


def _for_an_owner(answer: ChannelAnswer) -> ChannelAnswer:
    """The mail server is the operators' and none of an owner's business."""
    if answer.ok or answer.channel != Channel.EMAIL:
        return answer
    said = "the mail server did not take the message; ask the operators of hookline"
    return msgspec.structs.replace(answer, detail=said)
