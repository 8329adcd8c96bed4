"""Sends the requests of commands to a server.

One request at a time over one connection. A refusal by the server ends the command with the server's own words. A
server that cannot be reached ends it too, with another error.
"""

import json
import re
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

import click

from hookline.cli.exits import FAILED, NOT_FOUND, REFUSED, UNREACHABLE, USAGE, CommandError
from hookline.errors import NotFound
from hookline.version import USER_AGENT

TIMEOUT_S = 60.0
PAGE = 200
LARGEST_ANSWER_BYTES = 1 << 20  # of a receiver that requests are forwarded to

_REFUSALS = frozenset({401, 403, 409, 413, 422})
_SETTING = "(HOOKLINE_URL, --url)"
_NOUN = {
    "events": "event",
    "endpoints": "endpoint",
    "deliveries": "delivery",
    "dead-letters": "delivery",
    "event-types": "event type",
    "accounts": "account",
    "outbox/refused": "refused row",
}
_NOUNS = re.compile(rf"/v1/({'|'.join(_NOUN)})/([^/?]+)(?:[/?].*)?")


Fields = tuple[tuple[str, str], ...]  # headers in their order


class Client:
    """A server's API."""

    def __init__(self, url: str, key: str | None, *, timeout: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        self.url = url
        self._prefix = parts.path
        self._connection = _connection(parts, timeout)
        self._headers = {"user-agent": USER_AGENT, "accept": "application/json"}
        self._has_key = key is not None
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"

    def get(self, path: str, **query: Any) -> Any:
        """Get an object from the server; parameters that are None are left out."""
        given = {name: _parameter(value) for name, value in query.items() if value is not None}
        return self._call("GET", f"{path}?{urlencode(given)}" if given else path)

    def post(self, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None) -> Any:
        """Request an action."""
        return self._call("POST", path, body, headers)

    def patch(self, path: str, body: Any) -> Any:
        """Change something."""
        return self._call("PATCH", path, body)

    def put(self, path: str, body: Any) -> Any:
        """Replace something."""
        return self._call("PUT", path, body)

    def delete(self, path: str) -> None:
        """Delete something."""
        self._call("DELETE", path)

    def pages(self, path: str, *, limit: int | None, **query: Any) -> Iterator[Any]:
        """The objects of a list, page by page; without a limit, all of them."""
        left, cursor = limit, None
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            page = self.get(path, limit=size, cursor=cursor, **query)
            yield from page["data"]
            cursor = page["next_cursor"]
            if cursor is None:
                return
            left = None if left is None else left - len(page["data"])
        more = "There are more; raise --limit to see them."
        click.get_current_context().call_on_close(lambda: click.echo(more, err=True))  # below the list

    def _call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        sent = {**self._headers, **(headers or {})}
        content = None
        if body is not None:
            sent["content-type"] = "application/json"
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
        elif method == "POST":
            content = b""
        broken: OSError | None = None
        try:
            try:
                self._connection.request(method, self._prefix + path, content, sent)
            except (BrokenPipeError, ConnectionResetError) as error:
                broken = error  # the server may have answered without reading the request to its end
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, HTTPException, UnicodeError) as error:
            self._connection.close()
            first = broken or error
            why = getattr(first, "strerror", None) or str(first) or type(first).__name__
            raise CommandError(f"cannot reach {self.url} {_SETTING}: {why}.", UNREACHABLE) from None
        if answer.getheader("request-id") is None:
            raise self._stranger(answer.status)
        if answer.status < 300:
            return self._read(text, answer.status) if text else None
        raise self._refusal(answer.status, answer.getheader("content-type"), text, path)

    def _read(self, text: bytes, status: int) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self._stranger(status) from None

    def _refusal(self, status: int, media: str | None, text: bytes, path: str) -> CommandError:
        if media != "application/problem+json":
            return self._stranger(status)
        problem = self._read(text, status)
        where = {each["pointer"] for each in problem["errors"]} - {""}
        detail = f"{problem['detail']}{f' ({chr(44).join(sorted(where))})' if where else ''}"
        if status == 401:
            said = (
                "does not accept the API key in HOOKLINE_API_KEY: use a key of this server that is not revoked"
                if self._has_key
                else "needs an API key: set HOOKLINE_API_KEY"
            )
            return CommandError(f"{self.url} {said}.", REFUSED, status=status)
        if status == 404:
            return CommandError(_not_found(path) or detail, NOT_FOUND, status=status)
        if status in _REFUSALS:
            return CommandError(detail, REFUSED, status=status)
        return CommandError(detail, UNREACHABLE if status == 503 else FAILED, status=status)

    def _stranger(self, status: int) -> CommandError:
        return CommandError(
            f"the server at {self.url} {_SETTING} is not hookline: it answered {status}.",
            UNREACHABLE,
            status=status,
        )


def address_of(url: str, *, option: str) -> SplitResult:
    """The parts of a URL that an operator gives; a usage error if it is not a URL."""
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole or not url.isascii() or not url.isprintable() or " " in url or "@" in parts.netloc:
        raise CommandError(f"{option}: {url[:100]!r} is not a URL such as http://localhost:3000/hook.", USAGE)
    return parts


def exchange(
    url: str, method: str, headers: Fields, body: bytes, *, timeout: float
) -> tuple[int, Fields, bytes]:
    """Send one request to a receiver that the operator names; returns its status, headers and body."""
    parts = address_of(url, option="URL")
    connection = _connection(parts, timeout)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        # Header by header, as they came: a name may come twice, and nothing is added but what the connection needs.
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in (*headers, ("content-length", str(len(body)))):
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, tuple(answer.getheaders()), answer.read(LARGEST_ANSWER_BYTES)
    except (OSError, HTTPException, UnicodeError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise CommandError(f"cannot reach {parts.netloc}: {why}.", UNREACHABLE) from None
    finally:
        connection.close()


def _connection(parts: SplitResult, timeout: float) -> HTTPConnection:
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=timeout)


def _not_found(path: str) -> str | None:
    """Which thing was not found, by the path of the request: the server says the same for all of them."""
    noun = _NOUNS.fullmatch(path)
    return None if noun is None else str(NotFound(_NOUN[noun[1]], noun[2]))


def _parameter(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
