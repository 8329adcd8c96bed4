"""A row that somebody or something spoiled in the database harms itself alone.

Every column of every table that users fill gets values of every shape, as far as the database takes them. The process
then starts, everybody else is served, and every list, page and `hookline doctor` answers. Columns are read from the
database and from the table of endpoint columns: a new one is tried without a change here.
"""

import json
import math
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self

import httpx
import psycopg
import pytest

from answering import eventually
from hookline.ids import read
from hookline.store.endpoint_columns import COLUMNS
from server_process import ServerProcess, run
from tests.dashboard.site import Target

KEY = "hlk_the_key_of_these_tests"
ENV = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8", "HOOKLINE_DRAIN_S": "60"}


class NotUtf8(bytes):
    """A text of SQLite whose bytes are no UTF-8."""


VALUES: tuple[Any, ...] = (
    *(
        "",
        " ",
        "no json",
        "{",
        "[]",
        "{}",
        "null",
        "true",
        "7",
        "-7",
        '"x"',
        '[null, {"a": 1}]',
        '["order.*", 7]',
    ),
    *(
        '{"a": [1]}',
        "[" * 5_000,
        "\u202e\x1b[2J</script>",
        "x" * 200_000,
        "a\0b",
        "infinity",
        "-infinity",
        "{NULL}",
    ),
    *('{"email": 7}', '{"x-a": "b\\r\\nc: d"}', "http://[::1", "sealed1 AAAA", "sealed1 ?", "{order.*,NULL}"),
    *(-1, 0, 1, 7, 2**31, 2**62, 1e308, -1e308, 0.5, math.inf, -math.inf, math.nan, None),
    *(b"", b"\xff\xfe", bytes(16), NotUtf8(b"h\xff"), NotUtf8(b'{"a": "\xff"}')),
)
# What must differ from row to row, with the columns that the database numbers itself left out.
FRESH = {
    "accounts": ("id",),
    "event_types": ("name",),
    "keys": ("id", "n", "digest"),
    "jobs": ("id", "idempotency_key"),
    "alerts": ("id", "subject"),
    "notifications": (),
    "announcements": (),
    "workers": ("id",),
    "worker_status": ("worker",),
    "deliveries": ("id",),
    "attempts": ("id",),
    "sessions": ("digest",),
}
NUMBERED = {"notifications": ("n",), "announcements": ("n",), "deliveries": ("seq",)}
LISTS = (
    *(
        "/v1/endpoints?limit=200",
        "/v1/deliveries?limit=200",
        "/v1/dead-letters?limit=200",
        "/v1/events?limit=200",
    ),
    *("/v1/deliveries?state=dead&limit=200", "/v1/dead-letters/analysis?window=24h", "/v1/replays?limit=200"),
    *("/v1/discards?limit=200", "/v1/keys?limit=200", "/v1/alerts?limit=200", "/v1/workers?limit=200"),
    *("/v1/event-types?limit=200", "/v1/health", "/v1/status", "/v1/accounts/fine", "/metrics"),
)
PAGES = (
    *("/", "/endpoints", "/deliveries", "/deliveries?state=dead", "/dead-letters", "/dead-letters?view=list"),
    *("/events", "/event-types", "/replays", "/discards", "/keys", "/accounts", "/accounts/fine", "/workers"),
)


