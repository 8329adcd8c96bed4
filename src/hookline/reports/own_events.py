"""Shows what hookline's own events tell."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hookline import ids, rfc3339
from hookline.clock import Clock
from hookline.model import AlertId, DeliveryId, EndpointId
from hookline.reports.alerts import alert_report
from hookline.reports.queries import Reports
from hookline.reports.views import AlertReport, DeliveryReport, EndpointReport
from hookline.store.contract import Announcement, Store


class OwnEventKind(msgspec.Struct, frozen=True):
    """A type of own events."""

    when: str
    data: type  # what its payload shows


OWN_EVENTS = {
    "delivery.dead": OwnEventKind("A delivery became a dead letter.", DeliveryReport),
    "endpoint.disabled": OwnEventKind(
        "An endpoint was disabled, by an operator or because it answered 410.", EndpointReport
    ),
    "circuit.opened": OwnEventKind("The circuit of an endpoint opened.", EndpointReport),
    "circuit.closed": OwnEventKind("The circuit of an endpoint closed again.", EndpointReport),
    "alert.fired": OwnEventKind("An alert fired.", AlertReport),
    "alert.resolved": OwnEventKind("An alert is resolved.", AlertReport),
}
# The noun that the first part of an own event's type is about.
SUBJECTS = {"delivery": "delivery", "endpoint": "endpoint", "circuit": "endpoint", "alert": "alert"}


class OwnEvents:
    """The payloads of own events."""

    def __init__(self, store: Store, reports: Reports, clock: Clock) -> None:
        self._store = store
        self._reports = reports
        self._clock = clock

    async def payloads(self, announcements: Sequence[Announcement]) -> list[bytes]:
        """Each announcement with its delivery, endpoint or alert as the API shows it now."""
        asked: dict[str, set[bytes]] = defaultdict(set)
        for each in announcements:
            if each.subject is not None:
                asked[_subject(each)].add(each.subject)
        found: dict[str, Mapping[bytes, object]] = {
            "delivery": await self._deliveries(sorted(asked["delivery"])),
            "endpoint": await self._endpoints(sorted(asked["endpoint"])),
            "alert": await self._alerts(sorted(asked["alert"])),
        }
        return [
            msgspec.json.encode(
                {
                    "type": each.kind,
                    "at": rfc3339.show(self._clock.shown(each.at)),
                    "account": each.account,
                    "data": found.get(_subject(each), {}).get(each.subject or b"", _known(each)),
                }
            )
            for each in announcements
        ]

    async def _deliveries(self, asked: Sequence[bytes]) -> Mapping[bytes, object]:
        if not asked:
            return {}
        deliveries = await self._store.deliveries_by_id([DeliveryId(id) for id in asked])
        reports = await self._reports.deliveries(deliveries, now=self._clock.now())
        return {each.id: report for each, report in zip(deliveries, reports, strict=True)}

    async def _endpoints(self, asked: Sequence[bytes]) -> Mapping[bytes, object]:
        if not asked:
            return {}
        endpoints = await self._store.endpoints_by_id([EndpointId(id) for id in asked])
        reports = await self._reports.endpoints(endpoints)
        return {each.id: report for each, report in zip(endpoints, reports, strict=True)}

    async def _alerts(self, asked: Sequence[bytes]) -> Mapping[bytes, object]:
        if not asked:
            return {}
        alerts = await self._store.alerts_by_id([AlertId(id) for id in asked])
        return {each.id: alert_report(each, shown=self._clock.shown) for each in alerts}


def _subject(announcement: Announcement) -> str:
    # A newer process beside this one may announce what is not known here.
    return SUBJECTS.get(announcement.kind.partition(".")[0], "")


def _known(announcement: Announcement) -> dict[str, Any]:
    """What is known of a subject that is gone by now."""
    noun = _subject(announcement)
    known = {"account": announcement.account, "reason": announcement.detail}
    if announcement.subject is not None and noun in ids.PREFIXES:
        known["id"] = ids.show(noun, announcement.subject)
    return known
