"""A copy of the database gives away no secret when a key is set, and each can be read only with its key."""

import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path

import msgspec
import psycopg
import pytest

from hookline.admin.portal import PortalLinks
from hookline.admin.resealing import Rewritten, SealCounts, count_seals, seal_all, unseal_all
from hookline.admin.secrets import RotationInput
from hookline.app import Hookline, audit_of
from hookline.config import Settings
from hookline.crypto.sealing import PREFIX, Seal, Sealer
from hookline.errors import ConfigError, Invalid, SealBroken
from hookline.ids import read
from hookline.model import Account, EndpointId, Notify
from hookline.rules.people import masked
from tests.planting import is_sqlite
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

OLD, NEW, OTHER = "old-key-" * 5, "new-key-" * 5, "another-key-" * 3
SIGNING = b64encode(b"canary-of-the-signing-secret").decode()
ROTATED = b64encode(b"canary-of-the-rotated-secret").decode()
HEADER, ANOTHER_HEADER = "Bearer canary-of-a-header", "canary-of-another-header"
CHAT, HOOK = "canary-of-the-chat", "canary-of-the-webhook"
PASSWORD = "canary-of-the-mail-server"


@pytest.fixture
def anyio_backend():
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/hooks.db"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def world(database):
    world = World(database)
    yield world
    await world.close()


@pytest.fixture
async def receiver():
    receiver = Receiver()
    await receiver.start()
    yield receiver
    await receiver.stop()


def dump(database: str) -> str:
    """Every row of every table, as anybody with a copy sees it; of a file also what deleted rows left in it."""
    if is_sqlite(database):
        path = Path(database.removeprefix("sqlite:///"))
        with closing(sqlite3.connect(path)) as connection:
            rows = "\n".join(connection.iterdump())
        files = [path, path.with_name(f"{path.name}-wal")]
        return rows + "".join(each.read_bytes().decode("latin-1") for each in files if each.exists())
    with psycopg.connect(database) as session:
        tables = session.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'hookline' ORDER BY 1"
        ).fetchall()
        found = []
        for (table,) in tables:
            found += session.execute(f"SELECT row_to_json(t)::text FROM hookline.{table} t").fetchall()  # type: ignore[arg-type]
        return "\n".join(row for (row,) in found)


def messages(database: str) -> int:
    """How many messages to people are stored."""
    statement = "SELECT count(*) FROM notifications"
    if is_sqlite(database):
        with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as connection:
            return int(connection.execute(statement).fetchone()[0])
    with psycopg.connect(database, options="-c search_path=hookline") as session:
        return int(session.execute(statement).fetchone()[0])  # type: ignore[index]


def forms(secret: str) -> list[str]:
    """How a secret may stand in a dump: as text, or as the bytes of a column."""
    return [secret, secret.encode().hex(), b64encode(secret.encode()).decode().rstrip("=")]


async def filled(hooks, world: World, receiver: Receiver) -> dict[str, str]:
    """Everything secret that can be stored, by name. Whoever has it may sign, log in or write somewhere."""
    receiver.answers["/refused"].append(Answer(500))
    endpoint = await world.pass_until(
        hooks.create_endpoint(
            url=receiver.url("/refused"),
            events=["*"],
            account="acme",
            secret=f"whsec_{SIGNING}",
            headers={"Authorization": HEADER},
            retry={"schedule": [0], "jitter": "none"},
        )
    )
    id = EndpointId(read("endpoint", endpoint.id))
    await world.pass_until(hooks.update_endpoint(endpoint.id, headers={"x-token": ANOTHER_HEADER}))
    await world.pass_until(hooks.rotation.rotate(id, RotationInput(secret=f"whsec_{ROTATED}")))
    channels = {"slack": receiver.url(f"/{CHAT}"), "webhook": receiver.url(f"/{HOOK}")}
    await world.pass_until(hooks.accounts.put("acme", {"notify": channels}))
    key = await world.pass_until(hooks.keys.create({"name": "ci", "scopes": ["admin"]}))
    links = PortalLinks(hooks.store, hooks.clock, hooks.settings, audit_of())
    link = await world.pass_until(links.mint("acme", key_digest=b"", reached_at="http://127.0.0.1"))
    event = await world.pass_until(hooks.publish("order.paid", {"id": 42}, account="acme"))
    # The messages about the death are written, and not yet due.
    await world.until(lambda: messages(hooks.settings.database) > 0)
    assert masked(receiver.url("/")) in dump(hooks.settings.database)
    sent = next(each for each in receiver.requests if each.path == "/refused")
    assert sent.headers["authorization"] == HEADER
    assert (await world.delivery(hooks, event.id)).state == "dead"
    return {
        "signing secret": SIGNING,
        "rotated secret": ROTATED,
        "header": HEADER,
        "header of a patch": ANOTHER_HEADER,
        "chat": CHAT,
        "webhook": HOOK,
        "api key": key.key,
        "portal link": link.path.partition("token=")[2],
        "mail password": PASSWORD,
    }


