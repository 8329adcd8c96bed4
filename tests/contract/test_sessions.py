"""Sessions are kept until they end, and a portal link opens one visit."""

import asyncio

import msgspec
import pytest

from factories import NOW, a_session
from hookline.model import Scope, SessionKind
from hookline.store.contract.access.sessions import EXPIRED_AT_ONCE

pytestmark = pytest.mark.anyio

KEY, OTHER_KEY = b"k" * 32, b"o" * 32


def a_link(**fields):
    defaults = {
        "kind": SessionKind.LINK,
        "key_digest": KEY,
        "account": "acme",
        "scopes": (Scope.READ, Scope.ADMIN),
        "expires_at": NOW + 300,
        "visit_s": 600.5,
    }
    return a_session(**(defaults | fields))


def a_visit(**fields):
    return a_session(**({"kind": SessionKind.PORTAL, "expires_at": NOW + 86_400} | fields))


def opened(visit, link, *, ends):
    return msgspec.structs.replace(
        visit, key_digest=link.key_digest, account=link.account, scopes=link.scopes, expires_at=ends
    )


@pytest.mark.parametrize(
    "session",
    [
        a_session(),
        a_session(key_digest=b""),
        a_link(),
        a_visit(account="acme", scopes=(Scope.READ,), created_at=NOW + 0.25),
    ],
    ids=["login", "needs no key", "link", "visit"],
)
async def test_a_session_is_kept_as_it_was_made(store, session):
    await store.create_session(session, now=NOW)
    assert await store.session(session.digest) == session
    assert await store.session(a_session().digest) is None


async def test_a_session_that_is_made_twice_stays_as_it_is(store):
    session = a_session()
    await store.create_session(session, now=NOW)
    await store.see_session(session.digest, now=NOW + 1)
    await store.create_session(session, now=NOW)  # a repeat whose first answer was lost
    assert (await store.session(session.digest)).seen_at == NOW + 1


async def test_an_expired_session_is_there_until_another_is_made(store):
    expired, lasting = a_session(expires_at=NOW), a_session(expires_at=NOW + 0.5)
    await store.create_session(expired, now=NOW - 1)
    await store.create_session(lasting, now=NOW - 1)
    assert await store.session(expired.digest) == expired
    await store.create_session(a_session(), now=NOW)
    assert await store.session(expired.digest) is None
    assert await store.session(lasting.digest) == lasting


async def test_a_new_session_deletes_a_hundred_expired_ones_at_most(store):
    expired = [a_session(expires_at=NOW + n) for n in range(EXPIRED_AT_ONCE + 1)]
    for session in expired:
        await store.create_session(session, now=NOW - 1)
    await store.create_session(a_session(), now=NOW + 1_000)
    left = [each for each in expired if await store.session(each.digest) is not None]
    assert left == expired[-1:]


async def test_the_time_of_the_last_use_moves_forward_only(store):
    session, other = a_session(), a_session()
    await store.create_session(session, now=NOW)
    await store.create_session(other, now=NOW)
    for now, seen_at in ((NOW + 5, NOW + 5), (NOW + 3, NOW + 5), (NOW + 6, NOW + 6)):
        await store.see_session(session.digest, now=now)
        assert await store.session(session.digest) == msgspec.structs.replace(session, seen_at=seen_at)
    assert await store.session(other.digest) == other
    await store.see_session(a_session().digest, now=NOW)  # one that has ended meanwhile


@pytest.mark.parametrize(
    ("visit_s", "until", "ends"),
    [(600.5, NOW + 86_400, NOW + 610.5), (86_400.0, NOW + 60, NOW + 60)],
    ids=["by the link", "by itself"],
)
async def test_a_link_opens_a_visit_with_what_the_link_allows(store, visit_s, until, ends):
    link, visit = a_link(visit_s=visit_s), a_visit(expires_at=until)
    await store.create_session(link, now=NOW)
    expected = opened(visit, link, ends=ends)
    assert await store.open_link(link.digest, visit, now=NOW + 10) == expected
    assert await store.session(visit.digest) == expected
    assert await store.session(link.digest) is None


async def test_what_a_link_opens_is_a_visit_and_no_other_link(store):
    link = a_link()
    await store.create_session(link, now=NOW)
    visit = await store.open_link(link.digest, a_visit(kind=SessionKind.LINK), now=NOW)
    assert visit.kind is SessionKind.PORTAL


async def test_a_link_opens_one_visit(store):
    link, late = a_link(), a_visit()
    await store.create_session(link, now=NOW)
    assert await store.open_link(link.digest, a_visit(), now=NOW) is not None
    assert await store.open_link(link.digest, late, now=NOW) is None
    assert await store.session(late.digest) is None


async def test_a_caller_that_lost_the_answer_gets_its_visit_again(store):
    link, visit = a_link(), a_visit()
    await store.create_session(link, now=NOW)
    first = await store.open_link(link.digest, visit, now=NOW)
    assert await store.open_link(link.digest, visit, now=NOW) == first
    assert first is not None


async def test_an_expired_link_opens_nothing(store):
    link, visit = a_link(expires_at=NOW + 300), a_visit()
    await store.create_session(link, now=NOW)
    assert await store.open_link(link.digest, visit, now=NOW + 300) is None
    assert await store.session(visit.digest) is None
    assert await store.open_link(link.digest, visit, now=NOW + 299) is not None


@pytest.mark.parametrize("kind", [SessionKind.LOGIN, SessionKind.PORTAL])
async def test_what_is_no_link_opens_nothing(store, kind):
    session = a_link(kind=kind)
    await store.create_session(session, now=NOW)
    assert await store.open_link(session.digest, a_visit(), now=NOW) is None
    assert await store.open_link(a_session().digest, a_visit(), now=NOW) is None
    assert await store.session(session.digest) == session


async def test_of_many_callers_at_once_one_gets_the_visit(store, second_store):
    for _ in range(10):
        link, visits = a_link(), [a_visit() for _ in range(8)]
        await store.create_session(link, now=NOW)
        answers = await asyncio.gather(
            *(
                each.open_link(link.digest, visit, now=NOW)
                for visit, each in zip(visits, [store, second_store] * 4, strict=True)
            )
        )
        [number] = [n for n, answer in enumerate(answers) if answer is not None]
        assert answers[number].digest == visits[number].digest
        kept = [visit for visit in visits if await store.session(visit.digest) is not None]
        assert kept == [visits[number]]


async def test_a_session_that_was_ended_is_gone(store):
    session, other = a_session(), a_session()
    await store.create_session(session, now=NOW)
    await store.create_session(other, now=NOW)
    await store.end_session(session.digest)
    await store.end_session(session.digest)
    assert await store.session(session.digest) is None
    assert await store.session(other.digest) == other


async def test_what_came_from_a_key_ends_together(store):
    link = a_link()
    for session in (a_session(key_digest=KEY), a_link(), link):
        await store.create_session(session, now=NOW)
    visit = await store.open_link(link.digest, a_visit(key_digest=OTHER_KEY), now=NOW)
    other, keyless = a_session(key_digest=OTHER_KEY), a_session(key_digest=b"")
    for session in (other, keyless):
        await store.create_session(session, now=NOW)
    assert await store.end_sessions_of(KEY) == 3
    assert await store.end_sessions_of(KEY) == 0
    assert await store.session(visit.digest) is None
    assert [await store.session(each.digest) for each in (other, keyless)] == [other, keyless]