class Rows:
    """A database around which hookline is not asked."""

    def __init__(self, url: str) -> None:
        self._is_sqlite = url.startswith("sqlite:")
        self._fresh = count(1)
        self._connection: Any = (
            sqlite3.connect(url.removeprefix("sqlite:///"), timeout=60, isolation_level=None)
            if self._is_sqlite
            else psycopg.connect(url, options="-c search_path=hookline", autocommit=True)
        )

    def close(self) -> None:
        self._connection.close()

    def types(self, table: str) -> dict[str, str]:
        """The columns of a table, each with its type."""
        if self._is_sqlite:
            return {row[1]: row[2] for row in self._connection.execute(f"PRAGMA table_info({table})")}
        found = self._connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            (table,),
        )
        return dict(found.fetchall())

    def one(self, table: str) -> dict[str, Any]:
        """Some row."""
        names = list(self.types(table))
        row = self._connection.execute(f"SELECT {', '.join(names)} FROM {table} LIMIT 1").fetchone()
        assert row is not None, table
        return dict(zip(names, row, strict=True))

    def suited(self, value: Any, type: str) -> Any:
        """A value as a column of this type takes it; a small whole number stands for an id."""
        if type == "uuid":
            return uuid.UUID(int=value)
        if type == "BLOB" and isinstance(value, int):
            return value.to_bytes(16)
        if type.startswith("timestamp") and isinstance(value, float):
            return datetime.fromtimestamp(value, UTC)
        return json.dumps(value) if isinstance(value, list) and self._is_sqlite else value

    def add(self, table: str, row: dict[str, Any], column: str = "", value: Any = None) -> bool:
        """Add a copy of a row, with this value in one column; False if the database does not take it."""
        types = self.types(table)
        for name in FRESH[table]:
            row = {**row, name: self._unlike(row[name], types[name])}
        row = {
            name: each for name, each in row.items() if name not in NUMBERED.get(table, ()) or name == column
        }
        if column and column not in row:
            return False
        marks = [self._mark(types[name] if name == column else None, value) for name in row]
        bound = [self._bound(value) if name == column else each for name, each in row.items()]
        return self._try(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(marks)})", bound)

    def change(self, table: str, id_column: str, id: bytes, column: str, value: Any) -> bool:
        """Change a value of a row; False if the database does not take it."""
        type = self.types(table)[column]
        bound = self._bound(value)
        key = id if self._is_sqlite else uuid.UUID(bytes=id)
        mark = "?" if self._is_sqlite else "%s"
        return self._try(
            f"UPDATE {table} SET {column} = {self._mark(type, value)} WHERE {id_column} = {mark}",
            [bound, key],
        )

    def run(self, statement: str) -> None:
        """Run a statement; `{list}` in it is a list of a word that hookline does not know."""
        unknown = """'["everything"]'""" if self._is_sqlite else "'{everything}'"
        self._connection.execute(statement.format(list=unknown))

    def _unlike(self, old: Any, type: str) -> Any:
        n = next(self._fresh)
        if type in ("INTEGER", "bigint"):
            return 1_000 + n
        if type == "uuid":
            return uuid.UUID(int=(old.int & ~0xFFFFF) | n)
        if isinstance(old, bytes):
            return old[:-3] + n.to_bytes(3)
        return f"planted{n}"

    def _mark(self, type: str | None, value: Any) -> str:
        if not self._is_sqlite:
            return "%s" if type is None else f"CAST(%s AS {type})"
        return "CAST(? AS TEXT)" if type is not None and isinstance(value, NotUtf8) else "?"

    def _bound(self, value: Any) -> Any:
        if self._is_sqlite or value is None or isinstance(value, bytes):
            return bytes(value) if isinstance(value, bytes) else value
        return str(value)

    def _try(self, statement: str, values: list[Any]) -> bool:
        try:
            self._connection.execute(statement, values)
        except (sqlite3.Error, psycopg.Error, OverflowError, ValueError):
            return False
        return True


