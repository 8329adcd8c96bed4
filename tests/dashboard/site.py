"""Reads and uses the dashboard as a browser without scripts does."""

import time
from collections.abc import Callable
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple

import httpx

VOID = frozenset(
    {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "rect", "path", "use", "line"}
)
PATIENCE_S = 120.0  # ends a test that hangs; nothing is judged by it


class Form(NamedTuple):
    """A form with what it would send."""

    action: str
    method: str
    fields: list[tuple[str, str]]
    text: str
    is_disabled: bool  # all its buttons are


class Page:
    """An answer, read as a person reads it."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.url = str(response.url)
        self.path = response.url.raw_path.decode()
        self.html = response.text
        self.headers = response.headers
        reader = _Reader()
        reader.feed(response.text)
        self.text = " ".join(" ".join(reader.words).split())
        self.title = reader.title.strip()
        self.h1 = " ".join(reader.h1.split())
        self.forms = reader.forms
        self.links = reader.links
        self.ids = reader.ids

    def form(self, action: str, text: str = "") -> Form:
        """The form with this action, and this text in it."""
        found = [form for form in self.forms if form.action.split("?")[0] == action and text in form.text]
        assert found, (
            f"no form {action!r} with {text!r}; there are {[(f.action, f.text) for f in self.forms]}"
        )
        return found[0]


class Site:
    """A visitor of a server's pages; cookies are kept."""

    def __init__(self, url: str, *, key: str | None = None) -> None:
        self.client = httpx.Client(base_url=url, timeout=60, trust_env=False, follow_redirects=True)
        self.origin = {"origin": url, "sec-fetch-site": "same-origin"}
        if key is not None:
            page = self.post("/login", key=key, next="/")
            assert page.status == 200, page.text

    def get(self, path: str, **headers: str) -> Page:
        return Page(self.client.get(path, headers=headers))

    def post(self, path: str, **fields: str) -> Page:
        """Send a form that was not on a page."""
        return Page(self.client.post(path, data=fields, headers=self.origin))

    def submit(
        self, page: Page, action: str, text: str = "", button: str | None = None, **fields: Any
    ) -> Page:
        """Fill in and send a form of the page; a list sends a name several times, None leaves it out."""
        form = page.form(action, text)
        sent: dict[str, Any] = {}
        for name, value in form.fields:
            sent.setdefault(name, []).append(value)
        sent |= fields
        sent = {name: value for name, value in sent.items() if value is not None}
        if form.method == "get":
            return Page(self.client.get(form.action, params=sent))
        return Page(self.client.post(form.action, data=sent, headers=self.origin))

    def until(self, path: str, is_there: Callable[[Page], bool]) -> Page:
        """Load a page again and again until it shows something."""
        ends_at = time.monotonic() + PATIENCE_S
        while True:
            page = self.get(path)
            if is_there(page):
                return page
            assert time.monotonic() < ends_at, f"it was never shown; last: {page.text[:2_000]}"
            time.sleep(0.05)

    def close(self) -> None:
        self.client.close()


class Target:
    """A real receiver; what it answers to a path can be changed while it runs."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        target = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                target.received.append((self.path, dict(self.headers), body))
                status, content = target.answers.get(self.path, (200, b"ok"))
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.title = self.h1 = ""
        self.forms: list[Form] = []
        self.links: list[tuple[str, str]] = []
        self.ids: set[str] = set()
        self._stack: list[str] = []
        self._form: dict[str, Any] | None = None
        self._select: tuple[str, list[tuple[str, bool]]] | None = None
        self._area: list[str] | None = None
        self._link: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self._stack.append(tag)
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self._link = [given["href"], ""]
        if tag == "form":
            self._form = {
                "action": given.get("action", ""),
                "method": given.get("method", "get"),
                "fields": [],
                "text": "",
                "buttons": [],
            }
        if self._form is None:
            return
        if tag == "input" and "name" in given:
            is_box = given.get("type") in ("checkbox", "radio")
            if not is_box or "checked" in given:
                self._form["fields"].append((given["name"], given.get("value", "on" if is_box else "")))
        if tag == "button":
            self._form["buttons"].append("disabled" in given)
        if tag == "select":
            self._select = (given.get("name", ""), [])
        if tag == "option" and self._select is not None:
            self._select[1].append((given.get("value", ""), "selected" in given))
        if tag == "textarea":
            self._area = [given.get("name", ""), ""]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._stack:
            while self._stack and self._stack.pop() != tag:
                pass
        if tag == "a" and self._link is not None:
            self.links.append((self._link[0], " ".join(self._link[1].split())))
            self._link = None
        if self._form is None:
            return
        if tag == "select" and self._select is not None:
            name, options = self._select
            chosen = [value for value, is_chosen in options if is_chosen] or [
                value for value, _ in options[:1]
            ]
            self._form["fields"] += [(name, value) for value in chosen]
            self._select = None
        if tag == "textarea" and self._area is not None:
            self._form["fields"].append((self._area[0], self._area[1].removeprefix("\n")))
            self._area = None
        if tag == "form":
            form = self._form
            self.forms.append(
                Form(
                    form["action"],
                    form["method"],
                    form["fields"],
                    " ".join(form["text"].split()),
                    bool(form["buttons"]) and all(form["buttons"]),
                )
            )
            self._form = None

    def handle_data(self, data: str) -> None:
        if self._stack and self._stack[-1] in ("script", "style"):
            return
        if self._area is not None:
            self._area[1] += data
            return
        if "title" in self._stack and "svg" not in self._stack:
            self.title += data
            return
        if "title" in self._stack:
            return
        self.words.append(data)
        if "h1" in self._stack:
            self.h1 += data
        if self._form is not None:
            self._form["text"] += data
        if self._link is not None:
            self._link[1] += data
