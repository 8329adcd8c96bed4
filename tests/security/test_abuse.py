"""One account cannot make itself a flood.

Elsewhere: a host's share of the requests, whoever sends them and by redirects too, in
`tests/pipeline/catalogue/test_host_limits.py`; the deliveries of an event in `tests/pipeline/intake/test_publish.py`; 410,
429 and Retry-After in `tests/pipeline/test_answers.py`; the contact in the User-Agent in `tests/pipeline/test_delivery.py`.
"""

import json

import pytest

from tests.security.serving import asking, served

pytestmark = pytest.mark.anyio


async def test_an_account_has_no_more_endpoints_than_are_allowed(tmp_path):
    async with served(tmp_path, endpoints_per_account=2) as server:
        line = await server.line()

        async def create(account: str) -> tuple[int, str]:
            fields = {"url": "https://hooks.example.com/", "events": ["*"], "account": account}
            answer = await line.ask("POST", "/v1/endpoints", fields)
            shown = json.loads(answer.body)
            return answer.status, shown["id"] if answer.status == 201 else shown["code"]

        made = [await create("acme") for _ in range(3)]
        assert [status for status, _ in made] == [201, 201, 422]
        assert made[2][1] == "invalid_field"
        assert (await create("other"))[0] == 201
        line.send(asking("DELETE", f"/v1/endpoints/{made[0][1]}"))
        assert (await line.answer()).status == 204
        assert [(await create("acme"))[0] for _ in range(2)] == [201, 422]


async def test_an_event_goes_to_no_more_endpoints_than_are_allowed(tmp_path):
    async with served(tmp_path, deliveries_per_event=2) as server:
        line = await server.line()
        fields = {"url": "https://hooks.example.com/", "events": ["order.*"]}
        event = {"type": "order.paid", "payload": 1}
        for expected in (202, 202, 202, 422):
            answer = await line.ask("POST", "/v1/events", event)
            assert answer.status == expected
            await line.ask("POST", "/v1/endpoints", fields)
        assert answer.code == "fanout_limit"
        batch = await line.ask(
            "POST", "/v1/events/batch", {"events": [event, {**event, "type": "none.such"}]}
        )
        results = json.loads(batch.body)["results"]
        assert [each.get("error", {}).get("code") for each in results] == ["fanout_limit", None]
