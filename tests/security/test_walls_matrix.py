"""No call tells an account anything of another one: every id that a call takes, made from the served description.

For each place in a request that names a thing - a part of the path, a parameter, a field of the body, however deep - the
caller has a key that is bound to one account and names a thing of another one there, and then one that does not exist.
Both must be answered with the same words, and nothing of the other account may change. A new call is covered by itself.
`tests/dashboard/test_walls.py` does the same for every page and form, with keys and visits.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest
from psycopg import sql

from hookline.api.calls.docs import SAMPLES, VIEWER
from hookline.api.description.document import describe
from hookline.api.request.parameters import ACCOUNT_SCHEMA, PREFIX_SCHEMA, id_schema
from hookline.api.routes import table
from hookline.app import Hookline
from hookline.config import Settings
from hookline.ids import PREFIXES
from postgres_server import PostgresServer
from server_process import ServerProcess
from tests.dashboard.conftest import KEY, Service
from tests.dashboard.site import Target
from tests.dashboard.test_walls import CANARY, UNKNOWN, World
from tests.dashboard.test_walls import _until as until

REAL = table(Hookline("sqlite:///unused.db", settings=Settings(dev=True)))
DESCRIBED: dict[str, Any] = json.loads(json.dumps(describe(REAL), default=str))
# Parts of paths that name nothing of an account: event types are described for all of them.
OF_NOBODY = frozenset({"name"})
NAMES_A_THING = re.compile(r"(?:^|_)(?:ids?|account|prefix)$")
# Text that a body must have, by its field.
TEXTS = {"events": "order.*", "type": "order.paid", "url": "https://hooks.example.com/", "name": "of.nobody"}
# Of a thing of each kind: a value of others, and one that nobody has.
KINDS = {
    **{id_schema(noun)["pattern"]: f"{noun}_id" for noun in PREFIXES},
    ACCOUNT_SCHEMA["pattern"]: "account",
    PREFIX_SCHEMA["pattern"]: "prefix",
}


class Place(NamedTuple):
    """Where a request names a thing."""

    method: str
    path: str
    where: str  # path, query or body
    steps: tuple[str | int, ...]  # to the value; one name, but in a body
    kind: str

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.where}:{'/'.join(map(str, self.steps))}"


def resolved(schema: Any) -> Any:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    return DESCRIBED["components"]["schemas"][reference.rpartition("/")[2]]


def places(schema: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The steps to every value that names a thing, and its kind."""
    schema = resolved(schema)
    kind = KINDS.get(schema.get("pattern", ""))
    if kind is not None:
        yield steps, kind
        return
    for choice in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(choice, ()):
            yield from places(each, steps)
    for name, each in schema.get("properties", {}).items():
        found = list(places(each, (*steps, name)))
        assert found or not NAMES_A_THING.search(name), (
            f"the field {name!r} names a thing, but its schema does not say of which kind: describe it with "
            "`id_schema`, or ACCOUNT_SCHEMA"
        )
        yield from found
    if "items" in schema:
        yield from places(schema["items"], (*steps, 0))


def all_places() -> list[Place]:
    found = []
    for path, methods in DESCRIBED["paths"].items():
        for method, operation in methods.items():
            about = (method.upper(), path)
            for parameter in operation.get("parameters", ()):
                name, where = parameter["name"], parameter["in"]
                kinds = [kind for _, kind in places(parameter["schema"])]
                if name == "row_id":  # of an outbox: it has its event's id
                    kinds = [name]
                if where == "path":
                    assert kinds or name in OF_NOBODY, (
                        f"{' '.join(about)}: nobody knows what {name!r} is. Give it the schema of its kind in `openapi`, or "
                        "add it to OF_NOBODY if it belongs to no account"
                    )
                elif where == "query":
                    assert kinds or not NAMES_A_THING.search(name), (
                        f"{' '.join(about)}: {name!r} needs the schema of its kind"
                    )
                found += [Place(*about, where, (name,), kind) for kind in kinds]
            body = operation.get("requestBody")
            if body is not None:
                schema = body["content"]["application/json"]["schema"]
                found += [Place(*about, "body", steps, kind) for steps, kind in places(schema)]
    return found


PLACES = list(dict.fromkeys(all_places()))


def _is_list(path: str) -> bool:
    parameters = DESCRIBED["paths"][path]["get"].get("parameters", ())
    return "cursor" in {each["name"] for each in parameters}


GETS = sorted(path for path, methods in DESCRIBED["paths"].items() if "get" in methods)


