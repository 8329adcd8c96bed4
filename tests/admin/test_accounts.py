"""Which settings an account may have, what is shown of them, and what a test alert reports."""

import pytest

from factories import an_endpoint, ids
from hookline.admin.accounts import (
    AccountReport,
    Accounts,
    AlertTestReport,
    ChannelReport,
    NotifyReport,
)
from hookline.admin.audit import Audit
from hookline.crypto.sealing import Sealer
from hookline.errors import Invalid, NotFound
from hookline.model import Account, Notify
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.notifying.channels import ChannelAnswer
from hookline.rules.destination import canonical
from hookline.rules.people import masked
from hookline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio

HOOK = "https://acme.example/alerts?token=s3cret"
CHAT = "http://chat.acme.example:8065/hooks/s3cret"
SET = {"email": "ops@acme.example", "webhook": HOOK, "slack": CHAT}


class Bench:
    """The settings of accounts on a store, with the channels as the test wants them."""

    def __init__(self, store, answers=()):
        self.store = store
        self.answers = list(answers)
        self.tried = []
        self.catalogue = Catalogue(store)
        self.told = 0
        self.catalogue.on_own_change = self._tell
        self.accounts = Accounts(
            store,
            self.catalogue,
            ManualClock(),
            Audit(ManualClock(), ids),
            sealer=Sealer(),
            canonical=lambda url: canonical(url, private_allowed=False),
            try_channels=self._try,
        )

    def _tell(self):
        self.told += 1

    async def _try(self, account):
        self.tried.append(account)
        return self.answers

    async def put(self, **notify):
        return await self.accounts.put("acme", {"notify": notify})

    async def kept(self):
        return (await self.store.account("acme")).notify


@pytest.fixture
def bench(store):
    return Bench(store)


async def test_the_urls_are_stored_whole_and_shown_without_what_follows_the_host(bench):
    shown = await bench.put(**SET)
    assert shown == AccountReport(
        id="acme",
        notify=NotifyReport(
            email="ops@acme.example",
            webhook="https://acme.example/***",
            slack="http://chat.acme.example:8065/***",
        ),
        endpoints=0,
        updated_at=shown.updated_at,
    )
    assert shown.updated_at is not None
    assert await bench.accounts.read("acme") == shown
    assert await bench.kept() == Notify(**SET)


async def test_a_change_is_told_to_the_other_processes(bench):
    await bench.accounts.read("acme")
    assert bench.told == 0
    await bench.put(**SET)
    assert bench.told == 1


async def test_an_account_shows_how_many_endpoints_it_has(bench):
    for account in ("acme", "acme", "other"):
        await bench.store.create_endpoint(an_endpoint(account=account), now=1.0)
    await bench.catalogue.open()
    assert (await bench.accounts.read("acme")).endpoints == 2


async def test_a_url_as_it_is_shown_keeps_the_stored_one(bench):
    shown = (await bench.put(**SET)).notify
    await bench.put(email="new@acme.example", webhook=shown.webhook, slack=shown.slack)
    assert await bench.kept() == Notify(**{**SET, "email": "new@acme.example"})
    await bench.put(webhook=shown.webhook)
    assert await bench.kept() == Notify(webhook=HOOK)


@pytest.mark.parametrize("name", ["webhook", "slack"])
@pytest.mark.parametrize(
    "text",
    [
        "https://other.example/***",
        "http://acme.example/***",
        "https://acme.example:8443/***",
        "https://acme.example/alerts/***",
        "https://ACME.example/***",
        "/***",
    ],
)
async def test_a_masked_url_that_is_not_the_stored_one_s_is_refused(bench, name, text):
    await bench.put(**{name: HOOK})
    with pytest.raises(Invalid) as caught:
        await bench.put(**{name: text})
    assert (caught.value.code, caught.value.pointer) == ("invalid_field", f"/notify/{name}")
    assert "give the whole URL" in caught.value.detail
    assert "s3cret" not in caught.value.detail
    assert await bench.kept() == Notify(**{name: HOOK})


async def test_a_masked_url_keeps_nothing_of_another_channel_or_account(bench):
    shown = (await bench.put(webhook=HOOK)).notify.webhook
    with pytest.raises(Invalid):
        await bench.put(slack=shown)
    with pytest.raises(Invalid):
        await bench.accounts.put("other", {"notify": {"webhook": shown}})
    assert await bench.store.account("other") is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.example/", "https://a.example/***"),
        ("https://a.example/x?y=z", "https://a.example/***"),
        ("http://a.example:8065/?y", "http://a.example:8065/***"),
        ("http://[2001:db8::1]:81/x", "http://[2001:db8::1]:81/***"),
    ],
)
async def test_a_masked_url_has_its_scheme_host_and_port(url, shown):
    assert masked(url) == shown


@pytest.mark.parametrize(
    "address",
    [
        "ops@acme.example",
        "first.last+alerts@mail.acme.example",
        "o'neil@acme.example",
        "root@localhost",
        f"{'a' * 64}@b.example",
    ],
)
async def test_an_email_address_is_kept_as_it_is(bench, address):
    assert (await bench.put(email=address)).notify.email == address


@pytest.mark.parametrize(
    "address",
    [
        *("", "nobody", "@b.example", "a@", "a@b@c.example", "a@b..example", "a@.example", "a@b.example."),
        *("a..b@c.example", ".a@c.example", "a.@c.example", "a@-b.example", "a@b_c.example"),
        *("a b@c.example", "a@b.example,c@d.example", "a@b.example;c@d.example", "A <a@b.example>"),
        *("a@b.example\r\nbcc: c@d.example", "a@b.example\n", "\ta@b.example", "a\0@b.example"),
        *("é@b.example", "a@é.example", "a\u2028@b.example", "a\ud800@b.example"),
        *(f"{'a' * 65}@b.example", "a@" + "b." * 125 + "example", f"a@{'b' * 64}.example"),
        *(7, True, ["a@b.example"], {"to": "a@b.example"}),
    ],
)
async def test_what_is_not_one_address_is_refused(bench, address):
    with pytest.raises(Invalid) as caught:
        await bench.put(email=address)
    assert (caught.value.code, caught.value.pointer) == ("invalid_field", "/notify/email")
    assert await bench.store.account("acme") is None


async def test_a_test_alert_reports_what_every_channel_answered(store):
    answers = [
        ChannelAnswer(channel="email", recipient="ops@acme.example", ok=True, detail="250 queued"),
        ChannelAnswer(channel="slack", recipient="https://chat.example/***", ok=False, detail="404"),
    ]
    bench = Bench(store, answers)
    assert await bench.accounts.test("acme") == AlertTestReport(
        account="acme",
        results=[
            ChannelReport(channel="email", recipient="ops@acme.example", ok=True, detail="250 queued"),
            ChannelReport(channel="slack", recipient="https://chat.example/***", ok=False, detail="404"),
        ],
    )
    assert bench.tried == ["acme"]


async def test_what_no_account_can_be_called_is_not_found_and_not_tried(bench):
    for call in (bench.accounts.read, bench.accounts.test):
        with pytest.raises(NotFound):
            await call("a b")
    assert bench.tried == []
    with pytest.raises(Invalid):
        await bench.accounts.put("a b", {})


async def test_settings_of_another_version_are_shown_too(bench):
    """What was stored before the rules were as they are now."""
    await bench.store.put_account(Account(id="acme", notify=Notify(slack="https://a.example")), now=1.0)
    assert (await bench.accounts.read("acme")).notify.slack == "https://a.example/***"