def settings_of(key: str | None) -> dict[str, object]:
    return {
        "secret_key": () if key is None else tuple(key.split(",")),
        "smtp_host": "127.0.0.1",
        "smtp_port": 9,
        "smtp_username": "hookline",
        "smtp_password": PASSWORD,
        "mail_from": "hookline@example.com",
    }


async def test_a_dump_of_every_table_holds_no_secret_when_a_key_is_set(world, receiver):
    hooks = await world.start(**settings_of(OLD))
    secrets = await filled(hooks, world, receiver)
    await world.stop(hooks)
    text = dump(world.database)
    assert [name for name, secret in secrets.items() for form in forms(secret) if form in text] == []
    assert OLD not in text
    assert text.count(PREFIX) >= 6, "two secrets, two headers, two URLs"


async def test_without_a_key_the_same_dump_shows_what_is_sealed_and_nothing_that_is_hashed(world, receiver):
    """The dump is one that finds secrets: the test above would be worth nothing otherwise."""
    hooks = await world.start(**settings_of(None))
    secrets = await filled(hooks, world, receiver)
    await world.stop(hooks)
    text = dump(world.database)
    found = {name for name, secret in secrets.items() if any(form in text for form in forms(secret))}
    assert found == {
        "signing secret",
        "rotated secret",
        "header",
        "header of a patch",
        "chat",
        "webhook",
    }


async def test_what_is_sealed_is_sent_and_shown_as_ever(world, receiver):
    hooks = await world.start(**settings_of(OLD))
    await filled(hooks, world, receiver)
    await world.stop(hooks)
    hooks = await world.start(**settings_of(OLD))
    shown = (await hooks.accounts.read("acme")).notify
    assert (shown.slack, shown.webhook) == (masked(receiver.url("/x")), masked(receiver.url("/x")))
    kept = await world.pass_until(hooks.accounts.put("acme", {"notify": {"slack": shown.slack}}))
    assert kept.notify.slack == shown.slack
    answers = await world.pass_until(hooks.notifications.try_channels("acme"))
    assert [(each.channel, each.ok) for each in answers] == [("slack", True)]
    assert receiver.bodies(f"/{CHAT}")
    await world.pass_until(hooks.publish("order.paid", {}, account="acme"))
    await world.until(lambda: len([each for each in receiver.requests if each.path == "/refused"]) >= 2)
    last = [each for each in receiver.requests if each.path == "/refused"][-1]
    assert (last.headers["authorization"], last.headers["x-token"]) == (HEADER, ANOTHER_HEADER)


async def test_what_an_earlier_version_stored_plain_goes_on_working_and_is_sealed_by_the_next_write(
    world, receiver
):
    hooks = await world.start(**settings_of(None))
    secrets = await filled(hooks, world, receiver)
    await world.stop(hooks)
    hooks = await world.start(**settings_of(OLD))
    assert (await world.pass_until(hooks.notifications.try_channels("acme")))[0].ok
    [endpoint] = (await hooks.store.catalogue()).endpoints
    shown = (await hooks.accounts.read("acme")).notify
    put = {"slack": shown.slack, "webhook": shown.webhook}
    assert (await world.pass_until(hooks.accounts.put("acme", {"notify": put}))).notify == shown
    [stored] = await hooks.store.accounts(limit=9)
    assert (stored.notify.slack[:8], stored.notify.webhook[:8]) == (PREFIX, PREFIX)
    assert hooks.sealer.open_notify(stored).slack == receiver.url(f"/{CHAT}")
    assert endpoint.headers["Authorization"] == secrets["header"]
    await world.stop(hooks)


