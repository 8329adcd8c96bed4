"""What the API would refuse is refused before the connection is touched, in the API's words."""

import dataclasses
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pydantic
import pytest

from hookline.api.publishing.envelope import read_publication
from hookline.config import Settings
from hookline.errors import ConfigError, HooklineError, Invalid
from hookline.outbox import Draft, publish, publish_many
from hookline.outbox.limits import publish_limits
from outbox.database import Sqlite
from tests.corpus.shown import SHOWN

MIB = 1_048_576


@pytest.fixture
def closed() -> sqlite3.Connection:
    """A connection that fails as soon as it is touched."""
    connection = sqlite3.connect(":memory:")
    connection.close()
    return connection


def refusal(connection: Any, *args: Any, **options: Any) -> Invalid:
    with pytest.raises(Invalid) as caught:
        publish(connection, *args, **options)
    return caught.value


class Fields(NamedTuple):
    """What is published."""

    type: Any = "order.paid"
    payload: Any = b"{}"
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


def said_by_the_api(fields: Fields) -> tuple[str, str]:
    """The code and the words of the API."""
    envelope = json.dumps({"type": fields.type, **fields.options})[:-1].encode()
    try:
        read_publication(
            envelope + b', "payload": ' + fields.payload + b"}",
            limit_bytes=MIB,
            now=datetime.now(UTC).timestamp(),
        )
    except HooklineError as error:
        return getattr(error, "code", "too_large"), str(error)
    raise AssertionError("The API takes it.")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        *[
            (Fields(type), "/type")
            for type in (
                "",
                "a b",
                "a..b",
                ".a",
                "a.",
                "a.*",
                "*",
                "é",
                "a" * 129,
                "a\n",
                "a\0",
                "order-paid",
            )
        ],
        *[
            (Fields(options={"account": account}), "/account")
            for account in ("", "a b", "é", "a" * 65, "a/b", "a\n")
        ],
        *[
            (Fields(options={"idempotency_key": key}), "/idempotency_key")
            for key in ("", "a b", "é", "a" * 256, "a\n", "a\0")
        ],
        (Fields(payload=b'"' + b"a" * (MIB - 1) + b'"'), "/payload"),
        (Fields(payload=b"[" * 65 + b"]" * 65), "/payload"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_fields_are_refused_in_the_words_of_the_api(closed, fields, pointer):
    error = refusal(closed, fields.type, fields.payload, **fields.options)
    assert (error.code, str(error)) == said_by_the_api(fields)
    assert error.pointer == pointer


@pytest.mark.parametrize("type", [None, 5, b"order.paid", ["order.paid"]])
def test_a_type_that_is_no_text_is_refused(closed, type):
    assert refusal(closed, type, {}).pointer == "/type"


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b"{} {}", "invalid_json"),
        (b"NaN", "invalid_json"),
        (b"-Infinity", "invalid_json"),
        (b'"\x01"', "invalid_json"),
        (b'"\xff\xfe"', "invalid_json"),
        (b'"\\ud800"', "invalid_json"),
        (b"\xef\xbb\xbf{}", "invalid_json"),
        ('{"a": 1}'.encode("utf-16-le"), "invalid_json"),
        (bytes(range(256)), "invalid_json"),
        (b"[" * 100_000 + b"]" * 100_000, "too_deep"),
        (b" " * MIB + b"1", "too_large"),
        ("a" * MIB, "too_large"),
        (object(), "invalid_field"),
        ({"a": object()}, "invalid_field"),
        ({1, object()}, "invalid_field"),
        ("\ud800", "invalid_field"),
        (pydantic.BaseModel, "invalid_field"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_payload_that_is_no_json_value_is_refused(closed, payload, code):
    error = refusal(closed, "order.paid", payload)
    assert (error.code, error.pointer) == (code, "/payload")
    assert len(str(error)) < 400


def test_a_payload_that_contains_itself_is_refused(closed):
    payload: list[Any] = []
    payload.append(payload)
    assert refusal(closed, "order.paid", payload).pointer == "/payload"


class Nowhere(tzinfo):
    def utcoffset(self, _: datetime | None) -> None:
        return None


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (datetime(2026, 1, 1), "a datetime with a zone"),  # noqa: DTZ001 - is what is refused
        (datetime(2026, 1, 1, tzinfo=Nowhere()), "a datetime with a zone"),
        ("2026-01-01T00:00:00Z", "a datetime with a zone"),
        (1_767_225_600, "a datetime with a zone"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "years 1 to 9999"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "years 1 to 9999"),
        (datetime(9999, 12, 31, tzinfo=UTC), "at most 365 days ahead"),
        (datetime.now(UTC) + timedelta(days=365, hours=1), "at most 365 days ahead"),
    ],
    ids=str,
)
def test_a_moment_is_refused_in_the_words_of_the_library(closed, moment, words):
    error = refusal(closed, "order.paid", {}, deliver_at=moment)
    assert words in str(error)
    assert error.pointer == "/deliver_at"


