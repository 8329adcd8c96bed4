"""Messages reach people by mail, chat and webhook; what fails is tried again and touches nothing else."""

import asyncio
import smtplib
import socket
import ssl
from random import Random

import msgspec
import pytest

from factories import an_alert
from hookline import ids
from hookline.clock import SystemClock
from hookline.model import OWN_ACCOUNT, Account, Notify
from hookline.pipeline.notifying.channels import Channels
from hookline.pipeline.notifying.mail import Mailer, MailSettings
from hookline.pipeline.notifying.notifications import HELD_S, Notifications
from hookline.pipeline.sending.client import HttpSender
from hookline.pipeline.sending.net import SystemNet
from hookline.rules.people import DEAD, FIRED, GIVE_UP_S, LONGEST_WAIT_S, masked
from hookline.store.contract import NotificationRow
from hookline.store.contract.measuring.alerts import AlertChanges
from mail_server import PASSWORD, USER, mail_server
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

ALERT = {
    "type": FIRED,
    "at": "2026-11-18T10:00:01Z",
    "account": "acme",
    "data": {"kind": "circuit_open", "endpoint_id": "ep_1", "message": "It is <open> & shut."},
}
DEATHS = {
    "count": 2,
    "first_at": "2026-11-18T10:00:00Z",
    "last_at": "2026-11-18T10:00:01Z",
    "endpoints": {"ep_1": {"place": "a.example/", "count": 2, "answer": "503"}},
    "deliveries": ["dlv_1", "dlv_2"],
}


class Stage:
    """A database that nobody sends from, and a sender that the test moves. Requests have real time."""

    def __init__(self, world: World, hooks, sender: HttpSender) -> None:
        self.world = world
        self.hooks = hooks
        self.store = hooks.store
        self._sender = sender
        self.tested = []

    def notifications(self, *, mailer: Mailer | None = None) -> Notifications:
        async def try_own_event(payload: bytes) -> int:
            self.tested.append(payload)
            return 2

        channels = Channels(self._sender, SystemClock(), mailer=mailer, canonical=lambda url: url)
        return Notifications(
            self.store,
            self.hooks._catalogue,
            channels,
            self.world.clock,
            Random(1),
            try_own_event=try_own_event,
            open_notify=self.hooks.sealer.open_notify,
        )

    async def notify(self, account="acme", **channels) -> None:
        """Say where an account is told of trouble."""
        now = self.world.clock.now()
        await self.store.put_account(Account(id=account, notify=Notify(**channels)), now=now)
        await self.world.pass_until(self.hooks._catalogue.read_notified())

    async def write(self, channel: str, *, kind=FIRED, account="acme", detail=None, wait=0.0) -> None:
        """A message that is due, or will be."""
        text = detail if isinstance(detail, str) else msgspec.json.encode(detail or ALERT).decode()
        row = NotificationRow(
            channel=channel,
            recipient="as it was",
            kind=kind,
            account=account,
            detail=text,
            due_at=self.world.clock.now() + wait,
        )
        await self.store.publish_announcements(
            [], [], notifications=[row], catalogue=self.hooks._catalogue.n, now=self.world.clock.now()
        )

    async def left(self) -> int:
        far = self.world.clock.now() + 10_000_000
        return len(
            await self.store.take_notifications(
                channels=["email", "slack", "webhook"], gather=DEAD, limit=100, now=far, until=far
            )
        )


async def sent(sending: Notifications) -> bool:
    """Send all that is due, and wait for the answers; whether there was anything."""
    found = [await sending.send_mails(), await sending.send_posts()]
    await asyncio.gather(*sending._mails.tasks, *sending._posts.tasks)
    return any(found)


@pytest.fixture
async def stage(world: World):
    hooks = await world.start(deliver=False)
    sender = HttpSender(
        SystemNet(), SystemClock(), gate=lambda: True, vet=lambda *_: True, lookup_timeout=60.0
    )
    yield Stage(world, hooks, sender)
    await sender.close()


def a_mailer(server, **fields) -> Mailer:
    given = {
        "host": "127.0.0.1",
        "port": server.port,
        "tls": "starttls",
        "username": None,
        "password": None,
        "sender": "hookline@example.com",
    }
    return Mailer(MailSettings(**given | fields), SystemClock())


@pytest.fixture
def mail(tmp_path, monkeypatch):
    """A mail server whose authority this machine trusts, as it would by its administrator."""
    with mail_server(tmp_path, login=True) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
        yield server


# --- channels ---


