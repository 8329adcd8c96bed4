"""A server that is driven through everything, with everything logged, shows none of its secrets anywhere."""

import contextlib
import json
import sqlite3
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

import httpx
import psutil
import psycopg
import pytest

from answering import Receiver, eventually, receiving
from confidential import confidential, revealed
from mail_server import mail_server
from refused_rows import add_refused_row
from server_process import SERVER, ServerProcess, environment, run
from tests.planting import plant

API_KEY = "hlk_" + "canaryofthesettings1"
SEALING = ("canary-of-the-sealing-key-1", "canary-of-the-sealing-key-2")
EXAMPLE_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"  # of /openapi.json: "0123456789abcdef01234567"
CANARIES = {
    "key of the settings": API_KEY,
    "first sealing key": SEALING[0] * 2,
    "second sealing key": SEALING[1] * 2,
    "signing secret": b64encode(b"canary of the signing secret").decode(),
    "rotated secret": b64encode(b"canary of the rotated secret").decode(),
    "header": "canary-of-a-header",
    "header of a patch": "canary-of-a-patched-header",
    "chat": "T0canary0chat",
    "webhook": "T0canary0hook",
    "userinfo": "canary-of-a-login",
    "mail password": "canary-of-the-mail-server",
    "database password": "canary-of-the-database",
    "wrong key": "hlk_" + "canaryofawrongkey111",
    "wrong portal link": "canary-of-a-portal-link-" * 2,
    "idempotency key": "canary-of-an-idempotency-key",
    "payload": "canary-of-a-payload",
}
# May be seen where the API shows the field by its contract: an endpoint's URL, an event's payload and key.
TOKENS = {"token in a query": "canary-of-a-query", "token in a path": "T0canary0path"}
SHOWN_TO_READERS = ("idempotency key", "payload")
ONCE = {"schedule": [0], "jitter": "none"}


class Installation(NamedTuple):
    """A server at work, and a way to break its database."""

    server: ServerProcess
    client: httpx.Client
    database: str
    env: dict[str, str]
    folder: Path
    postgres: Any  # None: it is a file


@pytest.fixture(params=["sqlite", "postgres"])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    with contextlib.ExitStack() as stack:
        mail = stack.enter_context(mail_server(tmp_path, login=True))
        postgres, flags = None, []
        database = f"sqlite:///{tmp_path}/hooks.db"
        if request.param == "postgres":
            postgres = request.getfixturevalue("mortal_server")
            database = with_password(stack.enter_context(postgres.fresh_database()))
            flags = ["--processes", "2"]
        env = {
            "HOOKLINE_API_KEY": API_KEY,
            "HOOKLINE_DATABASE": database,
            "HOOKLINE_SECRET_KEY": ",".join(each * 2 for each in SEALING),
            "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8",
            "HOOKLINE_DRAIN_S": "60",
            "HOOKLINE_ALERT_EVERY_S": "0.2",
            "HOOKLINE_NOTIFY_DEATHS_S": "0",
            "HOOKLINE_SMTP_HOST": "127.0.0.1",
            "HOOKLINE_SMTP_PORT": str(mail.port),
            "HOOKLINE_SMTP_USERNAME": "hookline",
            "HOOKLINE_SMTP_PASSWORD": CANARIES["mail password"],
            "HOOKLINE_MAIL_FROM": "hookline@example.com",
            "SSL_CERT_FILE": str(mail.authority),
        }
        server = LoudServer(*flags, cwd=tmp_path, env=env)
        stack.enter_context(server)
        env["HOOKLINE_URL"] = server.url
        client = stack.enter_context(
            httpx.Client(
                base_url=server.url,
                headers={"authorization": f"Bearer {API_KEY}"},
                timeout=60,
                trust_env=False,
            )
        )
        yield Installation(server, client, database, env, tmp_path, postgres)


class LoudServer(ServerProcess):
    """The libraries say everything as well."""

    def __init__(self, *arguments: str, cwd: Path, env: dict[str, str]) -> None:
        super().__init__(cwd=cwd, env=env)
        self._command = [*SERVER, "--libraries", "serve", "--port", "0", *arguments]