@pytest.mark.parametrize(
    ("hops", "code"),
    [(4, "loop_detected"), (10**9, "loop_detected"), (-1, "invalid_field"), ("1", "invalid_field")],
)
def test_what_was_sent_on_too_often_is_refused(closed, hops, code):
    assert refusal(closed, "order.paid", {}, hops=hops).code == code


@pytest.mark.parametrize(
    "table",
    ["", "outbox; DROP TABLE orders", 'a"b', "a.b", "main.outbox", "Outbox", "a" * 64, "a\n", 5, "o%s"],
)
def test_a_table_with_another_name_is_refused(sqlite, table):
    with closing(sqlite3.connect(sqlite.path)) as connection:
        assert refusal(connection, "order.paid", {}, table=table).pointer == "/table"


def test_more_than_a_thousand_events_are_refused(closed):
    taken: list[int] = []

    def endless() -> Iterator[Draft]:
        while True:
            taken.append(1)
            yield Draft("a", 1)

    with pytest.raises(Invalid, match=r"^A batch has at most 1,000 events") as caught:
        publish_many(closed, endless())
    assert caught.value.code == "too_many_events"
    assert len(taken) == 1_001


def test_a_thousand_events_are_not_too_many(sqlite):
    with closing(sqlite3.connect(sqlite.path)) as connection, connection:
        assert len(publish_many(connection, [Draft("a", 1)] * 1_000)) == 1_000
    assert len(sqlite.kept()) == 1_000


def test_payloads_that_are_together_too_large_are_refused(closed):
    with pytest.raises(Invalid, match="may have at most 16,777,216 bytes") as caught:
        publish_many(closed, [Draft("a", b'"' + b"a" * (MIB - 2) + b'"')] * 17)
    assert caught.value.code == "too_large"


def test_what_is_no_draft_is_named(closed):
    with pytest.raises(TypeError, match=r"drafts\[1\] is no hookline.outbox.Draft but dict"):
        publish_many(closed, [Draft("a", 1), {"type": "a"}])  # type: ignore[list-item]


# --- payloads ---


@dataclasses.dataclass
class Point:
    x: int
    at: datetime


class Struct(msgspec.Struct):
    x: int
    y: str | msgspec.UnsetType = msgspec.UNSET


class Model(pydantic.BaseModel):
    x: int
    at: datetime
    point: Point | None = None


class Root(pydantic.RootModel[list[int]]):
    pass


@pydantic.dataclasses.dataclass
class Checked:
    x: int


NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("payload", "kept"),
    [
        ({"b": 1, "a": [True, None, 1.5, "ä"]}, '{"b":1,"a":[true,null,1.5,"ä"]}'),
        ([1, 2], "[1,2]"),
        ((1, 2), "[1,2]"),
        ("text", '"text"'),
        (5, "5"),
        (True, "true"),
        (None, "null"),
        (
            {"id": UUID(int=1), "at": NEW_YEAR},
            '{"id":"00000000-0000-0000-0000-000000000001","at":"2026-01-01T00:00:00Z"}',
        ),
        (b' {"a": 1} ', ' {"a": 1} '),
        (bytearray(b"1.0"), "1.0"),
        (memoryview(b"1.00")[:3], "1.0"),
        (msgspec.Raw(b"1.0"), "1.0"),
        (Point(1, NEW_YEAR), '{"x":1,"at":"2026-01-01T00:00:00Z"}'),
        (Struct(1), '{"x":1}'),
        (Model(x=1, at=NEW_YEAR), '{"x":1,"at":"2026-01-01T00:00:00Z","point":null}'),
        (Root([1, 2]), "[1,2]"),
        (Checked(1), '{"x":1}'),
        (
            {"models": [Model(x=1, at=NEW_YEAR)]},
            '{"models":[{"x":1,"at":"2026-01-01T00:00:00Z","point":null}]}',
        ),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_payload_may_be_anything_that_is_json(sqlite, payload, kept):
    with closing(sqlite3.connect(sqlite.path)) as connection, connection:
        publish(connection, "order.paid", payload)
    assert [each.payload.decode() for each in sqlite.kept()] == [kept]


LARGEST = b'"' + b"a" * (MIB - 2) + b'"'
AS_THEY_ARE = [
    *SHOWN["P31"],
    *SHOWN["P32"],
    *SHOWN["P33"],
    b"1e400",
    b"9" * 5_000,
    b'{"k":1,"k":2}',
    b'"\\u0000"',
    LARGEST,
]


def test_odd_payloads_are_kept_as_they_are(sqlite, postgres):
    import psycopg

    with closing(sqlite3.connect(sqlite.path)) as connection, connection:
        publish_many(connection, [Draft("a", each) for each in AS_THEY_ARE])
    with psycopg.connect(postgres.url) as connection:
        publish_many(connection, [Draft("a", each) for each in AS_THEY_ARE])
    assert [each.payload for each in sqlite.kept()] == AS_THEY_ARE
    assert [each.payload for each in postgres.kept()] == AS_THEY_ARE


# --- limits ---


def test_the_limits_are_those_of_the_server_by_default():
    settings = Settings()
    assert publish_limits() == (settings.payload_limit_bytes, settings.batch_limit_bytes, settings.max_hops)


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    publish_limits.cache_clear()
    yield monkeypatch
    publish_limits.cache_clear()


def test_the_limits_are_those_that_the_server_has(closed, limited):
    limited.setenv("HOOKLINE_PAYLOAD_LIMIT_BYTES", "10")
    limited.setenv("HOOKLINE_BATCH_LIMIT_BYTES", "15")
    limited.setenv("HOOKLINE_MAX_HOPS", "0")
    assert str(refusal(closed, "a", "a" * 9)) == "A payload may have at most 10 bytes."
    assert refusal(closed, "a", "a", hops=1).code == "loop_detected"
    with pytest.raises(Invalid, match="at most 15 bytes"):
        publish_many(closed, [Draft("a", "a" * 8)] * 2)


@pytest.mark.parametrize("value", ["", "0", "1e6", "-5", "５０", "99999999999999"])
def test_a_limit_that_is_no_number_is_named(closed, limited, value):
    limited.setenv("HOOKLINE_PAYLOAD_LIMIT_BYTES", value)
    with pytest.raises(
        ConfigError, match="HOOKLINE_PAYLOAD_LIMIT_BYTES is a whole number from 1 to 67,108,864"
    ):
        publish(closed, "a", {})


# --- ids ---


def test_ids_are_those_of_events_and_sort_in_their_order(sqlite: Sqlite):
    with closing(sqlite3.connect(sqlite.path)) as connection, connection:
        ids = [publish(connection, "order.paid", {}) for _ in range(20)]
    assert ids == sorted(set(ids))
    assert all(id.startswith("evt_") for id in ids)
    assert [each.id for each in sqlite.kept()] == ids
    assert {bytes(id)[-2:] for (id,) in sqlite.run("SELECT id FROM hookline_outbox")} == {b"\0\0"}


FORKS = """
import os, sqlite3, sys
from hookline.ids import read
from hookline.outbox import ddl, publish
connection = sqlite3.connect(":memory:")
connection.executescript(ddl("sqlite"))
publish(connection, "a", 1)
for _ in range(4):
    if not (child := os.fork()):
        print(read("event", publish(connection, "a", 1))[8:].hex(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_processes_that_were_forked_draw_different_ids():
    ran = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120, check=True
    )
    assert len(set(ran.stdout.split())) == 4
