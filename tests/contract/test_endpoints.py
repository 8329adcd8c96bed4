"""Endpoints are stored, changed, listed and found."""

import msgspec
import pytest

from factories import NOW, an_endpoint, ids
from hookline.model import CertificateFacts, CircuitPolicy, ClientCertificate, Ordering, RateLimit, Signing
from hookline.store.contract import EndpointSnapshot
from scenes import an_endpoint_in

pytestmark = pytest.mark.anyio


def a_full_endpoint():
    return an_endpoint(
        account="acme",
        url="https://example.com/ü?q=%00",
        events=("order.*", "invoice.paid"),
        secret="whsec_c2VjcmV0",
        signing=Signing.CLASSIC,
        description="die Büchse \U0001f4e6",
        enabled=False,
        disabled_reason="gone",
        headers={"x-b": "2", "x-a": "1"},
        metadata={"z": [1, 2.5, None, {"deep": True}], "a": "\x00"},
        client_certificate=ClientCertificate(
            pem="sealed1 c2VhbGVk",
            facts=CertificateFacts(
                subject="CN=hookline,O=Büchse",
                issuer="CN=authority",
                serial="1f",
                not_before="2026-01-01T00:00:00Z",
                not_after="2027-01-01T00:00:00Z",
                fingerprint="sha256:00ff",
            ),
        ),
        timeout=12.5,
        max_redirects=3,
        max_in_flight=7,
        rate_limit=RateLimit(1.6666666666666667, 10),
        ordering=Ordering.STRICT,
        paused=True,
        retry={"preset": "brisk", "attempts": 9, "cap_s": None, "jitter": {"kind": "full"}},
        retry_statuses=("5xx", 404, 409),
        circuit=CircuitPolicy(consecutive_failures=10, failure_rate=0.25, cooldown_s=0.5),
        created_at=NOW + 0.25,
        updated_at=NOW + 0.5,
    )


async def test_an_endpoint_is_read_back_whole(store):
    endpoint = a_full_endpoint()
    await store.create_endpoint(endpoint, now=NOW)
    assert await store.endpoints_by_id([endpoint.id]) == [endpoint]
    [read] = (await store.catalogue()).endpoints
    assert (list(read.headers), list(read.metadata)) == (["x-b", "x-a"], ["z", "a"])


async def test_a_circuit_that_never_trips_is_kept_apart_from_the_usual_one(store):
    usual, never = await an_endpoint_in(store), await an_endpoint_in(store, circuit=None)
    assert await store.endpoints_by_id([usual.id]) == [usual]
    assert await store.endpoints_by_id([never.id]) == [never]


async def test_creating_again_changes_nothing(store):
    endpoint = await an_endpoint_in(store)
    await store.create_endpoint(msgspec.structs.replace(endpoint, url="https://other.example"), now=NOW)
    assert await store.catalogue() == EndpointSnapshot(1, (endpoint,))


async def test_an_endpoint_is_replaced(store):
    endpoint = await an_endpoint_in(store)
    full = msgspec.structs.replace(a_full_endpoint(), id=endpoint.id)
    assert await store.update_endpoint(full, was=endpoint.updated_at, now=NOW)
    assert await store.catalogue() == EndpointSnapshot(2, (full,))


async def test_a_deleted_endpoint_is_gone(store):
    endpoint, other = await an_endpoint_in(store), await an_endpoint_in(store)
    assert await store.delete_endpoint(endpoint.id, now=NOW)
    assert not await store.delete_endpoint(endpoint.id, now=NOW)
    assert not await store.update_endpoint(endpoint, was=endpoint.updated_at, now=NOW)
    assert await store.catalogue() == EndpointSnapshot(3, (other,))
    assert await store.endpoints_by_id([endpoint.id]) == []


async def test_those_that_exist_are_found_by_id(store):
    endpoints = [await an_endpoint_in(store) for _ in range(5)]
    wanted = [endpoints[3].id, ids.endpoint(), endpoints[1].id]
    found = await store.endpoints_by_id(wanted)
    assert sorted(found, key=lambda e: e.id) == [endpoints[1], endpoints[3]]
    assert await store.endpoints_by_id([]) == []


async def test_an_empty_catalogue_is_number_zero(store):
    assert await store.catalogue() == EndpointSnapshot(0, ())


async def test_a_list_comes_newest_first_page_by_page(store):
    endpoints = [await an_endpoint_in(store) for _ in range(5)]
    newest_first = endpoints[::-1]
    pages, after = [], None
    while page := await store.list_endpoints(account=None, enabled=None, after=after, limit=2):
        pages.append(page)
        after = page[-1].id
    assert pages == [newest_first[:2], newest_first[2:4], newest_first[4:]]


async def test_a_list_is_filtered_by_account_and_by_enabled(store):
    endpoints = {
        (account, enabled): await an_endpoint_in(store, account=account, enabled=enabled)
        for account in ("one", "two")
        for enabled in (True, False)
    }

    async def listed(account, enabled):
        return await store.list_endpoints(account=account, enabled=enabled, after=None, limit=9)

    for (account, enabled), endpoint in endpoints.items():
        assert await listed(account, enabled) == [endpoint]
    assert len(await listed("one", None)) == 2
    assert len(await listed(None, False)) == 2
    assert await listed("three", None) == []
    after = endpoints["one", False].id
    assert await store.list_endpoints(account="one", enabled=None, after=after, limit=9) == [
        endpoints["one", True]
    ]
