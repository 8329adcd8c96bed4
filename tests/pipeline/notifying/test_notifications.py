"""Messages reach people by mail, chat and webhook; what fails is tried again and touches nothing else."""

import smtplib
import ssl

import msgspec
import pytest

from hookline.clock import SystemClock
from hookline.model import OWN_ACCOUNT, Account, Notify
from hookline.pipeline.notifying.channels import Channels
from hookline.pipeline.notifying.mail import Mailer, MailSettings
from hookline.pipeline.notifying.notifications import HELD_S, Notifications
from hookline.pipeline.sending.client import HttpSender
from hookline.pipeline.sending.net import SystemNet
from hookline.rules.people import DEAD, FIRED, TRIES, masked, wait_before
from hookline.store.contract import NotificationRow
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
    "endpoints": {"ep_1": {"url": "https://a.example/", "count": 2, "answer": "503"}},
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
            self.store, self.hooks._catalogue, channels, self.world.clock, try_own_event=try_own_event
        )

    async def write(self, channel: str, recipient: str, *, kind=FIRED, account="acme", detail=None, wait=0.0):
        row = NotificationRow(
            channel=channel,
            recipient=recipient,
            kind=kind,
            account=account,
            detail=msgspec.json.encode(detail or ALERT).decode() if not isinstance(detail, str) else detail,
            due_at=self.world.clock.now() + wait,
        )
        await self.store.publish_announcements(
            [], [], notifications=[row], catalogue=self.hooks._catalogue.n, now=self.world.clock.now()
        )

    async def left(self) -> int:
        far = self.world.clock.now() + 10_000_000
        return len(await self.store.take_notifications(gather=DEAD, limit=100, now=far, until=far))


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
    await stage.write("email", "ops@acme.example", account=OWN_ACCOUNT)
    sending = stage.notifications(mailer=a_mailer(mail, username=USER, password=PASSWORD))
    assert await sending.send_due()
    [message] = mail.messages
    assert mail.was_encrypted == [True]
    assert mail.recipients == ["ops@acme.example"]
    assert (message["From"], message["To"]) == ("hookline@example.com", "ops@acme.example")
    assert message["Subject"] == "[hookline] Alert: It is <open> & shut."
    assert message["Auto-Submitted"] == "auto-generated"
    assert "Next step: hookline endpoints recover ep_1" in message.get_content()
    assert sending.sent == {"email": 1}
    assert await stage.left() == 0
    assert not await sending.send_due()


async def test_chat_gets_text_without_markup_of_its_own(stage, receiver: Receiver):
    await stage.write("slack", receiver.url("/chat"))
    await stage.notifications().send_due()
    [request] = receiver.requests
    assert request.headers["content-type"] == "application/json"
    said = msgspec.json.decode(request.body)
    assert list(said) == ["text"]
    assert said["text"].startswith("*Alert: It is &lt;open&gt; &amp; shut.*\n")
    assert await stage.left() == 0


async def test_a_webhook_gets_the_own_event(stage, receiver: Receiver):
    await stage.write("webhook", receiver.url("/hook"))
    await stage.notifications().send_due()
    assert [msgspec.json.decode(body) for body in receiver.bodies("/hook")] == [ALERT]


async def test_deaths_are_one_message_for_each_recipient(stage, receiver: Receiver):
    for path in ("/a", "/b"):
        for wait in (0.0, 900.0, 900.0):
            await stage.write("webhook", receiver.url(path), kind=DEAD, detail=DEATHS, wait=wait)
    assert await stage.notifications().send_due()
    for path in ("/a", "/b"):
        [body] = receiver.bodies(path)
        told = msgspec.json.decode(body)
        assert (told["type"], told["data"]["count"]) == ("deliveries.dead", 6)
    assert await stage.left() == 0


# --- failures ---


@pytest.mark.parametrize(
    "answer", [Answer(500), Answer(404, body=b"no_service"), Answer(302), Answer(hang_up=True)]
)
async def test_what_is_refused_is_tried_again_and_given_up_in_the_end(stage, receiver: Receiver, answer):
    receiver.answers["/chat"] = [answer]
    await stage.write("slack", receiver.url("/chat"))
    sending = stage.notifications()
    for tries in range(1, TRIES + 1):
        assert await sending.send_due(), tries
        assert not await sending.send_due(), "it waits"
        stage.world.clock.advance(wait_before(tries) or 0.0)
    assert sending.failed == {"slack": TRIES}
    assert await stage.left() == 0


async def test_it_arrives_when_the_receiver_is_back(stage, receiver: Receiver):
    receiver.answers["/chat"] = [Answer(503), Answer(200)]
    await stage.write("slack", receiver.url("/chat"))
    sending = stage.notifications()
    await sending.send_due()
    stage.world.clock.advance(wait_before(1))
    await sending.send_due()
    assert (sending.sent, sending.failed) == ({"slack": 1}, {"slack": 1})
    assert await stage.left() == 0


