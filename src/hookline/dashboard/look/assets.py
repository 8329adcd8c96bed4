"""Serves the files of the pages: style, scripts, mark.

Their addresses change with their content, so browsers keep them for good.
"""

import gzip
from collections.abc import Mapping
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from starlette.responses import Response

PREFIX = "/assets/"
FOREVER = "public, max-age=31536000, immutable"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class _Asset(NamedTuple):
    body: bytes
    packed: bytes
    media: str


class Assets:
    """All files, read once."""

    def __init__(self) -> None:
        self._by_path: dict[str, _Asset] = {}
        self._addresses: dict[str, str] = {}
        self._read(resources.files("hookline.dashboard").joinpath("static"), "")

    def address(self, name: str) -> str:
        """The address of a file by its name, such as `style.css`."""
        return self._addresses[name]

    def response(self, path: str, headers: Mapping[str, str]) -> Response | None:
        """The answer to a request for this path; None: there is no such file."""
        found = self._by_path.get(path)
        if found is None:
            return None
        common = {"cache-control": FOREVER, "content-type": found.media, "vary": "accept-encoding"}
        if accepts_gzip(headers):
            return Response(found.packed, headers={**common, "content-encoding": "gzip"})
        return Response(found.body, headers=common)

    def _read(self, folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            name = f"{prefix}{entry.name}"
            if entry.is_dir():
                self._read(entry, f"{name}/")
                continue
            ending = name[name.rfind(".") :]
            if ending not in _TYPES:
                continue  # licences and the like
            body = entry.read_bytes()
            path = f"{PREFIX}{sha256(body).hexdigest()[:12]}/{name}"
            self._by_path[path] = _Asset(body, gzip.compress(body, 9, mtime=0), _TYPES[ending])
            self._addresses[name] = path


def accepts_gzip(headers: Mapping[str, str]) -> bool:
    """Whether the browser reads gzip."""
    return "gzip" in headers.get("accept-encoding", "")
