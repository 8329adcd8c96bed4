"""Answers publishes on a fast path, without a task for each.

A publish that arrives whole is read in the parser's callbacks, handed to the intake, and answered in one write
when its commit is done. A head that was parsed before is not parsed again: the same bytes mean the same. Everything
else takes the ordinary path from the start: a request that comes in pieces, one that is refused, one on a connection
with another request under way. So every refusal is implemented once.
"""

import asyncio
from typing import Any

import msgspec
from uvicorn.config import Config
from uvicorn.server import ServerState

from hookline.api.problem import describe, headers_for
from hookline.api.protocol import Protocol
from hookline.api.publishing.publish import CHANGING, Head, PublishRequest, Way
from hookline.errors import HooklineError
from hookline.pipeline.intake.drafts import Result

REMEMBERED_HEADS = 1_000
_END_OF_HEAD = b"\r\n\r\n"


class Turn:
    """Takes the place where uvicorn looks for the request under way on a connection."""

    __slots__ = ("disconnected", "keep_alive", "message_event", "response_complete")

    def __init__(self) -> None:
        self.response_complete = True
        self.disconnected = False
        self.keep_alive = True
        self.message_event = asyncio.Event()  # nobody waits for it


class Shortcut(Protocol):
    """A connection on which publishes take the shortcut."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._turn = Turn()
        self._way: Way | None = None  # of the publish that is arriving
        self._parts: list[bytes] = []
        self._came: Head | None = None  # of the publish in the last bytes, if they were one
        self._asked: PublishRequest  # of the publish that is being stored
        self._request_id = ""

    def data_received(self, data: bytes) -> None:
        cycle = self.cycle
        if self.is_between and (cycle is None or cycle.response_complete) and not self.flow.write_paused:
            end = data.find(_END_OF_HEAD) + 4
            head = self._api.heads.get(data[:end])
            if head is not None and len(data) - end == head.body_bytes:
                self._unset_keepalive_if_required()
                if self._publish(head, data[end:]):
                    return
        super().data_received(data)
        if self._way is not None:
            self._go_the_ordinary_way(is_whole=False)
        elif self._came is not None:
            self._remember(data, self._came)

    # --- the parser's callbacks ---

    def on_message_begin(self) -> None:
        # What uvicorn prepares here for an application is made only for requests that get there.
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_headers_complete(self) -> None:
        way = self._api.shortcuts.get(self.url)
        cycle = self.cycle
        if (
            way is None
            or self.parser.get_method() != b"POST"
            or self.expect_100_continue
            or (cycle is not None and not cycle.response_complete)
            or self.flow.write_paused
        ):
            self._prepare_scope()
            super().on_headers_complete()
            return
        self.end_head()
        self._way = way
        self._parts = []

    def on_body(self, body: bytes) -> None:
        if self._way is None:
            super().on_body(body)
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._way is None:
            super().on_message_complete()
            return
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        head = Head(self._way, self.headers, len(body), keep_alive)
        if self._publish(head, body):
            self._came, self._way = head, None
        else:
            self._go_the_ordinary_way(is_whole=True)

    # --- what becomes of a publish ---

    def _publish(self, head: Head, body: bytes) -> bool:
        """Hand in the publish; False means that it must go the ordinary way."""
        try:
            asked = self._api.publish_at_once(head.way, head.headers, body, self._stored)
        except Exception:  # the ordinary way answers or logs it
            return False
        if asked is None:
            return False
        self.end_head()
        self.begin_head()
        turn = self._turn
        turn.response_complete = False
        turn.keep_alive = head.keep_alive
        self.cycle = turn  # type: ignore[assignment]  # it has what uvicorn looks at
        self._asked = asked
        self._request_id = self._api.new_request_id()
        return True

    def _remember(self, data: bytes, head: Head) -> None:
        self._came = None
        end = data.find(_END_OF_HEAD) + 4
        # Only if the read was exactly this one request, and nothing in its head changes from request to request.
        if len(data) - end == head.body_bytes and not any(name in CHANGING for name, _ in head.headers):
            if len(self._api.heads) >= REMEMBERED_HEADS:
                self._api.heads.clear()
            self._api.heads[data[:end]] = head

    def _go_the_ordinary_way(self, *, is_whole: bool) -> None:
        parts, self._parts, self._way = self._parts, [], None
        self._prepare_scope()
        super().on_headers_complete()
        for part in parts:
            super().on_body(part)
        if is_whole:
            super().on_message_complete()

    def _prepare_scope(self) -> None:
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.headers, self.expect_100_continue = url, headers, expects
        self.scope["headers"] = headers

    def _stored(self, results: list[Result] | HooklineError) -> None:
        turn = self._turn
        turn.response_complete = True
        if self.transport.is_closing():
            return
        self.transport.write(self._answer(results, keep_alive=turn.keep_alive))
        if not turn.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _answer(self, results: list[Result] | HooklineError, *, keep_alive: bool) -> bytes:
        request_id = self._request_id
        lines = b"".join([b"%b: %b\r\n" % line for line in self.server_state.default_headers])
        closing = b"" if keep_alive else b"connection: close\r\n"
        try:
            if isinstance(results, HooklineError):
                raise results
            body = self._asked.answer(results, request_id=request_id)
        except HooklineError as error:
            problem = describe(error, request_id=request_id)
            self._api.refused[problem.code] += 1
            self._api.failures.note(error, problem, method="POST", path=self._asked.path)
            body = msgspec.json.encode(problem)
            kind = b"".join([b"%b: %b\r\n" % line for line in headers_for(problem)])
            status = b"%d %b" % (problem.status, problem.title.encode("ascii"))
        else:
            kind, status = b"content-type: application/json\r\n", b"202 Accepted"
        return b"HTTP/1.1 %b\r\n%b%b%brequest-id: %b\r\ncontent-length: %d\r\n\r\n%b" % (
            status,
            lines,
            closing,
            kind,
            request_id.encode("ascii"),
            len(body),
            body,
        )
