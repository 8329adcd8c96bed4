"""The browser's guard, axe, pictures and servers work, and each check is able to fail."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server_process import ServerProcess
from tests.browser.accessibility import violations
from tests.browser.conftest import NewPage, Shots
from tests.browser.guard import Guard
from tests.browser.switched_receiver import SwitchedReceiver, Way

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
VENDOR = Path(__file__).parents[2] / "src/hookline/dashboard/static/vendor"
HEAD = "<!doctype html><html lang=en><meta name=viewport content='width=device-width'><title>A page</title>"
HTMX = (
    """<meta name=htmx-config content='{"includeIndicatorStyles": false, "allowEval": false, "allowScriptTags": false,"""
    """ "historyCacheSize": 0, "attributesToSettle": ["class", "width", "height"]}'><script src=/htmx.min.js></script>"""
)
PAGES = {
    "/good": "<link rel=stylesheet href=/style.css><main><h1>Fine</h1><script src=/good.js></script></main>",
    "/inline-script": "<script>document.title = 'run'</script>",
    "/inline-style": "<p style='color: red'>Red</p>",
    "/elsewhere": "<img src=http://127.0.0.2:9/x.png alt=''>",
    "/broken": "<script src=/broken.js></script>",
    "/complains": "<script src=/complains.js></script>",
    "/no-alt": "<main><h1>A picture</h1><img src=/picture.svg></main>",
    "/htmx": HTMX + "<main><a href=/part hx-get=/part hx-target='#to'>Swap</a><p id=to>Before</p></main>",
    "/htmx-as-it-comes": "<script src=/htmx.min.js></script>",
    "/plot": "<link rel=stylesheet href=/uPlot.min.css><script src=/uPlot.iife.min.js></script><div id=to></div>"
    "<script src=/plot.js></script>",
    "/part": "<p class=new>After</p><script>document.title = 'run'</script>",
}
FILES = {
    "/style.css": "h1 { color: #1a1e22 } @media (prefers-color-scheme: dark) { body { background: #13171a } }",
    "/good.js": "document.documentElement.dataset.script = 'run'",
    "/broken.js": "throw new Error('a mistake')",
    "/complains.js": "console.error('a complaint')",
    "/favicon.ico": "",  # Chromium asks for it by itself
    "/picture.svg": "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
    "/plot.js": """
        const plot = new uPlot(
            {width: 400, height: 200, scales: {y: {distr: 3}}, series: [{}, {stroke: "#0a5a7c"}], legend: {live: true}},
            [[1, 2, 3], [1, 10, 100]], document.getElementById("to"));
        plot.setCursor({left: 50, top: 50});
        plot.setSize({width: 300, height: 150});
    """,
}
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """A server of small pages under the dashboard's policy."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            vendored = next(VENDOR.rglob(self.path[1:]), None) if "min." in self.path else None
            body = vendored.read_text() if vendored else FILES.get(self.path)
            if self.path in PAGES:
                body = PAGES[self.path] if self.path == "/part" else HEAD + PAGES[self.path]
            self.send_response(200 if body is not None else 404)
            self.send_header("content-type", TYPES.get(Path(self.path).suffix, "text/html"))
            self.send_header("content-security-policy", POLICY)
            self.end_headers()
            self.wfile.write((body if body is not None else "Not found").encode())

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("javascript", [True, False])
def test_a_good_page_causes_no_trouble(new_page: NewPage, guard: Guard, site: str, javascript: bool) -> None:
    page = new_page(site, javascript=javascript)
    page.goto("/good")
    assert page.locator("html").get_attribute("data-script") == ("run" if javascript else None)
    assert guard.take() == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/inline-script", "policy"),
        ("/inline-style", "policy"),
        ("/htmx-as-it-comes", "policy"),
        ("/broken", "script"),
        ("/complains", "console"),
        ("/missing", "console"),
    ],
)
def test_each_trouble_is_noticed(new_page: NewPage, guard: Guard, site: str, path: str, kind: str) -> None:
    new_page(site).goto(path)
    assert {trouble.partition(":")[0] for trouble in guard.take()} == {kind}


def test_a_broken_policy_is_noticed_without_javascript(new_page: NewPage, guard: Guard, site: str) -> None:
    new_page(site, javascript=False).goto("/inline-style")
    assert [trouble.partition(":")[0] for trouble in guard.take()] == ["policy"]


def test_a_request_to_another_server_is_noticed(new_page: NewPage, guard: Guard, site: str) -> None:
    new_page(site).goto("/elsewhere")
    assert "elsewhere: http://127.0.0.2:9/x.png" in guard.take()


def test_trouble_that_nobody_took_fails_the_test(new_page: NewPage, guard: Guard, site: str) -> None:
    new_page(site).goto("/complains")
    with pytest.raises(AssertionError, match="console: a complaint"):
        guard.check()


def test_axe_names_what_is_at_fault_and_is_silent_about_a_good_page(new_page: NewPage, site: str) -> None:
    page = new_page(site)
    page.goto("/no-alt")
    assert [line.partition(" ")[0] for line in violations(page)] == ["image-alt"]
    page.goto("/good")
    assert violations(page) == []


def test_pictures_are_named_by_width_and_scheme(
    new_page: NewPage, shots: Shots, site: str, guard: Guard
) -> None:
    light, dark = new_page(site), new_page(site, width=360, scheme="dark", javascript=False)
    pictures = []
    for page in (light, dark):
        page.goto("/good")
        pictures.append(shots(page, "good"))
    assert [picture.name for picture in pictures] == ["good-1440-light.png", "good-360-dark.png"]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert guard.take() == []


def test_htmx_swaps_under_the_policy_and_runs_no_script_of_an_answer(new_page: NewPage, site: str) -> None:
    page = new_page(site)
    page.goto("/htmx")
    page.get_by_text("Swap").click()
    page.get_by_text("After").wait_for()
    assert page.title() == "A page"


def test_uplot_draws_under_the_policy(new_page: NewPage, site: str) -> None:
    page = new_page(site)
    page.goto("/plot")
    page.locator(".u-over").hover()
    assert page.locator(".u-wrap").evaluate("wrap => wrap.style.width") == "300px"


def test_a_server_delivers_to_each_path_of_the_receiver(
    server: ServerProcess, receiver: SwitchedReceiver
) -> None:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=180) as client:
        for way in Way:
            endpoint = {"url": receiver.url(way), "events": ["*"]}
            assert client.post("/v1/endpoints", json=endpoint).status_code == 201
        assert client.post("/v1/events", json={"type": "a", "payload": 1}).status_code == 202
        for way in Way:
            receiver.wait_for(way, requests=1)


def test_a_path_of_the_receiver_can_be_switched(receiver: SwitchedReceiver) -> None:
    with httpx.Client(trust_env=False, timeout=180) as client:

        def status(path: str) -> int:
            return client.post(receiver.url(path), content=b"{}").status_code

        ways = [way for way in Way if way is not Way.SLOW]
        assert [status(way) for way in ways] == [200, 503, 401, 429, 422, 200, 410, 422]
        assert status(Way.FLAKY) == 500
        receiver.switch(Way.DOWN, to=Way.OK)
        receiver.switch("orders", to=Way.INVALID)
        assert [status(Way.DOWN), status("orders"), status("others")] == [200, 422, 200]
        receiver.release()
        assert status(Way.SLOW) == 200


def test_servers_are_on_each_database(shared_server: ServerProcess, database: str) -> None:
    assert httpx.get(f"{shared_server.url}/healthz", trust_env=False, timeout=180).status_code == 200
    assert database in ("sqlite", "postgres")