async def test_one_that_fails_holds_up_nobody(stage, receiver: Receiver, mail):
    mail.answer = "451 try later"
    await stage.write("email", "ops@acme.example")
    await stage.write("slack", "http://127.0.0.1:1/refuses")
    await stage.write("fax", "12345")
    await stage.write("webhook", receiver.url("/unreadable"), detail="no json")
    await stage.write("webhook", receiver.url("/no-alert"), detail="[]")
    await stage.write("webhook", receiver.url("/deaths"), kind=DEAD, detail="{}")
    await stage.write("webhook", receiver.url("/hook"))
    sending = stage.notifications(mailer=a_mailer(mail, username=USER, password=PASSWORD))
    await sending.send_due()
    assert [request.path for request in receiver.requests] == ["/hook"]
    assert sending.failed == {"email": 1, "slack": 1}
    assert await stage.left() == 2, "what nobody can read is gone"


async def test_who_dies_while_sending_leaves_it_to_the_next(stage, receiver: Receiver):
    await stage.write("slack", receiver.url("/chat"))
    now = stage.world.clock.now()
    [_] = await stage.store.take_notifications(gather=DEAD, limit=1, now=now, until=now + HELD_S)
    sending = stage.notifications()
    assert not await sending.send_due()
    stage.world.clock.advance(HELD_S)
    assert await sending.send_due()
    assert len(receiver.requests) == 1


# --- a test by hand ---


async def test_every_channel_is_tried_and_shows_its_answer(stage, receiver: Receiver, mail):
    receiver.answers["/chat"] = [Answer(403, body=b"invalid_token")]
    notify = Notify(email="ops@acme.example", slack=receiver.url("/chat"), webhook=receiver.url("/hook"))
    await stage.store.put_account(Account(id="acme", notify=notify), now=stage.world.clock.now())
    await stage.world.pass_until(stage.hooks._catalogue.catch_up())
    sending = stage.notifications(mailer=a_mailer(mail, username=USER, password=PASSWORD))
    email, slack, webhook = await sending.try_channels("acme")
    assert (email.ok, email.detail, email.recipient) == (True, "kept", "ops@acme.example")
    assert (slack.ok, slack.detail, slack.recipient) == (False, "403 invalid_token", masked(notify.slack))
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
        ({"username": USER, "password": "open sesame"}, True, "Authentication"),
        ({"port": 1}, True, "127.0.0.1:1"),
        ({"tls": "tls"}, True, ""),
        ({}, False, "STARTTLS"),  # never in clear text by accident
    ],
)
async def test_a_mail_server_that_does_not_take_it_is_an_answer(
    stage, tmp_path, monkeypatch, settings, starttls, said
):
    with mail_server(tmp_path, starttls=starttls) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
        await stage.write("email", "ops@acme.example")
        sending = stage.notifications(mailer=a_mailer(server, **settings))
        notify = Notify(email="ops@acme.example")
        await stage.store.put_account(Account(id="acme", notify=notify), now=stage.world.clock.now())
        await stage.world.pass_until(stage.hooks._catalogue.catch_up())
        await sending.send_due()
        assert sending.failed == {"email": 1}
        [answer] = await sending.try_channels("acme")
        assert not answer.ok
        assert said in answer.detail
        assert "sesame" not in answer.detail
        assert server.messages == []


async def test_a_certificate_that_nobody_vouches_for_is_refused(stage, tmp_path):
    with mail_server(tmp_path) as server:
        await stage.write("email", "ops@acme.example")
        sending = stage.notifications(mailer=a_mailer(server))
        await sending.send_due()
        assert (sending.failed, server.messages) == ({"email": 1}, [])


async def test_without_a_mail_server_the_answer_names_the_setting(stage):
    await stage.write("email", "ops@acme.example")
    notify = Notify(email="ops@acme.example")
    await stage.store.put_account(Account(id="acme", notify=notify), now=stage.world.clock.now())
    await stage.world.pass_until(stage.hooks._catalogue.catch_up())
    [answer] = await stage.notifications().try_channels("acme")
    assert (answer.ok, answer.detail) == (False, "no mail server is set: HOOKLINE_SMTP_HOST")


def test_the_mail_server_of_these_tests_wants_tls_and_a_login(mail):
    with smtplib.SMTP("127.0.0.1", mail.port) as client:
        assert client.mail("a@b.example")[0] == 530
        client.starttls(context=ssl.create_default_context(cafile=str(mail.authority)))
        client.ehlo()
        assert client.mail("a@b.example")[0] == 530
        client.login(USER, PASSWORD)
        assert client.mail("a@b.example")[0] == 250