def least(schema: Any, name: str) -> Any:
    """The smallest value that the schema allows."""
    schema = resolved(schema)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return least(schema[choice][0], name)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            return {each: least(properties[each], each) for each in schema.get("required", ())}
        case "array":
            return [least(schema["items"], name)] if schema.get("minItems") else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "string":
            if name in TEXTS:
                return TEXTS[name]
            assert schema.get("pattern") in KINDS, f"a body needs the text {name!r}: add it to TEXTS"
            return None
    return 1  # any JSON


def filled(value: Any, steps: tuple[str | int, ...], given: Any) -> Any:
    """The value with this at the end of these steps."""
    if not steps:
        return given
    first, rest = steps[0], steps[1:]
    if first == 0:
        known = value[0] if isinstance(value, list) and value else None
        return [filled(known, rest, given)]
    known = value if isinstance(value, dict) else {}
    return {**known, first: filled(known.get(first), rest, given)}


class Matrix:
    """Two accounts with something of everything, and the keys of one of them."""

    def __init__(self, world: World, database: str) -> None:
        self.world = world
        self.database = database
        service, account = world.service, world.mine_account
        self.keys = {scope: service.new_key(scope, account=account) for scope in ("admin", "read", "publish")}
        self.nothing = service.new_key("admin", account="has-nothing")
        self.theirs = service.new_key("admin", account=world.others.ids["account"])
        self.client = httpx.Client(base_url=service.url, timeout=60, trust_env=False)
        # What is counted now and then has been counted: each account has one dead letter.
        until(lambda: service.call("GET", "/v1/health"), lambda health: health["dead"] == 2)

    def value(self, kind: str, ids: dict[str, str]) -> str:
        """A thing of this kind."""
        if kind == "prefix":
            return ids["delivery_id"][:-2]
        assert kind in ids, f"there is no {kind} in the world of these tests: add one to World and to UNKNOWN"
        return ids[kind]

    def ask(self, place: Place, ids: dict[str, str], key: str) -> httpx.Response:
        """The caller's own things everywhere, but one of these at the place."""
        given = self.value(place.kind, ids)
        own = self.world.mine.ids
        operation = DESCRIBED["paths"][place.path][place.method.lower()]
        parts = {
            each["name"]: own[each["name"]] if each["name"] != "prefix" else own["delivery_id"][:-2]
            for each in operation.get("parameters", ())
            if each["in"] == "path"
        }
        query: dict[str, str] = {}
        body: Any = None
        if "requestBody" in operation:
            body = least(operation["requestBody"]["content"]["application/json"]["schema"], "")
        match place.where:
            case "path":
                parts[str(place.steps[0])] = given
            case "query":
                query[str(place.steps[0])] = given
            case "body":
                body = filled(body, place.steps, given)
        return self.client.request(
            place.method,
            place.path.format_map(parts),
            params=query,
            json=body,
            headers={"authorization": f"Bearer {key}"},
        )

    def get(self, path: str, key: str, query: str = "") -> httpx.Response:
        ids = self.world.mine.ids
        path = path.format_map({**ids, "prefix": ids["delivery_id"][:-2]})
        return self.client.get(path + query, headers={"authorization": f"Bearer {key}"})

    def theirs_stored(self) -> dict[str, Any]:
        """Every row of the other account, in every table that says whose a row is."""
        account = self.world.others.ids["account"]
        if self.database.startswith("sqlite"):
            with sqlite3.connect(self.database.removeprefix("sqlite:///")) as database:
                names = [
                    row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                ]
                tables = [
                    name
                    for name in names
                    if any(
                        column[1] == "account" for column in database.execute(f"PRAGMA table_info({name})")
                    )
                ]
                found = {
                    name: sorted(
                        map(repr, database.execute(f"SELECT * FROM {name} WHERE account = ?", [account]))
                    )
                    for name in tables
                    if name not in MEASURED
                }
            database.close()
            return found
        with psycopg.connect(self.database) as session:
            rows = session.execute(
                "SELECT table_name FROM information_schema.columns "
                "WHERE table_schema = 'hookline' AND column_name = 'account'"
            ).fetchall()
            return {
                name: sorted(
                    map(
                        repr,
                        session.execute(
                            sql.SQL("SELECT * FROM hookline.{} WHERE account = %s").format(
                                sql.Identifier(name)
                            ),
                            [account],
                        ),
                    )
                )
                for (name,) in rows
                if name not in MEASURED
            }


# Counted and measured again by itself, whoever asks for what.
MEASURED: frozenset[str] = frozenset()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def matrix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    folder = tmp_path_factory.mktemp("matrix")
    if request.param == "sqlite":
        yield from _matrix(f"sqlite:///{folder}/hooks.db", folder)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.fresh_database() as url:
        yield from _matrix(url, folder)