class Service:
    """A running server and what it is asked."""

    def __init__(self, process: ServerProcess) -> None:
        self.process = process
        self.client = httpx.Client(
            base_url=process.url, headers={"authorization": f"Bearer {KEY}"}, timeout=120, trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = self.client.request(method, path, json=body, headers=headers)
        assert answer.is_success, (
            path,
            answer.status_code,
            answer.text[:2_000],
            self.process.stderr[-4_000:],
        )
        return answer.json() if answer.content and "json" in answer.headers["content-type"] else answer.text


@pytest.fixture
def target() -> Iterator[Target]:
    target = Target()
    target.answers["/dead"] = (400, b"no")
    yield target
    target.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/hooks.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def serve(database: str, tmp_path: Path) -> Callable[[], ServerProcess]:
    return lambda: ServerProcess("--database", database, cwd=tmp_path, env=ENV)


def furnish(service: Service, target: Target) -> str:
    """An endpoint that is fine, and one whose deliveries die; a key, an account, a type and a job. The key's text."""
    service.call("POST", "/v1/endpoints", {"url": f"{target.url}/fine", "events": ["*"], "account": "fine"})
    dead = {"url": f"{target.url}/dead", "events": ["*"], "account": "spoiled", "circuit": None}
    service.call("POST", "/v1/endpoints", dead)
    service.call("POST", "/v1/events", {"type": "order.paid", "payload": 1, "account": "spoiled"})
    service.call("PUT", "/v1/accounts/fine", {"notify": {"email": "ops@example.com"}})
    service.call("PUT", "/v1/event-types/order.sent", {"description": "sent", "schema": {"type": "integer"}})
    eventually(lambda: service.call("GET", "/v1/dead-letters")["data"] or None)
    service.call("POST", "/v1/replays", {"filter": {"account": "nobody"}})
    key: str = service.call("POST", "/v1/keys", {"name": "good", "scopes": ["read"]})["key"]
    return key


def arrived(target: Target, body: bytes) -> list[bytes] | None:
    """The innocent endpoint's request with this body, if it has come."""
    return [said for path, _, said in target.received if path == "/fine" and said == body] or None


def try_all(service: Service, target: Target, key: str) -> list[str]:
    """Deliver to the innocent endpoint, and ask for every list and page; what failed."""
    failed = []

    def ask(client: httpx.Client, path: str) -> Any:
        began = len(service.process.stderr)
        answer = client.get(path)
        if answer.status_code == 200 and "could not be read" not in answer.text:
            return answer.json() if "json" in answer.headers["content-type"] else None
        said = service.process.stderr[began:] or answer.text
        failed.append(f"{path}: {answer.status_code} {said[-1_500:]}")
        return None

    for number in range(2):
        body = {"type": "order.sent", "payload": number, "account": "fine"}
        assert service.call("POST", "/v1/events", body)["deliveries"] == 1
        eventually(partial(arrived, target, str(number).encode()))
    service.call("GET", "/v1/endpoints", authorization=f"Bearer {key}")
    for path in LISTS:
        after = ""
        while after is not None:
            page = ask(service.client, path + after)
            more = None if page is None else page.get("next_cursor")
            after = None if more is None else f"&cursor={more}"
    visitor = httpx.Client(base_url=service.process.url, timeout=120, trust_env=False, follow_redirects=True)
    with visitor:
        origin = {"origin": service.process.url, "sec-fetch-site": "same-origin"}
        entered = visitor.post("/login", data={"key": KEY, "next": "/keyboard"}, headers=origin)
        assert entered.status_code == 200, service.process.stderr[-4_000:]
        for path in PAGES:
            ask(visitor, path)
    return failed


def examined(database: str, tmp_path: Path) -> list[dict[str, Any]]:
    """What `hookline doctor` finds."""
    done = run("doctor", "--database", database, "--json", cwd=tmp_path, env=ENV)
    assert "Traceback" not in done.stderr, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_spoiled_endpoint_harms_itself_alone(
    serve: Callable[[], ServerProcess], database: str, target: Target, tmp_path: Path
) -> None:
    with serve() as process, Service(process) as service:
        key = furnish(service, target)
        fields = {"url": f"{target.url}/spoiled", "events": ["*"], "account": "spoiled", "circuit": None}
        spoiled = [
            service.call("POST", "/v1/endpoints", fields)["id"]
            for column in COLUMNS
            for _ in VALUES
            if column != "id"
        ]
        assert process.stop() == 0
    places = [(column, value) for column in COLUMNS for value in VALUES if column != "id"]
    with closing(Rows(database)) as rows:
        planted = {
            id: place
            for id, place in zip(spoiled, places, strict=True)
            if rows.change("endpoints", "id", read("endpoint", id), *place)
        }
    assert {column for column, _ in planted.values()} == COLUMNS.keys() - {"id"}
    with serve() as process, Service(process) as service:
        service.call("POST", "/v1/events", {"type": "order.paid", "payload": 2, "account": "spoiled"})
        assert try_all(service, target, key) == []
        troubled = set()
        for id, place in planted.items():
            shown = service.call("GET", f"/v1/endpoints/{id}")
            if shown["problems"]:
                troubled.add(place[0])
                assert all(each["detail"] for each in shown["problems"])
        found = [each for each in examined(database, tmp_path) if each["check"] == "endpoints"]
        assert found[-1]["level"] == "bad"
        for id in list(planted)[:: len(VALUES) // 3]:
            service.call("DELETE", f"/v1/endpoints/{id}")
        assert process.stop() == 0
        assert "Traceback" not in process.stderr, process.stderr[-6_000:]
    assert troubled >= {
        "url",
        "headers",
        "retry",
        "events",
        "filter",
        "secret",
        "metadata",
        "circuit",
        "rate_limit",
    }


MADE: dict[str, dict[str, Any]] = {
    "alerts": {
        "id": 1,
        "kind": "dead_letters",
        "account": "spoiled",
        "subject": "spoiled",
        "message": "planted",
        "value": 1.0,
        "threshold": 1.0,
        "since": 1_700_000_000.0,
        "resolved_at": 1_700_000_000.0,
        "clear_looks": 0,
    },
    "notifications": {
        "channel": "webhook",
        "recipient": "http://127.0.0.1:9/",
        "kind": "alert.fired",
        "account": "spoiled",
        "detail": "{}",
        "at": 1_700_000_000.0,
        "due_at": 1_700_000_000.0,
        "tries": 0,
    },
    "announcements": {
        "kind": "delivery.dead",
        "account": "spoiled",
        "subject": 2,
        "detail": None,
        "at": 1_700_000_000.0,
    },
    "sessions": {
        "digest": b"d" * 32,
        "kind": "login",
        "key_digest": b"k" * 32,
        "account": None,
        "scopes": [],
        "created_at": 1_700_000_000.0,
        "seen_at": 1_700_000_000.0,
        "expires_at": 4_000_000_000.0,
        "visit_s": 0.0,
    },
    "worker_status": {"worker": 3, "at": 1_700_000_000.0, "status": b"{}"},
}


def good_row(rows: Rows, table: str) -> dict[str, Any]:
    """A whole row of this table, as hookline writes them."""
    if table not in MADE:
        return rows.one(table)
    types = rows.types(table)
    row: dict[str, Any] = dict.fromkeys((name for name in types if name not in NUMBERED.get(table, ())), None)
    return row | {name: rows.suited(value, types[name]) for name, value in MADE[table].items()}


def test_spoiled_rows_of_every_table_harm_themselves_alone(
    serve: Callable[[], ServerProcess], database: str, target: Target, tmp_path: Path
) -> None:
    with serve() as process, Service(process) as service:
        key = furnish(service, target)
        with closing(Rows(database)) as rows:
            good = {table: good_row(rows, table) for table in FRESH}
        assert process.stop() == 0
    with closing(Rows(database)) as rows:
        for table, row in good.items():
            assert rows.add(table, row), f"{table}: a whole row is taken"
            types = rows.types(table)
            columns = [name for name in types if name not in NUMBERED.get(table, ())]
            planted = {name for name in columns for value in VALUES if rows.add(table, row, name, value)}
            assert planted >= {name for name in columns if types[name] != "uuid"}, table
    with serve() as process, Service(process) as service:
        assert try_all(service, target, key) == []
        [found] = [each for each in examined(database, tmp_path) if each["check"] == "rows"]
        assert found["level"] == "bad"
        assert process.stop() == 0
        assert "Traceback" not in process.stderr, process.stderr[-6_000:]


# What `hookline doctor` says of one spoiled row: the statement that spoils it, and how it is named.
NAMED = {
    "keys": ("UPDATE keys SET scopes = {list}", "key key_", "scopes cannot be read"),
    "accounts": (
        "UPDATE accounts SET notify = 'no json'",
        "the settings of account fine",
        "notify cannot be read",
    ),
    "event_types": ("UPDATE event_types SET schema = '{{'", "event type order.sent", "schema cannot be used"),
    "jobs": ("UPDATE jobs SET filter = 'no json'", "job ", "filter cannot be read"),
}


def test_doctor_names_what_is_spoiled(
    serve: Callable[[], ServerProcess], database: str, target: Target, tmp_path: Path
) -> None:
    with serve() as process, Service(process) as service:
        furnish(service, target)
        assert process.stop() == 0
    assert [each for each in examined(database, tmp_path) if each["check"] == "rows"] == []
    mended: list[str] = []
    for statement, name, why in NAMED.values():
        with closing(Rows(database)) as rows:
            rows.run(statement)
        [found] = [each for each in examined(database, tmp_path) if each["check"] == "rows"]
        mended.append(found["detail"])
        assert found["level"] == "bad"
        if len(mended) <= 3:
            assert name in found["detail"]
            assert why in found["detail"]
        else:
            assert "and 1 more" in found["detail"]
