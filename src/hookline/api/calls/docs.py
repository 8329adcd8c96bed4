"""Serves the documentation of the API.

`/openapi.json` is for programs, `/docs` for people. The viewer is RapiDoc, which comes with hookline: nothing is
loaded from elsewhere, and the page is not allowed to.
"""

import gzip
from collections.abc import Sequence
from functools import cache
from importlib import resources

import msgspec
from starlette.responses import Response

from hookline.api.call import Call, CallRequest, CallScope, Nothing
from hookline.api.description.document import describe
from hookline.api.description.samples import SERVER
from hookline.config import Settings

VIEWER = "rapidoc-9.3.8.min.js"  # a new version gets a new path: browsers may cache this one
SAMPLES = "samples.js"
VIEWER_CACHE = "public, max-age=31536000, immutable"

# The viewer styles itself with style elements and attributes. It needs and gets nothing else that is inline.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Addresses are relative: behind a proxy the API may have a path prefix.
_PAGE = f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>hookline API</title>
<link rel="icon" href="data:,">
<script type="module" src="docs/{VIEWER}"></script>
<script type="module" src="docs/{SAMPLES}"></script>
</head>
<body>
<rapi-doc spec-url="openapi.json" load-fonts="false" render-style="read" schema-style="table" theme="light"
 show-header="false" allow-spec-url-load="false" allow-spec-file-load="false" allow-server-selection="false"
 sort-endpoints-by="none" regular-font="system-ui, sans-serif" mono-font="ui-monospace, monospace"></rapi-doc>
<noscript>The viewer needs JavaScript; the description itself is at <a href="openapi.json">openapi.json</a>.</noscript>
</body>
</html>
"""
# Only the browser knows under which address it reached the server: a proxy may have another one.
_SAMPLES = f"""\
const server = new URL(".", location.href).href.replace(/\\/$/, "");
document.querySelector("rapi-doc").addEventListener("spec-loaded", (event) => {{
  for (const tag of event.detail.tags) {{
    for (const path of tag.paths) {{
      for (const sample of path.xCodeSamples ?? []) {{
        sample.source = sample.source.replaceAll("{SERVER}", server);
      }}
    }}
  }}
  event.target.requestUpdate();
}});
"""


class DocCalls:
    """The calls that describe the API."""

    def __init__(self, settings: Settings, others: Sequence[Call]) -> None:
        self._scope = CallScope.OPEN if settings.open_docs else CallScope.READ
        self._is_dev = settings.dev
        self._others = others
        self._described: bytes | None = None

    def table(self) -> list[Call]:
        """The calls."""
        return [
            Call(
                method="GET",
                path="/openapi.json",
                summary="Get this OpenAPI description",
                scope=self._scope,
                for_accounts=True,
                handler=self.openapi,
                media="application/json",
            ),
            Call(
                method="GET",
                path="/docs",
                summary="Show this description as a web page",
                scope=self._scope,
                for_accounts=True,
                handler=self.page,
                media="text/html",
            ),
            Call(
                method="GET",
                path=f"/docs/{VIEWER}",
                summary="Get the viewer of this description",
                scope=self._scope,
                for_accounts=True,
                handler=self.viewer,
                media="text/javascript",
                is_described=False,
            ),
            Call(
                method="GET",
                path=f"/docs/{SAMPLES}",
                summary="Get the script that puts the server into the examples",
                scope=self._scope,
                for_accounts=True,
                handler=self.samples,
                media="text/javascript",
                is_described=False,
            ),
        ]

    async def openapi(self, asked: CallRequest[Nothing, None]) -> Response:
        if self._described is None:
            self._described = msgspec.json.encode(
                describe([*self._others, *self.table()], needs_key=not self._is_dev)
            )
        return _sent(self._described, "application/json", cache="no-cache")

    async def page(self, asked: CallRequest[Nothing, None]) -> Response:
        # In development no key is needed: nothing asks for one.
        page = (
            _PAGE.replace("<rapi-doc ", '<rapi-doc allow-authentication="false" ') if self._is_dev else _PAGE
        )
        answer = _sent(page.encode(), "text/html; charset=utf-8", cache="no-cache")
        answer.headers["content-security-policy"] = _POLICY
        answer.headers["referrer-policy"] = "no-referrer"
        return answer

    async def viewer(self, asked: CallRequest[Nothing, None]) -> Response:
        return _sent(_viewer(), "text/javascript; charset=utf-8", cache=VIEWER_CACHE)

    async def samples(self, asked: CallRequest[Nothing, None]) -> Response:
        return _sent(_SAMPLES.encode(), "text/javascript; charset=utf-8", cache="no-cache")


@cache
def _viewer() -> bytes:
    packed = resources.files("hookline.api").joinpath("vendor", "rapidoc", f"{VIEWER}.gz").read_bytes()
    return gzip.decompress(packed)  # a twelfth of what everybody installs, if it were not packed


def _sent(body: bytes, media: str, *, cache: str) -> Response:
    return Response(body, headers={"cache-control": cache}, media_type=media)