def with_password(url: str) -> str:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    login = f"{parts.username}:{CANARIES['database password']}"
    return urlunsplit(parts._replace(netloc=f"{login}@{place}"))


def test_nothing_that_is_printed_answered_or_measured_holds_a_secret(installation):
    with receiving() as receiver:
        shown = driven(installation, receiver)
    server = installation.server
    assert server.stop() == 0
    shown["log"] = server.stderr + server.stdout
    events = {json.loads(line)["event"] for line in server.stderr.splitlines()}
    # It has been where it matters.
    assert events >= {
        "circuit.opened",
        "deliveries.died",
        "notification.failed",
        "secret.shown",
        "request.failed",
    }
    assert events >= {"portal_link.created", "endpoint.disabled", "alert.fired", "endpoint.invalid"}
    found = [
        (name, place)
        for place, text in shown.items()
        for name, canary in (CANARIES | TOKENS).items()
        if any(form in text for form in (canary, quote(canary, safe="")))
        and not (place.startswith("read ") and (name in SHOWN_TO_READERS or name in TOKENS))
    ]
    assert found == []
    found_secrets = {place: set(revealed(text, ())) - {EXAMPLE_SECRET} for place, text in shown.items()}
    assert {place: secrets for place, secrets in found_secrets.items() if secrets} == {}