async def test_an_alert_is_mailed_over_tls_with_a_login(stage, mail):
    await stage.notify(OWN_ACCOUNT, email="ops@acme.example")
    await stage.write("email", account=OWN_ACCOUNT)
    sending = stage.notifications(mailer=a_mailer(mail, username=USER, password=PASSWORD))
    assert await sent(sending)
    [message] = mail.messages
    assert mail.was_encrypted == [True]
    assert mail.recipients == ["ops@acme.example"]
    assert (message["From"], message["To"]) == ("hookline@example.com", "ops@acme.example")
    assert message["Subject"] == "[hookline] Alert: It is <open> & shut."
    assert message["Auto-Submitted"] == "auto-generated"
    assert "Next step: hookline endpoints recover ep_1" in message.get_content()
    assert sending.sent == {"email": 1}
    assert await stage.left() == 0
    assert not await sent(sending)


async def test_chat_gets_text_without_markup_of_its_own(stage, receiver: Receiver):
    await stage.notify(slack=receiver.url("/chat"))
    await stage.write("slack")
    await sent(stage.notifications())
    [request] = receiver.requests
    assert request.headers["content-type"] == "application/json"
    said = msgspec.json.decode(request.body)
    assert list(said) == ["text"]
    assert said["text"].startswith("*Alert: It is &lt;open&gt; &amp; shut.*\n")
    assert await stage.left() == 0


async def test_a_webhook_gets_each_own_event_with_a_key(stage, receiver: Receiver):
    await stage.notify(webhook=receiver.url("/hook"))
    for _ in range(2):
        await stage.write("webhook")
    await sent(stage.notifications())
    assert [msgspec.json.decode(body) for body in receiver.bodies("/hook")] == [ALERT, ALERT]
    keys = {request.headers["idempotency-key"] for request in receiver.requests}
    assert len(keys) == 2


async def test_alerts_that_are_due_together_are_one_message_to_people(stage, receiver: Receiver):
    await stage.notify(slack=receiver.url("/chat"))
    for _ in range(300):
        await stage.write("slack")
    await sent(stage.notifications())
    [body] = receiver.bodies("/chat")
    assert msgspec.json.decode(body)["text"].startswith("*300 alerts. Alert: ")
    assert await stage.left() == 0


async def test_deaths_are_one_message_for_each_recipient(stage, receiver: Receiver):
    for account in ("a", "b"):
        await stage.notify(account, webhook=receiver.url(f"/{account}"))
        for wait in (0.0, 900.0, 900.0):
            await stage.write("webhook", kind=DEAD, account=account, detail=DEATHS, wait=wait)
    assert await sent(stage.notifications())
    for path in ("/a", "/b"):
        [body] = receiver.bodies(path)
        told = msgspec.json.decode(body)
        assert (told["type"], told["data"]["count"]) == ("deliveries.dead", 6)
    assert await stage.left() == 0


async def test_a_message_goes_where_the_account_wants_it_now(stage, receiver: Receiver):
    await stage.notify(slack=receiver.url("/old"))
    await stage.write("slack")
    await stage.notify(slack=receiver.url("/new"))
    await sent(stage.notifications())
    assert [request.path for request in receiver.requests] == ["/new"]
    await stage.write("slack")
    await stage.notify()
    assert await sent(stage.notifications())
    assert len(receiver.requests) == 1
    assert await stage.left() == 0


# --- failures ---


@pytest.mark.parametrize(
    "answer", [Answer(500), Answer(404, body=b"no_service"), Answer(302), Answer(hang_up=True)]
)
async def test_what_is_refused_is_tried_again_and_given_up_in_the_end(stage, receiver: Receiver, answer):
    receiver.answers["/chat"] = [answer]
    await stage.notify(slack=receiver.url("/chat"))
    await stage.write("slack")
    sending = stage.notifications()
    rounds = 0
    while await sent(sending):
        rounds += 1
        assert not await sent(sending), "it waits"
        stage.world.clock.advance(LONGEST_WAIT_S + 1)
    assert rounds == 1 + GIVE_UP_S / LONGEST_WAIT_S
    assert sending.failed == {"slack": rounds}
    assert await stage.left() == 0


async def test_a_fresh_message_is_not_given_up_with_an_old_one(stage, receiver: Receiver):
    receiver.answers["/hook"] = [Answer(500), Answer(500), Answer(200)]
    await stage.notify(webhook=receiver.url("/hook"))
    await stage.write("webhook", kind=DEAD, detail=DEATHS)
    sending = stage.notifications()
    await sent(sending)
    stage.world.clock.advance(GIVE_UP_S + 1)
    await stage.write("webhook", kind=DEAD, detail=DEATHS)
    await sent(sending)
    stage.world.clock.advance(LONGEST_WAIT_S + 1)
    await sent(sending)
    [*_, last] = receiver.bodies("/hook")
    assert msgspec.json.decode(last)["data"]["count"] == DEATHS["count"]
    assert len(receiver.requests) == 3
    assert await stage.left() == 0


