"""Fills a server through its API with a day's trouble: an endpoint of every kind, and hostile text wherever it may be."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx

from refused_rows import add_refused_row, note_source
from tests.browser import hostile
from tests.browser.switched_receiver import SwitchedReceiver, Way
from tests.corpus.shown import SHOWN

PATIENCE_S = 180.0  # ends what hangs; nothing is judged by it
AT_ONCE = {"schedule": [0, 0], "jitter": "none"}  # two attempts, then dead
LATER = {"schedule": [0, 3_600, 3_600], "jitter": "none"}
SENSITIVE = {"consecutive_failures": 2, "cooldown_s": 3_600, "max_cooldown_s": 3_600}
HOSTILE_TYPE = "hostile.text"


class Api:
    """The API of a server, for what a test needs to be there."""

    def __init__(self, url: str, key: str | None = None) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self.url = url
        self._client = httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=PATIENCE_S)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request; its answer, which must be a success."""
        answer = self._client.request(method, path, json=body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def refused(self, method: str, path: str, body: Any) -> Any:
        """One request that the API refuses; what it says."""
        answer = self._client.request(method, path, json=body)
        assert answer.status_code == 422, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def endpoint(self, url: str, *events: str, **fields: Any) -> str:
        """A new endpoint; its id."""
        found: dict[str, Any] = self.call(
            "POST", "/v1/endpoints", {"url": url, "events": list(events) or ["*"], **fields}
        )
        return str(found["id"])

    def publish(self, type: str, payload: Any = None, **fields: Any) -> str:
        """A new event; its id."""
        body = {"type": type, "payload": {"id": 42} if payload is None else payload, **fields}
        return str(self.call("POST", "/v1/events", body)["id"])

    def publish_bytes(self, type: str, payload: bytes, account: str) -> str:
        """A new event whose payload is sent as it is; its id."""
        body = b'{"type":"%b","account":"%b","payload":%b}' % (type.encode(), account.encode(), payload)
        answer = self._client.post("/v1/events", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def delivery(self, event_id: str) -> dict[str, Any]:
        """The only delivery of an event."""
        [found] = self.get(f"/v1/events/{event_id}/deliveries")["data"]
        return dict(found)

    def key(self, *scopes: str, **fields: Any) -> dict[str, Any]:
        return dict(self.call("POST", "/v1/keys", {"name": "-".join(scopes), "scopes": scopes, **fields}))

    def portal_link(self, account: str, **fields: Any) -> str:
        """The path of a link that opens the account's portal once."""
        parts = urlsplit(self.call("POST", f"/v1/accounts/{account}/portal-link", fields)["url"])
        return f"{parts.path}?{parts.query}"

    def until(self, path: str, is_so: Callable[[Any], bool]) -> Any:
        """Read until it is so."""
        ends_at = time.monotonic() + PATIENCE_S
        while True:
            found = self.get(path)
            if is_so(found):
                return found
            assert time.monotonic() < ends_at, f"{path} stays {found}"
            time.sleep(0.05)

    def until_dead(self, endpoint_id: str, count: int) -> None:
        path = f"/v1/deliveries?endpoint_id={endpoint_id}&state=dead&limit=200"
        self.until(path, lambda page: len(page["data"]) >= count)

    def close(self) -> None:
        self._client.close()


class Scene:
    """What is there; `ids` names what a page can be asked for."""

    def __init__(self, api: Api, receiver: SwitchedReceiver, database: str) -> None:
        self.api = api
        self.database = database
        self.receiver = receiver
        self.ids: dict[str, str] = {}
        self.shown: dict[str, list[str]] = {}  # deliveries of the corpus's payloads, by row
        self._endpoints()
        self._people()
        self._events()
        self._jobs()
        self._outbox()

    def _endpoints(self) -> None:
        api, receiver = self.api, self.receiver
        add = self.ids.__setitem__
        for path, way in (
            ("orders", Way.DOWN),
            ("billing", Way.UNAUTHORIZED),
            ("stock", Way.INVALID),
            ("search", Way.THROTTLED),
            ("mail", Way.FLAKY),
            ("old", Way.GONE),
            ("reports", Way.SLOW),
            ("hostile", Way.HOSTILE),
        ):
            receiver.switch(path, to=way)
        add(
            "fine",
            api.endpoint(receiver.url("fine"), "order.*", account="acme", description="All is well here"),
        )
        add(
            "down",
            api.endpoint(
                receiver.url("orders", host="127.0.0.2"),
                "order.*",
                account="acme",
                retry=LATER,
                circuit=SENSITIVE,
            ),
        )
        add(
            "refused",
            api.endpoint(
                receiver.url("billing", host="127.0.0.3"),
                "order.*",
                account="acme",
                headers={"authorization": "Bearer old"},
            ),
        )
        add("invalid", api.endpoint(receiver.url("stock"), "stock.*", account="birch"))
        add("throttled", api.endpoint(receiver.url("search"), "order.*", account="birch"))
        add("flaky", api.endpoint(receiver.url("mail"), "order.*", account="birch", retry=LATER))
        add("gone", api.endpoint(receiver.url("old"), "order.*", account="birch"))
        add("slow", api.endpoint(receiver.url("reports"), "order.*", account="birch", max_in_flight=2))
        add(
            "full",  # every setting has a value of its own
            api.endpoint(
                receiver.url("full/" + "a-long-path-" * 12),
                "order.*",
                "stock.moved",
                account="acme",
                description="Everything is set",
                headers={"x-tenant": "42", "authorization": "Bearer secret"},
                metadata={"team": "blue"},
                signing="classic",
                rate_limit={"per_second": 20, "burst": 5},
                ordering="strict",
                retry={"base": 1, "factor": 2, "cap": 60, "attempts": 8, "jitter": "full"},
                max_redirects=2,
            ),
        )
        add("paused", api.endpoint(receiver.url("paused"), "order.*", account="birch"))
        api.call("POST", f"/v1/endpoints/{self.ids['paused']}/pause")
        add("off", api.endpoint(receiver.url("off"), "order.*", account="birch"))
        api.call("POST", f"/v1/endpoints/{self.ids['off']}/disable")
        add(
            "hostile",
            api.endpoint(
                receiver.url(f"hostile?{hostile.QUERY}"),
                HOSTILE_TYPE,
                account="acme",
                description=hostile.ALL,
                metadata={"<b>": hostile.TEXTS[0], "x": hostile.TEXTS[1], "__proto__": hostile.TEXTS[6]},
                headers={f"x-{n}": text for n, text in enumerate(hostile.TEXTS) if text.isascii()},
                retry=AT_ONCE,
            ),
        )
        add("text", api.endpoint(receiver.url("text"), "corpus.shown", account="corpus"))

    def _people(self) -> None:
        api = self.api
        notify = {"email": "ops@acme.example", "webhook": "https://alerts.acme.example/?q='-window.__xss=1-'"}
        api.call("PUT", "/v1/accounts/acme", {"notify": notify})
        schema = {"type": "object", "title": hostile.TEXTS[0], "properties": {hostile.TEXTS[1]: {}}}
        api.call("PUT", f"/v1/event-types/{HOSTILE_TYPE}", {"description": hostile.ALL, "schema": schema})
        api.call("PUT", "/v1/event-types/order.paid", {"description": "An order was paid"})
        self.ids["key"] = api.key("read", name="a reader")["id"]
        self.ids["hostile key"] = api.key("publish", name=hostile.ALL[:100], account="acme")["id"]

    def _events(self) -> None:
        api, ids = self.api, self.ids
        for n in range(12):
            ids["event"] = api.publish("order.paid", {"id": n, "total": 1250}, account="acme")
            api.publish("order.paid", {"id": n, "total": 1250}, account="birch")
        for n in range(5):
            api.publish("stock.moved", {"amount": n}, account="birch")
        ids["cancelled"] = api.publish(
            "order.paid", {"id": "later"}, account="birch", deliver_at="2027-11-18T00:00:00Z"
        )
        ids["hostile event"] = api.publish(
            HOSTILE_TYPE, hostile.PAYLOAD, account="acme", idempotency_key=hostile.TEXTS[1].replace(" ", "_")
        )
        ids["large event"] = api.publish("corpus.shown", {"x": "<b>" * 60_000}, account="corpus")
        for row, payloads in SHOWN.items():
            events = [api.publish_bytes("corpus.shown", payload, "corpus") for payload in payloads]
            self.shown[row] = [api.delivery(each)["id"] for each in events]
        api.until_dead(ids["refused"], 12)
        api.until_dead(ids["invalid"], 5)
        api.until_dead(ids["hostile"], 1)
        one = "/v1/endpoints/"
        api.until(one + ids["down"], lambda found: found["circuit_state"]["state"] == "open")
        api.until(one + ids["gone"], lambda found: not found["enabled"])
        api.until("/v1/alerts?kind=endpoint_disabled", lambda page: page["data"])  # so it is on the overview
        self.receiver.wait_for("reports", requests=2)
        api.until(
            f"/v1/deliveries?endpoint_id={ids['fine']}&state=delivered", lambda page: len(page["data"]) == 12
        )
        self._name("down", "pending delivery", "pending")
        self._name("fine", "delivery", "delivered")
        self._name("refused", "dead delivery", "dead")
        self._name("hostile", "hostile delivery", "dead")

    def _name(self, endpoint: str, name: str, state: str) -> None:
        path = f"/v1/deliveries?endpoint_id={self.ids[endpoint]}&state={state}"
        # The oldest was attempted; those that came later may wait behind a circuit.
        self.ids[name] = self.api.get(path)["data"][-1]["id"]

    def _jobs(self) -> None:
        api, dead = self.api, {"endpoint_id": self.ids["invalid"]}
        for kind in ("replays", "discards"):
            id = api.call("POST", f"/v1/{kind}", {"filter": dead})["id"]
            api.until(f"/v1/{kind}/{id}", lambda job: job["state"] == "done")
            self.ids[kind] = id
            if kind == "replays":
                api.until_dead(self.ids["invalid"], 5)
        # And some are left for who looks.
        for n in range(3):
            api.publish("stock.moved", {"amount": n}, account="birch")
        api.until_dead(self.ids["invalid"], 3)

    def _outbox(self) -> None:
        refused: dict[str, Any] = {"account": "acme", "detail": hostile.ALL}
        self.ids["refused row"] = add_refused_row(self.database, account="acme", age=7_200.0)
        self.ids["hostile row"] = add_refused_row(
            self.database,
            type=hostile.TEXTS[0],
            payload=hostile.PAYLOAD,
            source=hostile.TEXTS[1],
            idempotency_key=hostile.ALL[:200],
            code="invalid_type",
            **refused,
        )
        note_source(self.database, "postgresql://shop.example/" + "orders" * 20, waiting=1_200)
        note_source(self.database, hostile.TEXTS[2], looked_at=time.time() - 900, trouble=hostile.ALL)
