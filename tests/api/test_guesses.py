"""Callers that guess keys are slowed down."""

import asyncio
import secrets

import httpx
import pytest

from hookline.api.auth_throttle import REMEMBERED, Guesses
from hookline.rules.auth_throttle import BY_ADDRESS
from tests.api.conftest import KEY

pytestmark = pytest.mark.anyio


async def tried(client: httpx.AsyncClient, key: str) -> tuple[int, dict[str, object]]:
    answer = await client.get("/v1/endpoints?limit=1", headers={"authorization": f"Bearer {key}"})
    body = answer.json()
    assert body.pop("request_id", None) == (answer.headers["request-id"] if answer.is_error else None)
    return answer.status_code, {**body, "retry-after": answer.headers.get("retry-after")}


async def test_whoever_tries_keys_is_slowed_down_and_good_keys_are_good_all_the_while(service):
    made = service.call("POST", "/v1/keys", {"scopes": ["read"]}).json()["key"]
    async with httpx.AsyncClient(base_url=service.process.url, trust_env=False, timeout=60) as client:
        seen: dict[int, dict[str, object]] = {}
        for _ in range(4):
            guesses = [tried(client, "hlk_" + secrets.token_urlsafe(32)) for _ in range(150)]
            good = [tried(client, key) for key in (KEY, made)]
            answers = await asyncio.gather(*guesses, *good)
            assert [status for status, _ in answers[150:]] == [200, 200]
            for status, body in answers[:150]:
                assert body == seen.setdefault(status, body), "the answers tell keys apart"
        assert set(seen) == {401, 429}
        assert (seen[429]["code"], seen[429]["retry-after"]) == ("rate_limited", "1")
        assert seen[401]["code"] == "unauthenticated"
        # A key that was created meanwhile is good at its first use.
        fresh = service.call("POST", "/v1/keys", {"scopes": ["read"]}).json()["key"]
        assert (await tried(client, fresh))[0] == 200


@pytest.mark.parametrize("one_address", [True, False])
async def test_many_keys_from_one_place_and_one_beginning_from_many_are_both_slowed_down(one_address):
    guesses = Guesses(lambda: 100.0)
    waits = [
        guesses.count(
            "192.0.2.1" if one_address else f"10.0.{n // 250}.{n % 250}", b"%08d" % (n if one_address else 1)
        )
        for n in range(BY_ADDRESS.burst + 10)
    ]
    assert waits[: BY_ADDRESS.burst] == [0.0] * BY_ADDRESS.burst
    assert min(waits[BY_ADDRESS.burst :]) > 0
    assert guesses.count("198.51.100.1", b"another") == 0


async def test_not_everybody_is_remembered_for_ever():
    guesses = Guesses(lambda: 100.0)
    for n in range(REMEMBERED + 100):
        guesses.count(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", b"%08d" % n)
    assert (len(guesses._by_address), len(guesses._by_prefix)) == (REMEMBERED, REMEMBERED)