async def test_it_arrives_when_the_receiver_is_back_after_the_wait_it_asked_for(stage, receiver: Receiver):
    receiver.answers["/chat"] = [Answer(429, headers={"Retry-After": "600"}), Answer(200)]
    await stage.notify(slack=receiver.url("/chat"))
    await stage.write("slack")
    sending = stage.notifications()
    await sent(sending)
    stage.world.clock.advance(598.0)
    assert not await sent(sending)
    stage.world.clock.advance(3.0)
    await sent(sending)
    assert (sending.sent, sending.failed) == ({"slack": 1}, {"slack": 1})
    assert await stage.left() == 0


async def test_at_the_first_failure_the_rest_for_this_recipient_waits(stage, receiver: Receiver):
    receiver.answers["/hook"] = [Answer(200), Answer(500)]
    await stage.notify(webhook=receiver.url("/hook"))
    for _ in range(9):
        await stage.write("webhook")
    await sent(stage.notifications())
    assert len(receiver.requests) == 2
    assert await stage.left() == 8


async def test_who_hangs_holds_up_nobody(stage, receiver: Receiver):
    hold = asyncio.Event()
    receiver.answers["/hangs"] = [Answer(hold=hold)]
    await stage.notify("hangs", slack=receiver.url("/hangs"))
    await stage.notify("acme", slack=receiver.url("/chat"))
    await stage.write("slack", account="hangs")
    await stage.write("slack")
    sending = stage.notifications()
    await sending.send_posts()
    await receiver.wait_for(lambda: receiver.bodies("/chat"))
    await stage.write("slack")
    await sending.send_posts()
    await receiver.wait_for(lambda: len(receiver.bodies("/chat")) == 2)
    assert sending.failed == {}
    hold.set()
    await sending.close()
    assert await stage.left() == 0, "each was ended by itself"


async def test_one_that_fails_spoils_itself_alone(stage, receiver: Receiver, mail):
    mail.answer = "451 try later"
    await stage.notify("a", email="ops@acme.example")
    await stage.notify("b", slack="http://127.0.0.1:1/refuses")
    await stage.notify("c", slack="http://[bad/x")
    await stage.notify("d", webhook=receiver.url("/d"))
    await stage.notify("e", webhook=receiver.url("/e"))
    await stage.write("email", account="a")
    await stage.write("slack", account="b")
    await stage.write("slack", account="c")
    for detail in ("no json", "[]", {"type": FIRED, "data": {"kind": []}}):
        await stage.write("webhook", account="d", detail=detail)
    await stage.write("webhook", account="d", kind=DEAD, detail="{}")
    await stage.write("webhook", account="d", kind=DEAD, detail=DEATHS)
    await stage.write("webhook", account="e")
    sending = stage.notifications(mailer=a_mailer(mail, username=USER, password=PASSWORD))
    await sent(sending)
    assert sorted(request.path for request in receiver.requests) == ["/d", "/e"]
    assert sending.failed == {"email": 1, "slack": 1}
    assert not await sent(sending), "what broke waits too"
    assert await stage.left() == 3, "what nobody can read is gone"


async def test_that_an_alert_fired_is_not_told_after_it_is_resolved(stage, receiver: Receiver):
    alert = an_alert()
    detail = {**ALERT, "data": {"kind": "dead_letters", "id": ids.show("alert", alert.id)}}
    now = stage.world.clock.now()
    await stage.store.write_alerts(AlertChanges(fire=(alert,)), now=now)
    receiver.answers["/hook"] = [Answer(503), Answer(200)]
    await stage.notify(webhook=receiver.url("/hook"))
    await stage.write("webhook", detail=detail)
    sending = stage.notifications()
    await sent(sending)
    await stage.store.write_alerts(AlertChanges(resolve=(alert.id,)), now=now + 1)
    await stage.write(
        "webhook", kind="alert.resolved", detail={**detail, "type": "alert.resolved"}, wait=40.0
    )
    stage.world.clock.advance(60.0)
    await sent(sending)
    told = [msgspec.json.decode(body)["type"] for body in receiver.bodies("/hook")]
    assert told == [FIRED, "alert.resolved"]
    assert await stage.left() == 0


async def test_who_dies_while_sending_leaves_it_to_the_next(stage, receiver: Receiver):
    await stage.notify(slack=receiver.url("/chat"))
    await stage.write("slack")
    now = stage.world.clock.now()
    [_] = await stage.store.take_notifications(
        channels=["slack"], gather=DEAD, limit=1, now=now, until=now + HELD_S
    )
    sending = stage.notifications()
    assert not await sent(sending)
    stage.world.clock.advance(HELD_S + 1)
    assert await sent(sending)
    assert len(receiver.requests) == 1


# --- a test by hand ---


