"""Shows the outboxes and the rows of theirs that were refused, and retries or discards one."""

import base64
from collections.abc import Sequence
from typing import Any

from hookline.dashboard.addresses import address, moment
from hookline.dashboard.look import words
from hookline.dashboard.look.payload_view import payload_file, viewed
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.errors import IdempotencyConflict, Invalid, TooLarge, Unreadable

FILTERS = ("event_type", "code", "source", "account", "since", "until")
_ONE = "/v1/outbox/refused/{row_id}"


class OutboxPages:
    """The list of refused rows with the outboxes, and the pages of one row."""

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        one = "/outbox/{row_id}"
        return [
            PageRoute("GET", "/outbox", self.list_refused),
            PageRoute("GET", one, self.show),
            PageRoute("GET", f"{one}/payload", self.download),
            PageRoute("POST", f"{one}/retry", self.retry),
            PageRoute("GET", f"{one}/discard", self.ask_discard),
            PageRoute("POST", f"{one}/discard", self.discard),
        ]

    async def list_refused(self, asked: Asked) -> Answer:
        """What was refused, and what waits where?"""
        account = asked.visitor.account
        chosen = {name: asked.query.get(name, "").strip() for name in FILTERS}
        if account is not None:
            chosen["account"] = ""
        exact = {
            name: moment(text, now=asked.now) if name in ("since", "until") else text
            for name, text in chosen.items()
        }
        cursor = asked.query.get("cursor", "")
        problem: Invalid | None = None
        found: Any = None
        try:
            found = await asked.api.get("/v1/outbox/refused", {**exact, "cursor": cursor})
        except Invalid as error:
            problem = error
        outboxes = None if account is not None else await asked.api.get("/v1/outbox")
        rows = [] if found is None else found.data
        return Shown(
            template="outbox.html",
            title=_title(None if outboxes is None else outboxes.refused, is_any=bool(rows)),
            data={
                "rows": rows,
                "outboxes": [] if outboxes is None else outboxes.data,
                "states": words.OUTBOX_STATES,
                "chosen": chosen,
                "problem": problem,
                "is_filtered": any(chosen.values()),
                "next": ""
                if found is None or found.next_cursor is None
                else address("/outbox", exact, cursor=found.next_cursor),
                "first": address("/outbox", chosen) if cursor else "",
            },
            nav="outbox",
            status=200 if problem is None else 422,
        )

    async def show(self, asked: Asked) -> Answer:
        """Why was it refused?"""
        return await self._shown(asked)

    async def download(self, asked: Asked) -> Answer:
        """The bytes as they were published."""
        row = await self._row(asked)
        return payload_file(_payload(row), name=row.id)

    async def retry(self, asked: Asked) -> Answer:
        """Publish it after all; refused again, it says why."""
        try:
            done = await asked.api.post(f"{_ONE}/retry", row_id=asked.parts["row_id"])
        except (Invalid, IdempotencyConflict, TooLarge, Unreadable) as error:
            return await self._shown(asked, problem=str(error))
        where = words.counted(done.deliveries, "endpoint") if done.deliveries else "no endpoint"
        return GoTo(f"/events/{done.id}", f"Published: it goes to {where}.")

    async def ask_discard(self, asked: Asked) -> Answer:
        """Really?"""
        row = await self._row(asked)
        return Shown(
            template="outbox_discard.html",
            title=f"Discard {row.type[:128] or 'this row'}?",
            data={"row": row},
            nav="outbox",
        )

    async def discard(self, asked: Asked) -> Answer:
        """Give it up."""
        await asked.api.post(f"{_ONE}/discard", row_id=asked.parts["row_id"])
        return GoTo("/outbox", "Discarded: it is never sent.")

    async def _row(self, asked: Asked) -> Any:
        return await asked.api.get(_ONE, row_id=asked.parts["row_id"])

    async def _shown(self, asked: Asked, *, problem: str = "") -> Answer:
        row = await self._row(asked)
        return Shown(
            template="outbox_row.html",
            title=f"{row.type[:128] or 'A row'} was refused",
            data={
                "row": row,
                "viewed": viewed(_payload(row), is_raw=asked.query.get("view") == "raw"),
                "problem": problem,
            },
            nav="outbox",
            status=422 if problem else 200,
        )


def _payload(row: Any) -> bytes:
    return bytes(row.payload) if row.payload_base64 is None else base64.b64decode(row.payload_base64)


def _title(refused: int | None, *, is_any: bool) -> str:
    if refused is None:
        return "Refused events" if is_any else "No event was refused"
    if not refused:
        return "No row of an outbox is refused"
    return f"{words.counted(refused, 'row')} {'was' if refused == 1 else 'were'} refused"
