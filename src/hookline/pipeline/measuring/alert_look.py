"""Looks every minute for what should raise an alert, in one process for all.

What fires is in the database: a process that takes over, or starts again, continues where the last one was.
"""

from collections.abc import Callable

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.ids import Ids
from hookline.model import OWN_ACCOUNT, Alert, AlertFact, AlertKind, EndpointId
from hookline.pipeline.measuring.owner_status import owner_statuses
from hookline.rules.alerts import (
    GROWTH_AGES,
    GROWTH_TOLERANCE,
    RESOLVE_AT,
    STUCK_AFTER_S,
    AlertThresholds,
    GrowthSample,
    NewAlert,
    decide,
)
from hookline.rules.outbox_state import is_stale, late_since, why_unread
from hookline.rules.retry import Policy, policy_of
from hookline.rules.slowness import ENOUGH
from hookline.rules.status_sentence import age
from hookline.rules.worker_status import held_back
from hookline.store.contract import HealthSample, Store
from hookline.store.contract.measuring.alerts import ALERTS, AlertChanges

ALERTS_EVERY = 60.0  # seconds between two looks
KEPT_S = 90 * 86_400.0  # how long resolved alerts are kept
PRUNED_AT_ONCE = 500
_DAY = 86_400.0

log = structlog.get_logger()