async def test_every_channel_is_tried_and_shows_its_answer(stage, receiver: Receiver, mail):
    receiver.answers["/chat"] = [Answer(403, body=b"invalid_token")]
    slack = receiver.url("/chat")
    await stage.notify(email="ops@acme.example", slack=slack, webhook=receiver.url("/hook"))
    sending = stage.notifications(mailer=a_mailer(mail, username=USER, password=PASSWORD))
    email, chat, webhook = await sending.try_channels("acme")
    assert (email.ok, email.detail, email.recipient) == (True, "250 kept", "ops@acme.example")
    assert (chat.ok, chat.detail, chat.recipient) == (False, "403 invalid_token", masked(slack))
    assert (webhook.ok, webhook.detail) == (True, "200")
    assert msgspec.json.decode(receiver.bodies("/hook")[0])["type"] == "alert.test"
    assert await sending.try_channels("other") == []
    assert stage.tested == []


async def test_own_events_are_tried_for_the_operators(stage, receiver: Receiver):
    sending = stage.notifications()
    assert await sending.try_channels(OWN_ACCOUNT) == []
    await stage.world.pass_until(
        stage.hooks.create_endpoint(url=receiver.url(), events=["alert.*"], account=OWN_ACCOUNT)
    )
    [answer] = await sending.try_channels(OWN_ACCOUNT)
    assert (answer.channel, answer.ok) == ("events", True)
    assert answer.detail == "alert.test was published to 2 endpoints"
    assert len(stage.tested) == 1


# --- mail servers ---


@pytest.mark.parametrize(
    ("settings", "starttls", "said"),
    [
        ({"username": USER, "password": "open sesame"}, True, "535"),
        ({"port": 1}, True, "refused"),
        ({"tls": "tls"}, True, "SSL"),
        ({}, False, "STARTTLS"),  # never in clear text by accident
    ],
)
async def test_a_mail_server_that_does_not_take_it_is_an_answer(
    stage, tmp_path, monkeypatch, settings, starttls, said
):
    with mail_server(tmp_path, starttls=starttls) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
        for account in (OWN_ACCOUNT, "acme"):
            await stage.notify(account, email="ops@acme.example")
            await stage.write("email", account=account)
        sending = stage.notifications(mailer=a_mailer(server, **settings))
        await sent(sending)
        assert sending.failed == {"email": 2}
        [answer] = await sending.try_channels(OWN_ACCOUNT)
        assert (answer.ok, said in answer.detail, "sesame" in answer.detail) == (False, True, False), answer
        [answer] = await sending.try_channels("acme")
        assert answer.detail == "the mail server did not take the message; ask the operators of hookline"
        assert server.messages == []


async def test_a_mail_server_that_hangs_keeps_nobody_waiting(stage, receiver: Receiver):
    """Neither the loop nor the other channels."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        await stage.notify(email="ops@acme.example", slack=receiver.url("/chat"))
        await stage.write("email")
        await stage.write("slack")
        mailer = Mailer(
            MailSettings(
                host="127.0.0.1",
                port=mute.getsockname()[1],
                tls="none",
                username=None,
                password=None,
                sender="a@b.example",
            ),
            SystemClock(),
        )
        sending = stage.notifications(mailer=mailer)
        await sending.send_mails()
        await sending.send_posts()
        await receiver.wait_for(lambda: receiver.bodies("/chat"))
        [task] = sending._mails.tasks
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert sending.sent == {"slack": 1}


async def test_a_certificate_that_nobody_vouches_for_is_refused(stage, tmp_path):
    with mail_server(tmp_path) as server:
        await stage.notify(email="ops@acme.example")
        await stage.write("email")
        sending = stage.notifications(mailer=a_mailer(server))
        await sent(sending)
        assert (sending.failed, server.messages) == ({"email": 1}, [])


async def test_without_a_mail_server_the_answer_names_the_setting_and_mail_is_left_to_others(stage):
    await stage.notify(OWN_ACCOUNT, email="ops@acme.example")
    await stage.write("email", account=OWN_ACCOUNT)
    sending = stage.notifications()
    [answer] = await sending.try_channels(OWN_ACCOUNT)
    assert (answer.ok, answer.detail) == (False, "no mail server is set: HOOKLINE_SMTP_HOST")
    assert not await sending._drop_mails()
    stage.world.clock.advance(3_601.0)
    assert await sending._drop_mails(), "nobody else sent it within an hour"
    assert await stage.left() == 0


def test_the_mail_server_of_these_tests_wants_tls_and_a_login(mail):
    with smtplib.SMTP("127.0.0.1", mail.port) as client:
        assert client.mail("a@b.example")[0] == 530
        client.starttls(context=ssl.create_default_context(cafile=str(mail.authority)))
        client.ehlo()
        assert client.mail("a@b.example")[0] == 530
        client.login(USER, PASSWORD)
        assert client.mail("a@b.example")[0] == 250
