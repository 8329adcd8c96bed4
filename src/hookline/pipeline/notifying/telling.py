"""Writes down who is to be told of own events, when these are published."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from hookline import ids
from hookline.errors import HooklineError
from hookline.model import EndpointId
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.notifying.channels import shown
from hookline.rules.alerts import shown_place
from hookline.rules.people import (
    DEAD,
    NAMED_DELIVERIES,
    Deaths,
    EndpointDeaths,
    Recipient,
    recipients,
)
from hookline.store.contract import Announcement, NotificationRow


class Telling:
    """The messages that own events cause."""

    def __init__(self, catalogue: Catalogue, *, gather_s: float) -> None:
        self._catalogue = catalogue
        self._gather_s = gather_s  # deaths of an account are gathered for so long

    def recipients(self, announcement: Announcement) -> list[Recipient]:
        """Who is told of it."""
        if not self._catalogue.notified:
            return []
        return recipients(announcement.kind, announcement.account, self._catalogue.notified)

    def rows(
        self, announcements: Sequence[Announcement], payloads: Sequence[bytes], *, now: float
    ) -> list[NotificationRow]:
        """A message for each alert and recipient, and one for all deaths of an account."""
        rows: list[NotificationRow] = []
        deaths: dict[str, list[dict[str, Any]]] = defaultdict(list)
        told: dict[str, list[Recipient]] = {}
        for each, payload in zip(announcements, payloads, strict=True):
            found = self.recipients(each)
            if each.kind != DEAD:
                rows += [_row(to, each.kind, payload.decode(), due_at=now) for to in found]
            elif found and each.account is not None:
                told[each.account] = found
                deaths[each.account].append(msgspec.json.decode(payload))
        for account, events in deaths.items():
            detail = msgspec.json.encode(self._gathered(events)).decode()
            rows += [_row(to, DEAD, detail, due_at=now + self._gather_s) for to in told[account]]
        return rows

    def _gathered(self, events: Sequence[dict[str, Any]]) -> Deaths:
        found = [event.get("data") or {} for event in events]
        counts = Counter(str(each.get("endpoint_id") or "") for each in found)
        last = {str(each.get("endpoint_id") or ""): _answer(each) for each in found}
        times = [event["at"] for event in events]
        return Deaths(
            count=len(events),
            first_at=min(times),
            last_at=max(times),
            endpoints={
                id: EndpointDeaths(place=shown_place(self._url(id)), count=count, answer=last[id])
                for id, count in counts.items()
            },
            deliveries=tuple(str(each.get("id")) for each in found[:NAMED_DELIVERIES]),
        )

    def _url(self, endpoint: str) -> str | None:
        try:
            prepared = self._catalogue.prepared(EndpointId(ids.read("endpoint", endpoint)))
        except HooklineError:
            return None  # of a delivery that was deleted meanwhile nothing is known
        return None if prepared is None else prepared.endpoint.url


def _row(to: Recipient, kind: str, detail: str, *, due_at: float) -> NotificationRow:
    return NotificationRow(
        channel=to.channel.value,
        recipient=shown(to),  # it is sent to where the account's settings say by then
        kind=kind,
        account=to.account,
        detail=detail,
        due_at=due_at,
    )


def _answer(delivery: dict[str, Any]) -> str | None:
    error = delivery.get("last_error") or {}
    status = delivery.get("last_status")
    return str(status) if status is not None else error.get("kind")
