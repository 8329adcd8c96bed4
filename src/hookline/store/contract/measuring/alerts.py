"""Defines how a store keeps alerts, and finds what may raise one.

A part of the contract: see `store.contract` for what holds for every verb. `rules.alerts` decides.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline.model import Alert, AlertFact, AlertId, AlertKind, EndpointId

ALERTS = "alerts"  # the name of the periodic task
FIRED, RESOLVED = "alert.fired", "alert.resolved"  # the announcements
STUCK_LOOKED_AT = 50  # retried deliveries of an endpoint, the oldest ones


class AlertFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which alerts are listed; None is any."""

    is_firing: bool | None = None
    kind: AlertKind | None = None
    account: str | None = None
    endpoint_id: EndpointId | None = None


class AlertChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What a look changes, or what of it was changed by the call."""

    fire: tuple[Alert, ...] = ()
    resolve: tuple[AlertId, ...] = ()
    looks: tuple[tuple[AlertId, int], ...] = ()  # clear looks of those that stay


class AlertStore(Protocol):
    """The verbs about alerts."""

    async def take_alert_turn(self, *, now: float, next_at: float) -> bool:
        """Whether it is time to look, and nobody else does; the next look is due then."""

    async def alert_facts(
        self,
        *,
        dead_above: float,
        pending_before: float,
        slow_above: float,
        slow_since: float,
        attempts: int,
        now: float,
    ) -> list[AlertFact]:
        """What may raise an alert, without the account `hookline`; the counts are those of the last look.

        Accounts with more dead letters than this; the delivery that is due for longest and not held back; enabled
        endpoints with a delivery that was created before this and that no pause, circuit or rest holds back;
        endpoints whose 95th percentile is above this, reckoned since then from at least so many attempts; circuits that
        are not closed; endpoints that hookline disabled.
        """

    async def stuck_since(self, before: Sequence[tuple[EndpointId, float]]) -> list[tuple[EndpointId, float]]:
        """Of these endpoints the ones with a pending delivery that was first due, or first tried, before this time.

        With that time. A replay begins a new life.
        """

    async def firing_alerts(self) -> list[Alert]:
        """The alerts that are not resolved, oldest first."""

    async def alerts_by_id(self, ids: Sequence[AlertId]) -> list[Alert]:
        """These alerts, as far as they exist."""

    async def write_alerts(
        self, changes: AlertChanges, *, now: float, announce: bool = False
    ) -> AlertChanges:
        """Fire and resolve alerts and note clear looks, in one commit; what was fired and resolved.

        An alert of the same kind and subject that is firing already stays as it is. To announce is to write each
        that was fired or resolved by this very call as an announcement.
        """

    async def list_alerts(self, filter: AlertFilter, *, after: AlertId | None, limit: int) -> list[Alert]:
        """Alerts, newest first, from below the id `after`."""

    async def prune_alerts(self, *, resolved_before: float, limit: int) -> int:
        """Delete alerts that were resolved before this; how many."""
