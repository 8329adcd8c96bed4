"""Keys that ask too often and accounts that publish too much are asked to wait."""

import json
import sqlite3
from typing import Any

import pytest

from hookline.admin.keys import digest_of
from tests.security.serving import KEY, Answer, Line, asking, head, served

pytestmark = pytest.mark.anyio

# So little comes back that the tests do not see it: a key may ask once, an account may publish 1,000 events.
LEAST = 0.001
PUBLISH = {"type": "order.paid", "payload": 1}


def in_pieces(body: Any, path: str = "/v1/events") -> bytes:
    """A publish that does not come as a whole, and so takes the ordinary way."""
    content = json.dumps(body).encode()
    lines = ("content-type: application/json", "transfer-encoding: chunked")
    return head("POST", path, *lines) + b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content)


def batch(*accounts: tuple[str, int], invalid: int = 0) -> dict[str, Any]:
    events = [{**PUBLISH, "account": account} for account, count in accounts for _ in range(count)]
    return {"events": [*events, *[{"type": "not a type", "payload": 1}] * invalid]}


def check_refused(answer: Answer, *, least: int, most: int) -> None:
    assert (answer.status, answer.code) == (429, "rate_limited"), answer
    assert answer.headers["content-type"] == "application/problem+json"
    assert least <= int(answer.headers["retry-after"]) <= most


@pytest.mark.parametrize("publish", [asking("POST", "/v1/events", PUBLISH), in_pieces(PUBLISH)])
async def test_a_key_that_asks_too_often_waits(tmp_path, publish):
    async with served(tmp_path, requests_per_key=LEAST) as server:
        line = await server.line()
        line.send(publish)
        assert (await line.answer()).status == 202
        for request in (
            publish,
            publish,
            in_pieces(PUBLISH),
            asking("GET", "/v1/endpoints"),
            asking("GET", "/metrics"),
            asking("GET", "/nowhere"),
            asking("POST", "/v1/endpoints", {}),
        ):
            line.send(request)
            check_refused(await line.answer(), least=990, most=1_000)
        assert server.hooks.publish_refused == {"rate_limited": 3}
        for path in ("/healthz", "/login"):  # who needs no key is not counted
            line.send(asking("GET", path, key=None))
            assert (await line.answer()).status == 200


async def test_each_key_is_counted_by_itself_and_wrong_ones_not_at_all(tmp_path):
    async with served(tmp_path, requests_per_key=LEAST) as server:
        made = await server.hooks.keys.create({"scopes": ["read"], "name": "reader"})
        line = await server.line()
        for key in (KEY, made.key):
            assert (await line.ask("GET", "/v1/endpoints", key=key)).status == 200
        for key in (KEY, made.key):
            check_refused(await line.ask("GET", "/v1/endpoints", key=key), least=990, most=1_000)
        for _ in range(3):
            assert (await line.ask("GET", "/v1/endpoints", key="hlk_wrong")).status == 401


async def test_a_visit_counts_for_its_key_and_one_of_a_customer_by_itself(tmp_path):
    async with served(tmp_path, requests_per_key=LEAST, public_url="http://localhost") as server:
        link = await server.hooks.portal.mint(
            "acme", key_digest=digest_of(KEY.encode()), reached_at="http://localhost"
        )
        line = await server.line()
        visit = await _logged_in(line, "/login", f"key={KEY}")
        page = await line.ask("GET", "/endpoints", None, f"cookie: {visit}", key=None)
        assert page.status == 200
        refused = await line.ask("GET", "/endpoints", None, f"cookie: {visit}", key=None)
        assert refused.status == 429
        assert 990 <= int(refused.headers["retry-after"]) <= 1_000
        assert b"more requests than are allowed" in refused.body
        check_refused(await line.ask("GET", "/v1/endpoints"), least=990, most=1_000)
        token = link.path.partition("token=")[2]
        customer = await _logged_in(line, "/portal/enter", f"link={token}")
        statuses = [
            (await line.ask("GET", "/endpoints", None, f"cookie: {customer}", key=None)).status for _ in "12"
        ]
        assert statuses == [200, 429]


async def _logged_in(line: Line, path: str, form: str) -> str:
    lines = ("content-type: application/x-www-form-urlencoded", f"content-length: {len(form)}")
    line.send(head("POST", path, *lines, "sec-fetch-site: same-origin", key=None) + form.encode())
    answer = await line.answer()
    assert answer.status == 303, answer
    return answer.headers["set-cookie"].partition(";")[0]


@pytest.mark.parametrize("is_whole", [True, False])
async def test_an_account_that_publishes_too_much_waits_and_others_do_not(tmp_path, is_whole):
    async with served(tmp_path, publish_per_account=LEAST) as server:
        line = await server.line()

        async def publish(body: Any, path: str = "/v1/events/batch") -> Answer:
            return await _sent(line, asking("POST", path, body) if is_whole else in_pieces(body, path))

        assert (await publish(batch(("acme", 600), invalid=300))).status == 202
        check_refused(await publish(batch(("acme", 401))), least=900, most=1_000)
        # A batch is refused as a whole, and then takes nothing from the others in it either.
        check_refused(await publish(batch(("other", 10), ("acme", 401))), least=900, most=1_000)
        assert (await publish(batch(("acme", 399), ("other", 600)))).status == 202
        assert (await publish({**PUBLISH, "account": "acme"}, "/v1/events")).status == 202
        check_refused(await publish({**PUBLISH, "account": "acme"}, "/v1/events"), least=990, most=1_000)
        assert (await publish(batch(("other", 400)))).status == 202
        assert (await publish(PUBLISH, "/v1/events")).status == 202
        assert server.hooks.publish_refused["rate_limited"] == 3
        # What a program publishes that has hookline in it is its own business.
        await server.hooks.publish("order.paid", 1, account="acme")
    with sqlite3.connect(tmp_path / "hooks.db") as database:
        stored = dict(database.execute("SELECT account, count(*) FROM events GROUP BY account"))
    database.close()
    assert stored == {"acme": 1_001, "other": 1_000, "default": 1}


async def _sent(line: Line, request: bytes) -> Answer:
    line.send(request)
    return await line.answer()


async def test_without_limits_nothing_is_counted(tmp_path):
    async with served(tmp_path) as server:
        line = await server.line()
        for _ in range(5):
            assert (await line.ask("POST", "/v1/events", PUBLISH)).status == 202
        assert not server.api.quotas.are_set
        assert not server.api.quotas._of_keys._buckets
        assert not server.api.quotas._of_accounts._buckets