async def test_sealing_all_of_it_leaves_nothing_plain_and_unsealing_brings_it_back(world, receiver):
    hooks = await world.start(**settings_of(None))
    await filled(hooks, world, receiver)
    before = (await hooks.store.catalogue()).endpoints, await hooks.store.accounts(limit=9)
    sealer = Sealer([OLD])
    assert await world.pass_until(seal_all(hooks.store, sealer, audit_of())) == Rewritten(1, 1)
    assert await world.pass_until(seal_all(hooks.store, sealer, audit_of())) == Rewritten(0, 0)
    [endpoint] = (await hooks.store.catalogue()).endpoints
    [account] = await hooks.store.accounts(limit=9)
    assert sealer.seals_of(endpoint) == sealer.seals_of(account) == {Seal.CURRENT}
    assert await world.pass_until(unseal_all(hooks.store, sealer, audit_of())) == Rewritten(1, 1)
    [endpoint] = (await hooks.store.catalogue()).endpoints
    [account] = await hooks.store.accounts(limit=9)
    assert msgspec.structs.replace(endpoint, updated_at=0.0) == msgspec.structs.replace(
        before[0][0], updated_at=0.0
    )
    assert account.notify == before[1][0].notify


async def test_a_key_is_changed_with_an_overlap_and_the_count_says_when_the_old_one_may_go(world, receiver):
    hooks = await world.start(**settings_of(OLD))
    await filled(hooks, world, receiver)
    await world.stop(hooks)
    both = f"{NEW},{OLD}"
    hooks = await world.start(**settings_of(both))
    report = await count(hooks, both)
    assert (report.endpoints.older, report.accounts.older, report.is_whole) == (1, 1, False)
    assert (await world.pass_until(hooks.notifications.try_channels("acme")))[0].ok, "the old key opens it"
    # A write seals with the new key.
    shown = (await hooks.accounts.read("acme")).notify
    await world.pass_until(hooks.accounts.put("acme", {"notify": {"slack": shown.slack}}))
    report = await count(hooks, both)
    assert (report.accounts, report.is_whole) == (SealCounts(current=1), False)
    assert await world.pass_until(seal_all(hooks.store, hooks.sealer, audit_of())) == Rewritten(1, 0)
    report = await count(hooks, both)
    assert report.endpoints == report.accounts == SealCounts(current=1)
    assert (report.mark, report.is_whole) == (Seal.CURRENT, True)
    await world.stop(hooks)
    hooks = await world.start(**settings_of(NEW))
    assert (await world.pass_until(hooks.notifications.try_channels("acme")))[0].ok
    await world.stop(hooks)
    with pytest.raises(ConfigError, match="HOOKLINE_SECRET_KEY"):
        await refused(world, OLD)


async def test_a_process_that_opens_both_keys_and_still_seals_with_the_old_one_reads_what_the_new_one_sealed(
    world, receiver
):
    """The first step of a change without a gap: every process can open both before one of them seals anew."""
    hooks = await world.start(**settings_of(OLD))
    await filled(hooks, world, receiver)
    assert await world.pass_until(seal_all(hooks.store, Sealer([NEW, OLD]), audit_of())) == Rewritten(1, 1)
    await world.stop(hooks)
    hooks = await world.start(**settings_of(f"{OLD},{NEW}"))
    assert (await world.pass_until(hooks.notifications.try_channels("acme")))[0].ok
    report = await count(hooks, f"{OLD},{NEW}")
    assert (report.endpoints.older, report.endpoints.closed) == (1, 0)


async def count(hooks, key: str):
    keys = key.split(",")
    return await count_seals(hooks.store, Sealer(keys), keys=len(keys))


async def refused(world: World, key: str | None) -> None:
    settings = Settings(dev=True, **settings_of(key))  # type: ignore[arg-type]
    hooks = Hookline(world.database, settings=settings, clock=world.clock)
    try:
        await world.pass_until(hooks.start())
    finally:
        await hooks.store.close()