class AlertLook:
    """The periodic task that fires and resolves alerts."""

    name = ALERTS

    def __init__(
        self,
        store: Store,
        clock: Clock,
        make: Ids,
        *,
        thresholds: AlertThresholds,
        default_retry: Policy,
        heartbeat: float,
        announces: Callable[[], bool] = lambda: False,
        every: float = ALERTS_EVERY,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = make
        self._thresholds = thresholds
        self._default_retry = default_retry
        self._heartbeat = heartbeat
        self._known_since: dict[str, float] = {}  # outboxes; of one that was never read nothing else is known
        self._stale: dict[str, float | None] = {}  # those that nobody read lately, as of the last look
        self._announces = announces  # whether somebody listens to own events
        self.every = every

    async def work(self) -> float | None:
        """Look, if it is this process's turn."""
        now = self._clock.now()
        if await self._store.take_alert_turn(now=now, next_at=now + self.every):
            await self._look(now)
        return None

    async def _look(self, now: float) -> None:
        facts = await self._facts(now)
        stuck = [fact for fact in facts if fact.kind is AlertKind.STUCK]
        schedules = await self._schedules(stuck)
        facts = [fact for fact in facts if fact.kind is not AlertKind.STUCK]
        facts += await self._stuck(stuck, schedules, now)
        facts += await self._outboxes(now)
        firing = await self._store.firing_alerts()
        decided = decide(
            facts,
            await self._samples(now),
            firing,
            thresholds=self._thresholds,
            schedules=schedules,
            now=now,
        )
        changes = AlertChanges(
            fire=tuple(self._alert(each, now) for each in decided.fire),
            resolve=decided.resolve,
            looks=decided.looks,
        )
        if decided.fire or decided.resolve or decided.looks:
            done = await self._store.write_alerts(changes, now=now, announce=self._announces())
            _say(done, firing)
        await self._store.prune_alerts(resolved_before=now - KEPT_S, limit=PRUNED_AT_ONCE)

    async def _facts(self, now: float) -> list[AlertFact]:
        """What is near its threshold: of what is further below, no alert stays open."""
        return await self._store.alert_facts(
            dead_above=RESOLVE_AT * self._thresholds.dead_letters,
            pending_before=now - STUCK_AFTER_S,
            slow_above=RESOLVE_AT * self._thresholds.slow_s,
            slow_since=now - _DAY,
            attempts=ENOUGH,
            now=now,
        )

    async def _schedules(self, stuck: list[AlertFact]) -> dict[EndpointId, float]:
        """The seconds that the whole retry schedule of these endpoints takes."""
        asked = [fact.endpoint_id for fact in stuck if fact.endpoint_id is not None]
        found = await self._store.endpoints_by_id(asked) if asked else []
        return {
            each.id: policy_of(each.retry, self._default_retry).longest
            for each in found
            if "retry" not in each.unread
        }

    async def _stuck(
        self, possible: list[AlertFact], schedules: dict[EndpointId, float], now: float
    ) -> list[AlertFact]:
        """The ones with a delivery that is older than its schedule, by when it was first due or tried."""
        statuses = await owner_statuses(self._store, now=now, heartbeat=self._heartbeat) if possible else {}
        held = {EndpointId(id) for id in held_back(statuses.values())}
        before = {
            fact.endpoint_id: now - schedules[fact.endpoint_id] - STUCK_AFTER_S
            for fact in possible
            if fact.endpoint_id in schedules and fact.endpoint_id not in held
        }
        # Most have deliveries that are older than an hour, and younger than their schedule.
        asked = [
            (fact.endpoint_id, before[fact.endpoint_id])
            for fact in possible
            if fact.endpoint_id in before and (fact.value or 0.0) < before[fact.endpoint_id]
        ]
        since = dict(await self._store.stuck_since(asked)) if asked else {}
        return [
            AlertFact(
                kind=fact.kind,
                account=fact.account,
                endpoint_id=fact.endpoint_id,
                url=fact.url,
                value=since[fact.endpoint_id],
            )
            for fact in possible
            if fact.endpoint_id in since
        ]

    async def _outboxes(self, now: float) -> list[AlertFact]:
        """Rows that were refused, and since when each outbox has had rows that wait, or has not been read."""
        refused = sum(each.rows for each in await self._store.count_refused())
        facts = [AlertFact(kind=AlertKind.OUTBOX_REFUSED, value=float(refused))]
        sources = await self._store.outbox_sources()
        self._known_since = {each.name: self._known_since.get(each.name, now) for each in sources}
        # In two looks in a row: a machine that slept has not read anything for long, and reads in a moment.
        before, self._stale = (
            self._stale,
            {each.name: each.looked_at for each in sources if is_stale(each.looked_at, now=now)},
        )
        for each in sources:
            is_unread = each.name in before and before[each.name] == self._stale.get(each.name)
            since = late_since(
                looked_at=each.looked_at,
                oldest_at=each.oldest_at,
                known_since=self._known_since[each.name],
                is_unread=is_unread,
                now=now,
            )
            if since is not None:
                detail = each.trouble
                if detail is None and is_unread and each.looked_at is not None:
                    detail = why_unread(each.name, silence=age(now - each.looked_at))
                fact = AlertFact(kind=AlertKind.OUTBOX_LATE, source=each.name, value=since, detail=detail)
                facts.append(fact)
        return facts

    async def _samples(self, now: float) -> list[GrowthSample]:
        """What waited and was dead in the last quarter of an hour.

        Samples hold hookline's own events too. What there is of them now is taken off the newest sample alone, so that
        own events never look like growth; if there are many, growth of the others may be missed.
        """
        found = await self._store.health_samples(since=now - GROWTH_AGES[0] - GROWTH_TOLERANCE)
        samples = [_growth(each) for each in found]
        if samples:
            own = await self._store.account_counts(OWN_ACCOUNT)
            last = samples[-1]
            queue = last.queue - own.pending - own.awaiting_retry
            samples[-1] = GrowthSample(last.at, queue, last.dead - own.dead)
        return samples

    def _alert(self, new: NewAlert, now: float) -> Alert:
        return Alert(
            id=self._ids.alert(),
            kind=new.kind,
            subject=new.subject,
            account=new.account,
            endpoint_id=new.endpoint_id,
            message=new.message,
            value=new.value,
            threshold=new.threshold,
            since=now,
        )


def _growth(sample: HealthSample) -> GrowthSample:
    return GrowthSample(sample.at, sample.pending + sample.awaiting_retry, sample.dead)


def _say(done: AlertChanges, firing: list[Alert]) -> None:
    """Log what this process changed."""
    known = {alert.id: alert for alert in firing}
    for alert in done.fire:
        log.warning("alert.fired", **_shown(alert), message=alert.message)
    for id in done.resolve:
        log.info("alert.resolved", **_shown(known[id]))


def _shown(alert: Alert) -> dict[str, str | None]:
    endpoint = None if alert.endpoint_id is None else ids.show("endpoint", alert.endpoint_id)
    return {
        "alert_id": ids.show("alert", alert.id),
        "kind": str(alert.kind),
        "account": alert.account,
        "endpoint_id": endpoint,
    }
