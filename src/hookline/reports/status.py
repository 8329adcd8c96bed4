"""Answers how the installation is: the sentence, and the figures behind it.

Only stored figures are read, at most a page of each, and they are used for some seconds: the answer costs the same for
ten million deliveries as for ten, and for many who ask as for one. A database that does not answer is an answer too.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated

import msgspec

from hookline import ids, rfc3339
from hookline.clock import Clock
from hookline.model import CLOSED, Alert, AlertKind, Circuit, CircuitState, Endpoint, EndpointId
from hookline.reports.alerts import alert_report
from hookline.reports.analysis import WorstEndpoints
from hookline.reports.counts import RememberedByKey
from hookline.reports.health import HealthReports
from hookline.reports.queries import Reports, worker_report
from hookline.reports.views import (
    AlertReport,
    CircuitWord,
    EndpointText,
    HealthReport,
    Moment,
    WorkerReport,
)
from hookline.rules import status_sentence
from hookline.rules.death_pattern import Pattern
from hookline.rules.failure_cause import GONE_ANSWER, cause, commonest_failure, likely_pattern
from hookline.rules.latency_buckets import add_encoded, by_answer, decompress
from hookline.rules.slowness import ENOUGH, SLOW
from hookline.rules.status_sentence import (
    FEWEST_ATTEMPTS,
    FailingEndpoint,
    LateOutbox,
    Situation,
    StatusSentence,
    UnreadableOutbox,
)
from hookline.store.contract import Store
from hookline.store.contract.measuring.status import FailingCounts, FailingSlice

PATIENCE = 2.5  # seconds that the database has for everything together
LATE = 300.0  # seconds: a delivery that is due for longer is late
MOST_FAILING = 50  # endpoints that are looked at one by one
MOST_EXPLAINED = 10  # whose dead letters are analysed too
MOST_WORST = 10
MOST_WORKERS = 20
MOST_REMEMBERED = 100  # accounts
GOOD_FOR, GOOD_FOR_TIMES = 2.0, 20.0  # seconds, and times as long as it took
_QUARTER, _RATES, _DAY, _MINUTE = 900.0, 300.0, 86_400.0, 60.0


class FailingReport(msgspec.Struct, kw_only=True):
    """An endpoint that fails, or that hookline disabled while something waited for it or was dead."""

    endpoint_id: EndpointText
    url: str
    account: str
    answer: Annotated[str, msgspec.Meta(description="the commonest failure: a status, or an error")]
    since: Annotated[Moment | None, msgspec.Meta(description="the minute of its first failure in a row")]
    cause: Annotated[str | None, msgspec.Meta(description="a sentence; null: nothing can be said")]
    pattern: Annotated[
        str | None,
        msgspec.Meta(
            description="what the failures look like, as in the analysis of dead letters; null: nothing can be said"
        ),
    ]
    enabled: Annotated[
        bool, msgspec.Meta(description="false: it answered 410 within a day, so hookline disabled it")
    ]
    circuit: CircuitWord
    opened_at: Moment | None
    next_probe_at: Moment | None
    last_success_at: Moment | None
    waiting: int  # pending or awaiting a retry
    dead: int


class TroubleReport(msgspec.Struct, kw_only=True):
    """An endpoint that fails or is gone, or several of one host that fail, in a sentence."""

    name: str  # the URL without its scheme, or the host
    sentence: str
    endpoints: list[FailingReport]


class WorstReport(msgspec.Struct, kw_only=True):
    """An endpoint with dead letters, or with deliveries that wait."""

    endpoint_id: EndpointText
    url: str
    account: str
    pending: int
    awaiting_retry: int
    dead: int


class RatesReport(msgspec.Struct, kw_only=True):
    """The attempts of the last minutes; the newest ones are missing for up to 30 seconds."""

    window_s: int
    attempts_per_s: float
    accepted_per_s: float
    delivery_rate: Annotated[
        float | None, msgspec.Meta(description="accepted / all attempts; null: no attempts")
    ]


class DatabaseReport(msgspec.Struct, kw_only=True):
    """The database, as this process sees it."""

    latency_ms: Annotated[float | None, msgspec.Meta(description="of a small read; null: it does not answer")]
    not_ready: Annotated[str | None, msgspec.Meta(description="why it takes no publishes; null: it does")]


class SituationReport(msgspec.Struct, kw_only=True):
    """How the installation is, or one account's endpoints. A key of one account sees no workers and no database."""

    healthy: Annotated[bool, msgspec.Meta(description="nothing fails, is late or raised an alert")]
    level: Annotated[
        str, msgspec.Meta(extra_json_schema={"enum": [str(each) for each in status_sentence.Severity]})
    ]
    headline: str
    step: Annotated[
        str | None, msgspec.Meta(description="the command that shows which outboxes or rows; null: none does")
    ]
    at: Moment
    troubles: list[TroubleReport]  # the worst first, at most 5
    more_troubles: int
    alerts: list[AlertReport]
    worst: list[WorstReport]  # most dead letters first, at most 10
    rates: RatesReport | None
    health: Annotated[HealthReport | None, msgspec.Meta(description="null: the database does not answer")]
    workers: Annotated[
        list[WorkerReport] | None,
        msgspec.Meta(description="newest first, at most 20; null for keys of accounts"),
    ]
    database: DatabaseReport | None


class StatusFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was gathered at one moment."""

    situation: Situation
    health: HealthReport
    circuits: Mapping[str, Circuit]  # of those that fail
    alerts: list[AlertReport]
    worst: list[WorstReport]
    rates: RatesReport
    workers: list[WorkerReport]
    latency: float  # seconds


class StatusReports:
    """How the installation is."""

    def __init__(
        self,
        store: Store,
        reports: Reports,
        health: HealthReports,
        clock: Clock,
        *,
        heartbeat: float,
        not_ready: Callable[[], Awaitable[str | None]],
    ) -> None:
        self._store = store
        self._reports = reports
        self._health = health
        self._clock = clock
        self._heartbeat = heartbeat
        self._not_ready = not_ready
        self._remembered = RememberedByKey(
            clock,
            self._gathered,
            most=MOST_REMEMBERED,
            good_for=GOOD_FOR,
            good_for_times=GOOD_FOR_TIMES,
        )

    async def report(self, account: str | None = None, *, is_tenant: bool = False) -> SituationReport:
        """How it is, for one account or for all; a tenant sees nothing of the server. Takes at most four seconds."""
        remembered = self._remembered.of(account)
        known = await remembered.known(PATIENCE)
        facts = known.value if known is not None and remembered.is_good() else None
        not_ready = await self._not_ready()
        if facts is None:
            situation = Situation(now=self._clock.now(), as_of=None, is_answering=False)
        else:
            situation = msgspec.structs.replace(facts.situation, is_ready=not_ready is None)
            if is_tenant:
                situation = msgspec.structs.replace(situation, workers=1, is_theirs=True)
        database = DatabaseReport(
            latency_ms=None if facts is None else round(facts.latency * 1_000, 3), not_ready=not_ready
        )
        return self._shown(
            status_sentence.judge(situation), situation.now, facts, database, is_tenant=is_tenant
        )

    async def close(self) -> None:
        """End the questions that nobody waits for any more."""
        await self._remembered.close()

    async def _gathered(self, account: str | None) -> StatusFacts:
        began = self._clock.monotonic()
        now = self._clock.now()
        samples = await self._store.health_samples(since=now - _QUARTER)
        latency = self._clock.monotonic() - began
        health = await self._health.report(account)
        failing = await self._store.failing_endpoints(
            since=_minute(now - _QUARTER), fewest=FEWEST_ATTEMPTS, limit=MOST_FAILING, account=account
        )
        named, circuits = await self._named(failing.endpoints, now=now)
        firing = [
            each for each in await self._store.firing_alerts() if account is None or each.account == account
        ]
        alerts = [alert_report(each, shown=self._clock.shown) for each in firing]
        workers, seen_at = await self._workers(now)
        small = await self._store.status_counts(slow_above=SLOW, slow_attempts=ENOUGH, account=account)
        due = health.oldest_due_age_s
        kinds = {each.kind for each in alerts}
        situation = Situation(
            now=now,
            as_of=samples[-1].at if samples else await self._health.counted_at(),
            workers=health.workers,
            worker_seen_at=seen_at,
            is_stuck="stuck" in kinds,
            active=failing.active,
            failing=named,
            more_failing=_unnamed(failing, named),
            gone=await self._gone(firing, now=now),
            late_since=now - due if due is not None and (due > LATE or "oldest_due" in kinds) else None,
            is_growing="queue_growing" in kinds,
            unreadable_outboxes=tuple(
                UnreadableOutbox(each.name, each.trouble)
                for each in (await self._store.outbox_sources() if account is None else ())
                if each.trouble is not None
            ),
            late_outboxes=tuple(
                LateOutbox(each.subject, each.since - (each.value or 0.0))
                for each in firing
                if each.kind is AlertKind.OUTBOX_LATE
            ),
            outbox_refused=health.outbox_refused,
            dead=health.dead,
            slow=small.slow,
            disabled=small.disabled,
            has_events=small.has_events,
            alerts=len(alerts),
        )
        return StatusFacts(
            situation=situation,
            health=health,
            circuits=circuits,
            alerts=alerts,
            worst=await self._worst(account),
            rates=await self._rates(account, now=now),
            workers=workers,
            latency=latency,
        )

    async def _named(
        self, failing: Sequence[FailingCounts], *, now: float
    ) -> tuple[tuple[FailingEndpoint, ...], dict[str, Circuit]]:
        """Those that still exist, with what is known of each."""
        of = [each.endpoint_id for each in failing]
        endpoints = {each.id: each for each in await self._store.endpoints_by_id(of)} if of else {}
        circuits = await self._reports.circuits(of)
        found = []
        for place, each in enumerate(failing):
            endpoint = endpoints.get(each.endpoint_id)
            if endpoint is None:
                continue
            circuit = CLOSED if endpoint.circuit is None else circuits.get(endpoint.id, CLOSED)
            answers = await self._answers(endpoint.id, circuit, now=now)
            deaths = None
            if each.dead and place < MOST_EXPLAINED:
                deaths = await self._pattern(endpoint.id, now=now)
            found.append(_failing(each, endpoint, circuit, answers=answers, deaths=deaths))
        return tuple(found), {
            ids.show("endpoint", id): circuit
            for id, circuit in circuits.items()
            if id in endpoints and endpoints[id].circuit is not None
        }

    async def _gone(self, firing: Sequence[Alert], *, now: float) -> tuple[FailingEndpoint, ...]:
        """Those that hookline disabled within a day, and that have deliveries which wait or are dead."""
        since = {
            each.endpoint_id: each.since
            for each in firing
            if each.kind is AlertKind.ENDPOINT_DISABLED
            and each.endpoint_id is not None
            and each.since > now - _DAY
        }
        newest = list(since)[-MOST_FAILING:]
        if not newest:
            return ()
        counts = {each.endpoint_id: each for each in await self._store.endpoint_counts(newest)}
        return tuple(
            FailingEndpoint(
                id=ids.show("endpoint", each.id),
                url=each.url,
                account=each.account,
                answer=GONE_ANSWER,
                since=since[each.id],
                cause=cause({GONE_ANSWER: 1}, None),
                pattern=Pattern.GONE,
                waiting=left.pending + left.awaiting_retry,
                dead=left.dead,
                is_gone=True,
            )
            for each in await self._store.endpoints_by_id(newest)
            if not each.enabled
            and (left := counts.get(each.id)) is not None
            and left.pending + left.awaiting_retry + left.dead
        )

    async def _answers(self, endpoint: EndpointId, circuit: Circuit, *, now: float) -> dict[str, int]:
        """How often it gave each answer in a quarter of an hour; behind a circuit, up to its last failure."""
        until = now + _MINUTE
        if circuit.state is not CircuitState.CLOSED and circuit.last_failure_at is not None:
            until = min(until, circuit.last_failure_at + _MINUTE)
        parts = await self._store.latency_window(
            [endpoint], since=_minute(until - _MINUTE - _QUARTER), until=until
        )
        counts: dict[int, int] = {}
        for part in parts:
            add_encoded(counts, decompress(part.cell.rest) if part.is_hour else part.cell.rest)
        return by_answer(counts)

    async def _pattern(self, endpoint: EndpointId, *, now: float) -> Pattern | None:
        """What its dead letters of a day have in common, by the first of them: one step, however many there are."""
        step = await self._store.count_deaths(since=now - _DAY, endpoint=endpoint)
        worst = WorstEndpoints()
        for each in step.counts:
            worst.add(each)
        found = worst.found()
        return found[0].pattern if found else None

    async def _worst(self, account: str | None) -> list[WorstReport]:
        counts = await self._store.worst_endpoints(limit=MOST_WORST, account=account)
        of = [each.endpoint_id for each in counts]
        endpoints = {each.id: each for each in await self._store.endpoints_by_id(of)} if of else {}
        return [
            WorstReport(
                endpoint_id=ids.show("endpoint", each.endpoint_id),
                url=endpoints[each.endpoint_id].url,
                account=endpoints[each.endpoint_id].account,
                pending=each.pending,
                awaiting_retry=each.awaiting_retry,
                dead=each.dead,
            )
            for each in counts
            if each.endpoint_id in endpoints
        ]

    async def _rates(self, account: str | None, *, now: float) -> RatesReport:
        since = _minute(now - _RATES)
        totals = await self._store.attempt_totals(since=since, account=account)
        seconds = max(1.0, now - since)
        return RatesReport(
            window_s=int(_RATES),
            attempts_per_s=round(totals.attempts / seconds, 3),
            accepted_per_s=round(totals.accepted / seconds, 3),
            delivery_rate=round(totals.accepted / totals.attempts, 4) if totals.attempts else None,
        )

    async def _workers(self, now: float) -> tuple[list[WorkerReport], float | None]:
        """The newest processes, and when one of them that delivers was last heard."""
        found = await self._store.list_workers(after=None, limit=MOST_WORKERS)
        shown = [
            worker_report(each, shown=self._clock.shown, now=now, heartbeat=self._heartbeat) for each in found
        ]
        seen_at = max((each.seen_at for each in found if each.kind != "api"), default=None)
        return shown, seen_at

    def _shown(
        self,
        said: StatusSentence,
        now: float,
        facts: StatusFacts | None,
        database: DatabaseReport,
        *,
        is_tenant: bool,
    ) -> SituationReport:
        circuits = {} if facts is None else facts.circuits
        return SituationReport(
            healthy=said.is_healthy,
            level=said.level.value,
            headline=said.headline,
            step=said.step,
            at=rfc3339.show(self._clock.shown(now)),
            troubles=[
                TroubleReport(
                    name=each.name,
                    sentence=each.sentence,
                    endpoints=[
                        self._failing_report(one, circuits.get(one.id, CLOSED)) for one in each.endpoints
                    ],
                )
                for each in said.troubles
            ],
            more_troubles=said.more,
            alerts=[] if facts is None else facts.alerts,
            worst=[] if facts is None else facts.worst,
            rates=None if facts is None else facts.rates,
            health=None if facts is None else facts.health,
            workers=None if is_tenant or facts is None else facts.workers,
            database=None if is_tenant else database,
        )

    def _failing_report(self, endpoint: FailingEndpoint, circuit: Circuit) -> FailingReport:
        return FailingReport(
            endpoint_id=endpoint.id,
            url=endpoint.url,
            account=endpoint.account,
            answer=endpoint.answer,
            since=self._time(endpoint.since),
            cause=endpoint.cause,
            pattern=None if endpoint.pattern is None else endpoint.pattern.value,
            enabled=not endpoint.is_gone,
            circuit=circuit.state.value,
            opened_at=self._time(circuit.opened_at),
            next_probe_at=self._time(endpoint.next_probe_at),
            last_success_at=self._time(endpoint.last_accepted_at),
            waiting=endpoint.waiting,
            dead=endpoint.dead,
        )

    def _time(self, at: float | None) -> str | None:
        return None if at is None else rfc3339.show(self._clock.shown(at))


def _failing(
    counted: FailingCounts,
    endpoint: Endpoint,
    circuit: Circuit,
    *,
    answers: Mapping[str, int],
    deaths: Pattern | None,
) -> FailingEndpoint:
    return FailingEndpoint(
        id=ids.show("endpoint", endpoint.id),
        url=endpoint.url,
        account=endpoint.account,
        answer=commonest_failure(answers) or "an error",
        since=circuit.opened_at if counted.since is None else counted.since,
        cause=cause(answers, deaths, is_back=_is_back(circuit)),
        pattern=likely_pattern(answers, deaths),
        waiting=counted.waiting,
        dead=counted.dead,
        next_probe_at=None if circuit.state is CircuitState.CLOSED else circuit.probe_at,
        last_accepted_at=circuit.last_success_at,
    )


def _is_back(circuit: Circuit) -> bool:
    """Whether its last answer was good."""
    success, failure = circuit.last_success_at, circuit.last_failure_at
    return circuit.state is CircuitState.CLOSED and success is not None and success > (failure or 0.0)


def _unnamed(failing: FailingSlice, named: Sequence[FailingEndpoint]) -> int:
    return failing.failing - min(len(failing.endpoints), failing.failing) if named else 0


def _minute(at: float) -> float:
    return at // _MINUTE * _MINUTE
