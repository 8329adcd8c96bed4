"""What everybody may ask for is listed here; all else needs a key or a visit, and is told to nobody without."""

import ast
import re
from collections.abc import AsyncIterator, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import hookline
from hookline.admin.keys import digest_of
from hookline.api.routes import table
from hookline.dashboard.page import PageRoute
from hookline.dashboard.table import all_pages
from hookline.dashboard.visit.entrance import PATHS as ENTRANCE
from hookline.dashboard.visit.entrance import own_path
from tests.security.serving import KEY, Answer, Line, Served, asking, head, served

pytestmark = pytest.mark.anyio

# Everything that is answered without a key and without a visit. A door that is new here is a decision.
OPEN = {
    "GET /assets",  # the pages' scripts and styles, the same in every installation
    "GET /healthz",
    "GET /login",
    "GET /portal/enter",
    "GET /portal/logo",
    "GET /portal/theme.css",
    "GET /readyz",
    "POST /login",
    "POST /portal/enter",
}
BESIDE = ("GET /live", "POST /logout", "POST /theme", "POST /times")  # of the dashboard, in no table
SAMPLE = re.compile(r"\{(\w+)\}")
FORM = "content-type: application/x-www-form-urlencoded"
OURS = "sec-fetch-site: same-origin"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path, portal_frame_ancestors=("https://app.alder.example",)) as found:
        yield found


def pages(server: Served) -> list[PageRoute]:
    return [route for page in all_pages(server.hooks, {}) for route in page.routes()]


def doors(server: Served) -> list[tuple[str, str]]:
    """Every method and path that something answers to."""
    calls = [(call.method, call.path) for call in table(server.hooks)]
    shown = [(route.method, route.path) for route in pages(server)]
    entrance = [(method, path) for path in sorted(ENTRANCE) for method in ("GET", "POST")]
    assets = [("GET", path) for path in sorted(server.dashboard._assets._by_path)]
    beside = [(method, path) for method, path in (each.split() for each in BESIDE)]
    return [*calls, *shown, *entrance, *assets, *beside]


async def asked(line: Line, method: str, path: str, *lines: str, key: str | None, form: str = "") -> Answer:
    """A request; a form if it is one."""
    path = SAMPLE.sub("unknown", path)
    if method == "POST" and not path.startswith("/v1/"):
        length = f"content-length: {len(form)}"
        line.send(head(method, path, *lines, FORM, length, key=key) + form.encode())
    else:
        line.send(asking(method, path, {} if method in ("POST", "PUT", "PATCH") else None, *lines, key=key))
    return await line.answer()


async def test_only_what_is_listed_is_answered_to_everybody(server: Served):
    line = await server.line()
    answered = set()
    for method, path in doors(server):
        answer = await asked(line, method, path, OURS, key=None)
        if answer.status == 401 and answer.headers.get("location") is None and path not in ENTRANCE:
            continue
        if answer.status == 303 and answer.headers["location"].startswith("/login?next="):
            assert not answer.body
            continue
        answered.add(f"{method} {'/assets' if path.startswith('/assets/') else path}")
    firsts = {path.split("/")[1] for _, path in doors(server)}
    assert server.dashboard._first <= firsts, "the dashboard answers to more than is walked here"
    # The entrance's files take no forms, and say so.
    assert answered - {"POST /portal/logo", "POST /portal/theme.css"} == OPEN


async def test_what_is_nowhere_needs_a_key_as_well(server: Served):
    line = await server.line()
    for path in ("/v1", "/v1/nowhere", "/nowhere", "/metrics/", "/openapi.json/", "/docs/x", "/.git/config"):
        assert (await asked(line, "GET", path, key=None)).status == 401
        assert (await asked(line, "GET", path, key=KEY)).status == 404


async def test_the_probes_say_nothing_but_ok(server: Served):
    line = await server.line()
    assert (await asked(line, "GET", "/healthz", key=None)).body == b'{"status":"ok"}'
    assert len((await asked(line, "GET", "/readyz", key=None)).body) < 200


def same(answer: Answer) -> tuple[Any, ...]:
    """An answer without what differs each time."""
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "request-id")}
    return answer.status, headers, answer.body.replace(answer.headers["request-id"].encode(), b"REQ")