def _matrix(database: str, folder: Path) -> Iterator[Matrix]:
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8", "HOOKLINE_DRAIN_S": "60"}
    target = Target()
    with ServerProcess("--database", database, cwd=folder, env=env) as process:
        service = Service(process.url, target, database)
        with service.client:
            matrix = Matrix(World(service), database)
            with matrix.client:
                yield matrix
        assert process.stop() == 0
        assert "Traceback" not in process.stderr
    target.close()


def same(answer: httpx.Response, value: str) -> tuple[Any, ...]:
    """What must be equal, whatever was asked for."""
    request_id = answer.headers["request-id"]
    headers = {
        name: text
        for name, text in answer.headers.items()
        if name not in ("date", "request-id", "content-length")
    }
    return answer.status_code, headers, answer.text.replace(request_id, "REQ").replace(value, "IT")


def test_the_description_that_is_served_is_the_one_that_is_walked(matrix: Matrix):
    served = matrix.get("/openapi.json", matrix.keys["read"]).json()
    assert served["paths"].keys() == DESCRIBED["paths"].keys()
    hidden = {call.path for call in REAL} - DESCRIBED["paths"].keys()
    assert hidden == {f"/docs/{VIEWER}", f"/docs/{SAMPLES}"}, (
        "calls that are not described cannot be walked: add a test of their own"
    )


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_thing_of_others_is_one_that_does_not_exist(matrix: Matrix, place: Place):
    others, unknown = matrix.world.others.ids, UNKNOWN
    before = matrix.theirs_stored()
    for key in matrix.keys.values():
        foreign = matrix.ask(place, others, key)
        nothing = matrix.ask(place, unknown, key)
        assert same(foreign, matrix.value(place.kind, others)) == same(
            nothing, matrix.value(place.kind, unknown)
        )
        assert foreign.status_code < 500
        if place.where == "path":
            assert foreign.status_code in (403, 404, 422) or place.kind == "prefix", foreign.text
        elif foreign.is_success and "data" in foreign.json():
            assert foreign.json()["data"] == []
    assert matrix.theirs_stored() == before
    assert any(before.values())


def told(world: World, text: str) -> list[str]:
    """What of the others is in a text."""
    ids = world.others.ids
    return sorted(
        {value for name, value in ids.items() if value in text} | ({CANARY} if CANARY in text else set())
    )


@pytest.mark.parametrize("path", GETS)
def test_no_answer_has_anything_of_others_in_it(matrix: Matrix, path: str):
    limit = "?limit=200" if _is_list(path) else ""
    for key in (matrix.keys["admin"], matrix.keys["read"], matrix.nothing):
        answer = matrix.get(path, key, limit)
        assert answer.status_code < 500
        assert told(matrix.world, answer.text + str(answer.headers)) == []
    own = matrix.get(path, matrix.keys["admin"], limit)
    if own.status_code == 200 and _is_list(path) and path not in ("/v1/alerts", "/v1/event-types"):
        assert own.json()["data"], "nothing of the caller's own is listed: it could not show what others have"
        theirs = matrix.get(path, matrix.theirs, limit)
        assert theirs.status_code == 404 or told(matrix.world, theirs.text)


# Numbers that say nothing of any account: they are the same for all.
SETTINGS = frozenset({"window_s", "workers"})


@pytest.mark.parametrize("path", [path for path in GETS if "{" not in path and path.startswith("/v1/")])
def test_an_account_that_has_nothing_counts_nothing(matrix: Matrix, path: str):
    answer = matrix.get(path, matrix.nothing)
    if answer.status_code == 403:
        return
    assert answer.status_code == 200
    assert dict(_numbers(answer.json())) == {}


@pytest.mark.parametrize("path", [path for path in GETS if _is_list(path)])
def test_a_cursor_of_others_is_no_cursor(matrix: Matrix, path: str):
    cursor = None
    found = matrix.get(path, matrix.theirs, "?limit=1")
    if found.status_code == 200:
        cursor = found.json()["next_cursor"]
    if cursor is None:
        cursor = matrix.get(path, KEY, "?limit=1").json().get("next_cursor") or "none"
    for key in (matrix.keys["admin"], matrix.nothing):
        foreign = matrix.get(path, key, f"?cursor={cursor}")
        broken = matrix.get(path, key, f"?cursor={cursor[:-1]}A")
        if path != "/v1/event-types":  # of nobody: all keys see the same list
            assert foreign.status_code in (403, 404, 422)
            assert same(foreign, cursor) == same(broken, cursor)


def _numbers(value: Any, at: str = "") -> Iterator[tuple[str, float]]:
    """Every number that is not 0, by where it stands."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in SETTINGS:
                yield from _numbers(each, f"{at}/{name}")
    elif isinstance(value, list):
        for n, each in enumerate(value):
            yield from _numbers(each, f"{at}/{n}")
    elif isinstance(value, int | float) and not isinstance(value, bool) and value:
        yield at, value