def driven(installation: Installation, receiver: Receiver) -> dict[str, str]:
    """Everything that people and programs see of it, by where they see it. Answers that show a secret are not kept."""
    shown: dict[str, str] = {}
    client = installation.client

    def call(method: str, path: str, body: Any = None, *, status: int = 200, keep: bool = True) -> Any:
        answer = client.request(method, path, json=body)
        assert answer.status_code == status, (method, path, answer.text)
        if keep:
            shown[f"answer {method} {path} {len(shown)}"] = answer.text + str(answer.headers)
        return answer.json() if answer.content else None

    token = f"{TOKENS['token in a path']}?token={TOKENS['token in a query']}"
    fields = {"account": "acme", "headers": {"x-token": CANARIES["header"]}, "retry": ONCE}
    fields["secret"] = "whsec_" + CANARIES["signing secret"]

    def endpoint(status: int, type: str, **more: Any) -> str:
        body = {"url": f"{receiver.url}/{status}/{token}", "events": [type], **fields, **more}
        return str(call("POST", "/v1/endpoints", body, status=201, keep=False)["id"])

    failing = endpoint(500, "failing", circuit={"consecutive_failures": 1})
    fine = endpoint(200, "fine")
    endpoint(410, "gone")
    refused = call(
        "POST",
        "/v1/endpoints",
        {"url": "http://127.0.0.1:1027/" + token, "events": ["failing"], **fields},
        status=201,
        keep=False,
    )["id"]
    ids = {"endpoints": failing, "ids": failing[:14]}
    # What a URL with a login is answered is seen by whoever sent it; logs are not.
    login = f"https://me:{CANARIES['userinfo']}@example.com/"
    call("POST", "/v1/endpoints", {"url": login, "events": ["*"]}, status=422, keep=False)
    patch = {"headers": {"x-more": CANARIES["header of a patch"]}}
    assert CANARIES["header of a patch"] not in json.dumps(
        call("PATCH", f"/v1/endpoints/{fine}", patch, keep=False)
    )
    rotation = {"secret": "whsec_" + CANARIES["rotated secret"]}
    call("POST", f"/v1/endpoints/{fine}/secret/rotate", rotation, keep=False)
    assert CANARIES["rotated secret"] in json.dumps(call("GET", f"/v1/endpoints/{fine}/secret", keep=False))
    for account in ("acme", "hookline"):
        notify = {
            "email": "ops@acme.example",
            "slack": f"{receiver.url}/500/{CANARIES['chat']}",
            "webhook": f"{receiver.url}/500/{CANARIES['webhook']}",
        }
        call("PUT", f"/v1/accounts/{account}", {"notify": notify})
        call("POST", f"/v1/accounts/{account}/test-alert")
    made = call("POST", "/v1/keys", {"name": "ci", "scopes": ["read"]}, status=201, keep=False)
    link = call("POST", "/v1/accounts/acme/portal-link", {}, status=201, keep=False)["url"]
    secrets = {"made key": made["key"], "portal link": link.partition("token=")[2]}
    ids["keys"] = made["id"]

    # Visitors: with a link, with a wrong one, with a key.
    with httpx.Client(base_url=client.base_url, timeout=60, trust_env=False) as visitor:
        origin = {"origin": str(client.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
        for query in (secrets["portal link"], CANARIES["wrong portal link"]):
            visitor.post("/portal/enter", data={"token": query}, headers=origin)
            visitor.get("/portal/enter", params={"token": query})
        shown["answer of the portal"] = visitor.get("/portal").text
        for key in (CANARIES["wrong key"], API_KEY):
            shown[f"page after a login {len(key)}"] = visitor.post(
                "/login", data={"key": key, "next": "/"}, headers=origin, follow_redirects=True
            ).text.replace(token, "")
        for page in ("/endpoints", f"/endpoints/{failing}", "/keys", "/accounts", "/nothing"):
            shown[f"read page {page}"] = visitor.get(page).text
        secrets |= {f"visit {n}": each.value or "" for n, each in enumerate(visitor.cookies.jar)}
        wrong = visitor.get("/v1/events", headers={"authorization": f"Bearer {CANARIES['wrong key']}"})
        shown["answer to a wrong key"] = wrong.text

    # Deliveries that arrive, fail, die and are refused.
    for type in ("fine", "failing", "gone"):
        headers = {"idempotency-key": f"{CANARIES['idempotency key']}-{type}"}
        body = {"type": type, "account": "acme", "payload": {"card": CANARIES["payload"]}}
        answer = client.post("/v1/events", json=body, headers=headers)
        assert answer.status_code == 202
        ids["events"] = answer.json()["id"]
    call("POST", f"/v1/endpoints/{failing}/test", {}, status=202)

    def events() -> set[str]:
        return {line["event"] for line in installation.server.lines}

    wanted = {"circuit.opened", "endpoint.disabled", "notification.failed", "alert.fired"}
    eventually(lambda: wanted <= events() or None)
    dead = call("GET", "/v1/dead-letters?account=acme", keep=False)["data"]
    ids["deliveries"] = ids["dead-letters"] = dead[0]["id"]
    call("POST", f"/v1/dead-letters/{dead[0]['id']}/replay", status=202)
    ids["replays"] = call("POST", "/v1/replays", {"filter": {"account": "acme"}}, status=202)["id"]
    ids["discards"] = call("POST", "/v1/discards", {"filter": {"account": "nobody"}}, status=202)["id"]
    call("PUT", "/v1/event-types/fine", {"description": "x"})
    kept = {"card": CANARIES["payload"]}
    ids["refused"] = add_refused_row(installation.database, account="acme", payload=kept)

    # A row that somebody broke by hand.
    id = bytes.fromhex(id_of(installation, refused))
    plant(
        installation.database, id, "headers", json.dumps({"x-token": 7, "y": CANARIES["header"]}), tell=True
    )
    eventually(lambda: "endpoint.invalid" in events() or None)
    call("GET", f"/v1/endpoints/{refused}", keep=False)

    # Everything that can be read.
    for path in sorted(call("GET", "/openapi.json")["paths"]):
        if path.endswith("/secret"):
            continue
        whole = path
        for part in [each for each in path.split("/") if each.startswith("{")]:
            noun = path[: path.index(part)].rstrip("/").rpartition("/")[2]
            whole = whole.replace(part, ids.get(noun, "acme" if noun == "accounts" else "fine"))
        answer = client.get(whole)
        assert answer.status_code in (200, 405), (whole, answer.text)
        shown[f"read {whole}"] = answer.text
    shown["metrics"] = client.get("/metrics").text

    shown |= by_commands(installation, failing)
    shown["arguments of processes"] = arguments_of(installation)
    shown |= while_broken(installation)
    shown["database"] = dumped(installation)
    for name, secret in secrets.items():
        assert len(secret) > 20, name
        assert [place for place, text in shown.items() if secret in text] == [], name
        assert secret not in installation.server.stderr, name
    return shown


def id_of(installation: Installation, shown: str) -> str:
    from hookline.ids import read

    return read("endpoint", shown).hex()


COMMANDS = (
    ("status",),
    ("health",),
    ("endpoints", "list"),
    ("accounts", "show", "acme"),
    ("accounts", "set", "acme", "--slack", "https:/T0canary0chat"),
    ("keys", "list"),
    ("deliveries", "list"),
    ("dead", "list"),
    ("dead", "analyse"),
    ("events", "list"),
    ("alerts",),
    ("workers",),
    ("config", "show"),
    ("config", "show", "--json"),
    ("doctor",),
    ("doctor", "--json"),
    ("secrets", "status"),
    ("endpoints", "show", "ep_nothing"),
)


def by_commands(installation: Installation, endpoint: str) -> dict[str, str]:
    """What commands print: with the right settings, a wrong key, and a server that is not there."""
    found = {}
    env = installation.env
    for words in (*COMMANDS, ("endpoints", "show", endpoint), ("stats", endpoint)):
        # They show endpoints' URLs to an operator, as the API does.
        done = run(*words, cwd=installation.folder, env=env)
        assert "Traceback" not in done.stderr, done.stderr
        found[f"read {' '.join(words)}"] = done.stdout
        found[" ".join(words)] = done.stderr
    wrong = {
        "a wrong key": {"HOOKLINE_API_KEY": CANARIES["wrong key"]},
        "no server": {"HOOKLINE_URL": "http://127.0.0.1:9"},
        "a wrong URL": {"HOOKLINE_URL": f"http://me:{CANARIES['userinfo']}@127.0.0.1:9"},
        "a misspelt database": {"HOOKLINE_DATABASE": f"postgresql:/me:{CANARIES['database password']}@h/x"},
        "no database": {
            "HOOKLINE_DATABASE": f"postgresql://me:{CANARIES['database password']}@127.0.0.1:9/x"
        },
        "swapped settings": {"HOOKLINE_SMTP_PORT": CANARIES["database password"] + "@"},
        "a wrong sealing key": {"HOOKLINE_SECRET_KEY": "canary-of-a-wrong-sealing-key-1234"},
    }
    for name, settings in wrong.items():
        for words in (
            ("doctor",),
            ("events", "list"),
            ("config", "show"),
            ("secrets", "status"),
            ("serve", "--port", "0"),
        ):
            if name in ("a wrong key", "no server", "a wrong URL") and words[0] == "serve":
                continue
            done = run(*words, cwd=installation.folder, env={**env, **settings})
            found[f"{' '.join(words)} with {name}"] = done.stdout + done.stderr
            assert "Traceback" not in done.stderr, done.stderr
            assert "canary-of-a-wrong-sealing-key" not in done.stdout + done.stderr
    return {place: text for place, text in found.items() if text}


def arguments_of(installation: Installation) -> str:
    """The arguments of the server's processes, which everybody on a machine can read."""
    parent = psutil.Process(installation.server.process.pid)
    processes = [parent, *parent.children(recursive=True)]
    assert len(processes) == (1 if installation.postgres is None else 3)
    return "\n".join(" ".join(each.cmdline()) for each in processes)


def while_broken(installation: Installation) -> dict[str, str]:
    """What is answered and printed while the database does not work: it is away, or a table of it is missing."""
    body = {"type": "fine", "account": "acme", "payload": {"card": CANARIES["payload"]}}
    found = {}
    tables = (("endpoints", "/v1/endpoints"), ("accounts", "/v1/accounts/acme"), ("idempotency", ""))
    for table, path in tables:
        renamed(installation, table, f"{table}_elsewhere")
        headers = {"idempotency-key": CANARIES["idempotency key"]}
        answer = (
            installation.client.get(path)
            if path
            else installation.client.post("/v1/events", json=body, headers=headers)
        )
        renamed(installation, f"{table}_elsewhere", table)
        assert answer.status_code >= 500, (table, answer.text)
        found[f"answer without {table}"] = answer.text
    if installation.postgres is not None:
        installation.postgres.kill()
        for path in ("/v1/endpoints", "/v1/status", "/readyz", "/metrics"):
            found[f"answer of {path} without a database"] = installation.client.get(path).text
        found |= {f"{each} without a database": text for each, text in by_doctor(installation).items()}
        installation.postgres.start()
        eventually(lambda: installation.client.get("/readyz").status_code == 200 or None)
    return found


def by_doctor(installation: Installation) -> dict[str, str]:
    done = {
        each: run(each, cwd=installation.folder, env=installation.env)
        for each in ("doctor", "status", "migrate")
    }
    return {each: result.stdout + result.stderr for each, result in done.items()}


def renamed(installation: Installation, table: str, name: str) -> None:
    if installation.postgres is None:
        with contextlib.closing(
            sqlite3.connect(installation.database.removeprefix("sqlite:///"), timeout=60)
        ) as file:
            file.execute("PRAGMA legacy_alter_table = ON")
            file.execute(f"ALTER TABLE {table} RENAME TO {name}")
            file.commit()
    else:
        with psycopg.connect(installation.database, autocommit=True) as session:
            session.execute(f"ALTER TABLE hookline.{table} RENAME TO {name}")  # type: ignore[arg-type]


# What the database has to keep in plain text: what is sent or found by it.
KEPT = ("payload", "idempotency key", *TOKENS)


def dumped(installation: Installation) -> str:
    """Every row of every table, without what has to be kept plain, and the row that was broken by hand."""
    if installation.postgres is None:
        with contextlib.closing(sqlite3.connect(installation.database.removeprefix("sqlite:///"))) as file:
            text = "\n".join(file.iterdump())
    else:
        with psycopg.connect(installation.database) as session:
            tables = session.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'hookline'"
            ).fetchall()
            rows = [
                row
                for (table,) in tables
                for (row,) in session.execute(
                    f"SELECT row_to_json(t)::text FROM hookline.{table} t"
                ).fetchall()  # type: ignore[arg-type]
            ]
            text = "\n".join(rows)
    for name in KEPT:
        text = text.replace((CANARIES | TOKENS)[name], "")
        text = text.replace((CANARIES | TOKENS)[name].encode().hex(), "").replace(
            (CANARIES | TOKENS)[name].encode().hex().upper(), ""
        )
    broken = json.dumps({"x-token": 7, "y": CANARIES["header"]})
    return text.replace(broken, "").replace(json.dumps(broken)[1:-1], "")


def test_what_a_server_of_the_suite_prints_is_looked_through(tmp_path):
    """The guard that every other test has: a server that prints a secret fails its test."""
    env = environment({"HOOKLINE_API_KEY": API_KEY, "HOOKLINE_SECRET_KEY": "s" * 40 + "," + "t" * 40})
    database = f"postgresql://me:{quote('pass/word', safe='')}@127.0.0.1:5432/x"
    secrets = confidential(env, [sys.executable, "serve", "--database", database])
    assert secrets == {API_KEY, "s" * 40, "t" * 40, "pass/word"}
    for text in (
        f"key {API_KEY} wrong",
        "pass/word",
        "x" + "t" * 40,
        "whsec_" + "A" * 32,
        "hlk_" + "a" * 32 + " x",
    ):
        assert revealed(text, secrets), text
    assert revealed("hlk_" + "a" * 32 + "\n", secrets) == [], "the first key goes to standard output, once"
    server = ServerProcess(cwd=tmp_path, env={"HOOKLINE_API_KEY": API_KEY})
    server._command = [sys.executable, "-c", f"import time; print({API_KEY!r}, flush=True); time.sleep(600)"]
    server.start()
    eventually(lambda: server.stdout or None)
    with pytest.raises(AssertionError, match="confidential"):
        server.kill()