async def test_every_bad_key_gets_the_same_bytes(server: Served):
    made = await server.hooks.keys.create({"scopes": ["admin"], "name": "good"})
    gone = await server.hooks.keys.create({"scopes": ["admin"], "name": "gone"})
    await server.hooks.keys.revoke(_id(gone.id))
    half = len(made.key) // 2
    values = {
        "missing": None,
        "empty": "",
        "no key": "Bearer ",
        "no scheme": made.key,
        "another scheme": f"Basic {made.key}",
        "unknown": "Bearer hlk_unknown",
        "revoked": f"Bearer {gone.key}",
        "wrong second half": f"Bearer {made.key[:half]}{'x' * (len(made.key) - half)}",
        "wrong first half": f"Bearer {'x' * half}{made.key[half:]}",
        "the settings' own but for the end": f"Bearer {KEY[:-1]}x",
        "cut short": f"Bearer {made.key[:-1]}",
        "too long": f"Bearer {made.key}x",
        "very long": f"Bearer {'x' * 60_000}",
        "two in one": f"Bearer {made.key}, Bearer {made.key}",
        "not ASCII": "Bearer \xff\xfe",
        "its digest": f"Bearer {digest_of(made.key.encode()).hex()}",
    }
    line = await server.line()
    for request in (
        ("GET", "/v1/endpoints"),
        ("POST", "/v1/events"),
        ("DELETE", "/v1/endpoints/ep_unknown"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("GET", "/nowhere"),
    ):
        good = await asked(line, *request, f"authorization: Bearer {made.key}", key=None)
        assert good.status != 401
        found = {}
        for name, value in values.items():
            lines = () if value is None else (f"authorization: {value}",)
            found[name] = same(await asked(line, *request, *lines, key=None))
        twice = [f"authorization: Bearer {made.key}"] * 2
        found["twice"] = same(await asked(line, *request, *twice, key=None))
        first = found["missing"]
        assert first[0] == 401
        assert {name: each for name, each in found.items() if each != first} == {}


def _id(text: str) -> Any:
    return hookline.ids.read("key", text)


# --- the pages ---


class Tags(HTMLParser):
    """What in a page could run or load something."""

    def __init__(self) -> None:
        super().__init__()
        self.inline: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._in_script = tag == "script"
        if tag == "style" or (tag == "script" and not (given.get("src") or "").startswith("/assets/")):
            self.inline.append(tag)
        self.inline += [
            f"{tag} {name}" for name in given if name.startswith("on") or name in ("style", "srcdoc")
        ]
        for name in ("href", "src", "action", "formaction"):
            if re.match(r"(?i)[a-z]+:|//", given.get(name) or "") and tag != "a":
                self.inline.append(f"{tag} {name}={given[name]}")


def check_guarded(answer: Answer, *, framed_by: str = "'none'") -> None:
    policy = dict(
        part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy.pop("frame-ancestors") == framed_by
    assert policy == {
        "default-src": "'none'",
        "style-src": "'self'",
        "script-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
    }
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cache-control"]
    if answer.headers.get("content-type", "").startswith("text/html"):
        tags = Tags()
        tags.feed(answer.body.decode())
        assert tags.inline == []


async def visit(line: Line, path: str, form: str) -> str:
    answer = await asked(line, "POST", path, OURS, key=None, form=form)
    assert answer.status == 303, answer
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    return cookie


async def test_every_page_keeps_foreign_scripts_frames_and_sniffing_out(server: Served):
    line = await server.line()
    made = await line.ask(
        "POST", "/v1/endpoints", {"url": "https://a.example/", "events": ["*"], "account": "acme"}
    )
    assert made.status == 201
    ids = re.findall(r'"id":"(ep_\w+)"', made.body.decode())
    event = await line.ask("POST", "/v1/events", {"type": "a.b", "payload": "<script>", "account": "acme"})
    event_id = re.findall(r"evt_\w+", event.body.decode())[0]
    link = await server.hooks.portal.mint("acme", key_digest=digest_of(KEY.encode()), reached_at="http://x")
    login = await visit(line, "/login", f"key={KEY}")
    portal = await visit(line, "/portal/enter", f"link={link.path.partition('token=')[2]}")
    assert "SameSite=Strict" in login
    assert "SameSite=None; Partitioned; Secure" in portal  # the setting allows a frame on another site
    for cookie, framed_by in ((login, "'none'"), (portal, "https://app.alder.example"), (None, "'none'")):
        lines = () if cookie is None else (f"cookie: {cookie.partition(';')[0]}",)
        for method, path in doors(server):
            is_page = server.dashboard.has(path) and path != "/live" and not path.startswith("/assets/")
            if not is_page or path == "/logout":
                continue
            for known in (
                {},
                {"endpoint_id": ids[0], "event_id": event_id, "delivery_id": "dlv_" + event_id[4:]},
            ):
                where = SAMPLE.sub(lambda part, known=known: known.get(part[1], "unknown"), path)
                answer = await asked(line, method, where, *lines, OURS, key=None)
                by = "https://app.alder.example" if path == "/portal/enter" else framed_by
                is_of_customer = path == "/portal/enter" or cookie is portal
                check_guarded(answer, framed_by=by if is_of_customer else "'none'")
    for path in sorted(server.dashboard._assets._by_path):
        check_guarded(await asked(line, "GET", path, key=None))
    line.send(asking("GET", "/live?page=overview", None, f"cookie: {login.partition(';')[0]}", key=None))
    stream = (await line.reader.readuntil(b"\r\n\r\n")).decode().lower()
    assert "x-content-type-options: nosniff" in stream
    assert "frame-ancestors 'none'" in stream


async def test_every_form_needs_its_token_and_a_page_of_ours(server: Served):
    line = await server.line()
    login = f"cookie: {(await visit(line, '/login', f'key={KEY}')).partition(';')[0]}"
    forms = [path for method, path in doors(server) if method == "POST" and server.dashboard.has(path)]
    assert {"/logout", "/theme", "/times", "/endpoints/new"} <= set(forms)
    for path in forms:
        if path not in ENTRANCE:
            for token in ("", "token=", "token=x", f"token={'A' * 43}="):
                assert (await asked(line, "POST", path, login, OURS, key=None, form=token)).status == 403
        for foreign in (
            (),
            ("origin: null",),
            ("origin: https://evil.example",),
            ("origin: https://evil.example", OURS),
            ("sec-fetch-site: cross-site",),
            ("sec-fetch-site: same-site",),
            ("sec-fetch-site: none",),
        ):
            answer = await asked(line, "POST", path, login, *foreign, key=None, form=f"key={KEY}")
            assert answer.status == 403, (path, foreign)
            assert "set-cookie" not in answer.headers
    assert (await asked(line, "GET", "/endpoints", login, key=None)).status == 200  # still logged in


@pytest.mark.parametrize(
    "where",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/%2f/evil.example",
        "/%5cevil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "data:text/html,x",
        "evil.example",
        "/\tevil",
        "/\r\nset-cookie: x=y",
        "/%0d%0aset-cookie:x=y",
        " /endpoints",
        "",
    ],
)
def test_nobody_is_sent_elsewhere_after_login(where: str):
    assert own_path(where) == "/"


def test_a_page_of_ours_is_where_one_gets_to_after_login():
    for where in ("/", "/endpoints", "/endpoints?account=a%26b", "/events/evt_x?tab=1"):
        assert own_path(where) == where


# --- comparing secrets ---

SECRETS = frozenset(
    {"digest", "hmac", "key", "mac", "password", "secret", "sealed", "signature", "signatures", "token"}
)
# Compared with ==, and why that tells an attacker nothing.
HARMLESS = {
    ("hookline.admin.dead_letters", "created.digest != job.digest"): "of an order, which its caller knows",
    ("hookline.api.publishing.envelope", "key != given"): "two idempotency keys of one request",
    ("hookline.crypto.client_certificate", "_bytes_of(private.public_key()) != public"): "two public keys",
    ("hookline.pipeline.intake.idempotency", "prior.digest != digest(event)"): "of events, as published",
    ("hookline.pipeline.intake.idempotency", "digest(entry.event) == digest(first.event)"): "likewise",
    ("hookline.receiver.ed25519", "b64encode(raw).decode() != signature"): "a signature, spelled again",
}


def compared(module: str, source: str) -> Iterator[tuple[str, str]]:
    """Comparisons of what is named like a secret with something that is no constant."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            continue
        sides = [node.left, *node.comparators]
        if any(_is_constant(each) for each in sides) or not any(_names_secret(each) for each in sides):
            continue
        yield module, ast.unparse(node)


def _is_constant(side: ast.expr) -> bool:
    """A literal, a name in capitals, a member of an enum, or a number: no secret is compared with them."""
    match side:
        case ast.Constant() | ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
    return False


def _names_secret(side: ast.expr) -> bool:
    match side:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return not SECRETS.isdisjoint(name.lower().strip("_").split("_"))
        case ast.Call(func=func, args=args):
            return any(_names_secret(each) for each in [func, *args])
        case ast.Subscript(value=value):
            return _names_secret(value)
    return False


def modules() -> Iterator[tuple[str, str]]:
    root = Path(hookline.__file__).parent
    for path in sorted(root.rglob("*.py")):
        yield ".".join(["hookline", *path.relative_to(root).with_suffix("").parts]), path.read_text()


def test_secrets_are_compared_in_constant_time():
    found = {each for module, source in modules() for each in compared(module, source)}
    assert found == HARMLESS.keys()


@pytest.mark.parametrize(
    "source",
    [
        "if given == self._secret: pass",
        "ok = signature != expected",
        "ok = expected_signature(body) == given",
        "ok = digest_of(key) == stored",
        "ok = token[:10] == other",
        "ok = self.api_key == given",
    ],
)
def test_a_comparison_that_takes_longer_the_more_agrees_is_found(source: str):
    assert list(compared("x", source))


def test_what_is_checked_in_constant_time_is_checked_somewhere():
    users = {module for module, source in modules() if "hmac.compare_digest(" in source}
    assert {
        "hookline.api.auth",
        "hookline.api.cursor",
        "hookline.dashboard.visit.tokens",
        "hookline.dashboard.visit.visits",
        "hookline.receiver.verification",
    } <= users