@pytest.mark.parametrize(("key", "error"), [(None, SealBroken), (OTHER, ConfigError)], ids=["none", "wrong"])
@pytest.mark.parametrize("what", ["endpoint", "account"])
async def test_a_start_is_refused_when_the_key_does_not_fit(world, receiver, key, error, what):
    hooks = await world.start(**settings_of(OLD))
    if what == "endpoint":
        await hooks.create_endpoint(url=receiver.url(), events=["*"])
    else:
        await world.pass_until(hooks.accounts.put("acme", {"notify": {"slack": receiver.url("/s")}}))
    await world.stop(hooks)
    with pytest.raises(error, match="HOOKLINE_SECRET_KEY") as caught:
        await refused(world, key)
    assert "\n" not in str(caught.value)


async def test_a_header_alone_that_is_sealed_refuses_a_start_without_the_key(world, receiver):
    hooks = await world.start(**settings_of(OLD))
    await hooks.create_endpoint(url=receiver.url(), events=["*"], headers={"x-token": HEADER})
    [stored] = (await hooks.store.catalogue()).endpoints
    plain = msgspec.structs.replace(
        stored, secret=hooks.sealer.opened(stored).secret, updated_at=stored.updated_at + 1
    )
    assert await hooks.store.update_endpoint(plain, was=stored.updated_at, now=world.clock.now())
    await world.stop(hooks)
    with pytest.raises(SealBroken, match="HOOKLINE_SECRET_KEY is not set"):
        await refused(world, None)


async def test_a_process_that_cannot_open_a_header_sends_nothing_and_the_deliveries_wait(world, receiver):
    hooks = await world.start(**settings_of(None))
    created = await hooks.create_endpoint(
        url=receiver.url("/sealed"),
        events=["*"],
        headers={"x-a": "b" * 8_000},  # sealed, it is longer than a header may be
        retry={"schedule": [0], "jitter": "none"},
    )
    [stored] = (await hooks.store.catalogue()).endpoints
    sealed = Sealer([OTHER]).sealed(stored)
    changed = msgspec.structs.replace(
        sealed, secret=stored.secret, headers=sealed.headers, updated_at=stored.updated_at + 1
    )
    assert await hooks.store.update_endpoint(changed, was=stored.updated_at, now=world.clock.now())
    await world.pass_until(hooks._catalogue.include_own())
    event = await world.pass_until(hooks.publish("order.paid", {}))
    await hooks.create_endpoint(url=receiver.url("/plain"), events=["other"])
    await world.pass_until(hooks.publish("other", {}))
    await world.until(lambda: receiver.bodies("/plain"))
    assert receiver.bodies("/sealed") == []
    assert (await world.delivery(hooks, event.id)).state == "pending"
    # A header given anew, and a new secret, make it usable again.
    await world.pass_until(hooks.update_endpoint(created.id, headers={"x-a": "c"}))
    await world.until(lambda: receiver.bodies("/sealed"))
    assert receiver.requests[-1].headers["x-a"] == "c"


async def test_an_account_that_no_key_opens_is_told_by_mail_alone_and_can_be_set_anew(world, receiver):
    hooks = await world.start(**settings_of(None))
    url = receiver.url("/s")
    sealed = Sealer([OTHER]).sealed_notify(Account(id="acme", notify=Notify(slack=url, email="a@b.example")))
    await hooks.store.put_account(Account(id="acme", notify=sealed), now=world.clock.now())
    await world.pass_until(hooks._catalogue.read_notified())
    assert hooks._catalogue.notified["acme"] == Notify(email="a@b.example")
    with pytest.raises(Invalid, match="give the whole URL"):
        await world.pass_until(hooks.accounts.put("acme", {"notify": {"slack": masked(url)}}))
    assert (
        await world.pass_until(hooks.accounts.put("acme", {"notify": {"slack": url}}))
    ).notify.slack == masked(url)


def test_a_sealed_url_is_worth_nothing_in_another_account_or_channel():
    sealer = Sealer([OLD])
    sealed = sealer.sealed_notify(Account(id="acme", notify=Notify(slack="https://a.example/x")))
    for account in (
        Account(id="other", notify=sealed),
        Account(id="acme", notify=Notify(webhook=sealed.slack)),
    ):
        with pytest.raises(SealBroken):
            sealer.open_notify(account)
