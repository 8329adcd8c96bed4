"""Analyses dead letters: what those of each endpoint have in common, and what to do about it.

They are counted in steps, endpoint by endpoint. What is kept in the meantime does not depend on how many there are.
"""

from collections.abc import Sequence

import msgspec

from hookline import ids, rfc3339
from hookline.clock import Clock
from hookline.model import CircuitState, Endpoint, EndpointId
from hookline.reports.counts import Remembered
from hookline.reports.queries import Reports
from hookline.reports.views import AnalysisReport, DeathsReport
from hookline.rules.death_advice import AdvisedEndpoint, Diagnosis, advice
from hookline.rules.death_pattern import (
    DeathCause,
    DeathFigures,
    DeathTally,
    Pattern,
    pattern_of,
)
from hookline.store.contract import Store
from hookline.store.contract.measuring.deaths import DeathCount
from hookline.validate.windows import window_seconds

MOST_ENDPOINTS = 20
GOOD_FOR_TIMES = 10.0  # as long as it took: at most a tenth of the time is spent counting
MOST_REMEMBERED = 100

_Asked = tuple[str, str | None, EndpointId | None]


class AnalysedEndpoint(msgspec.Struct, frozen=True):
    """An endpoint and what was found in its dead letters."""

    id: EndpointId
    total: DeathFigures
    pattern: Pattern
    causes: tuple[tuple[DeathCause, DeathFigures], ...]


class DeathAnalysis:
    """Analyses the dead letters of a window."""

    def __init__(self, store: Store, reports: Reports, clock: Clock) -> None:
        self._store = store
        self._reports = reports
        self._clock = clock
        self._remembered: dict[_Asked, Remembered[list[AnalysedEndpoint]]] = {}

    async def of(
        self, window: str = "24h", *, account: str | None = None, endpoint: EndpointId | None = None
    ) -> AnalysisReport:
        """The endpoints with the most dead letters in a window such as `24h`, those with the most first."""
        seconds = window_seconds(window)
        asked = window, account, endpoint
        found = self._remembered.pop(asked, None)
        if found is None:
            if len(self._remembered) >= MOST_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]  # the one not asked for the longest
            found = Remembered(
                self._clock,
                lambda: self._analysed(seconds, account=account, endpoint=endpoint),
                good_for=0.0,
                good_for_times=GOOD_FOR_TIMES,
            )
        self._remembered[asked] = found
        return AnalysisReport(window=window, data=await self._shown((await found.get()).value, window))

    async def _analysed(
        self, seconds: float, *, account: str | None, endpoint: EndpointId | None
    ) -> list[AnalysedEndpoint]:
        since = self._clock.asked(self._clock.shown(self._clock.now()) - seconds)
        worst = WorstEndpoints()
        after = None
        while True:
            step = await self._store.count_deaths(
                since=since, account=account, endpoint=endpoint, after=after
            )
            for each in sorted(step.counts, key=lambda each: each.endpoint_id):
                worst.add(each)
            after = step.after
            if after is None:
                return worst.found()

    async def _shown(self, found: Sequence[AnalysedEndpoint], window: str) -> list[DeathsReport]:
        names = [each.id for each in found]
        endpoints = {each.id: each for each in await self._store.endpoints_by_id(names)} if names else {}
        circuits = await self._reports.circuits(names)
        shown = []
        for each in found:
            endpoint = endpoints.get(each.id)
            circuit = circuits.get(each.id)
            is_failing = circuit is not None and circuit.state is not CircuitState.CLOSED
            advised = self._advised(each.id, endpoint, is_failing=is_failing)
            shown.append(self._report(each, endpoint, advised, window))
        return shown

    def _advised(self, id: EndpointId, endpoint: Endpoint | None, *, is_failing: bool) -> AdvisedEndpoint:
        name = ids.show("endpoint", id)
        if endpoint is None:
            return AdvisedEndpoint(id=name, is_deleted=True)
        return AdvisedEndpoint(
            id=name,
            is_failing=is_failing and endpoint.circuit is not None,
            headers=tuple(endpoint.headers),
            per_second=None if endpoint.rate_limit is None else endpoint.rate_limit.per_second,
            timeout=endpoint.timeout,
            retry=self._reports.retry_policy(endpoint),
        )

    def _report(
        self, found: AnalysedEndpoint, endpoint: Endpoint | None, advised: AdvisedEndpoint, window: str
    ) -> DeathsReport:
        total, (commonest, figures) = found.total, found.causes[0]
        diagnosis = Diagnosis(
            pattern=found.pattern,
            causes=tuple((cause, each.count) for cause, each in found.causes),
            newest=ids.show("delivery", figures.newest),
            window=window,
            window_s=window_seconds(window),
        )
        return DeathsReport(
            endpoint_id=advised.id,
            url=None if endpoint is None else endpoint.url,
            count=total.count,
            error=None if commonest.error is None else commonest.error.value,
            status=commonest.status,
            first_at=rfc3339.show(self._clock.shown(total.first_at)),
            last_at=rfc3339.show(self._clock.shown(total.last_at)),
            mean_attempts=round(total.attempts / total.count, 2),
            pattern=found.pattern.value,
            advice=advice(diagnosis, advised),
        )


class WorstEndpoints:
    """Adds up the dead letters of one endpoint after the other, and keeps the endpoints with the most."""

    def __init__(self) -> None:
        self._worst: list[AnalysedEndpoint] = []
        self._current: EndpointId | None = None
        self._tally = DeathTally()

    def add(self, deaths: DeathCount) -> None:
        """Add these; all of one endpoint come before those of the next."""
        if deaths.endpoint_id != self._current:
            self._close()
            self._current, self._tally = deaths.endpoint_id, DeathTally()
        self._tally.add(
            DeathCause(deaths.reason, deaths.status, deaths.error),
            DeathFigures(
                count=deaths.count,
                attempts=deaths.attempts,
                at_first_attempt=deaths.at_first_attempt,
                first_at=deaths.first_at,
                last_at=deaths.last_at,
                newest=deaths.newest,
            ),
            slot=deaths.minute,
        )

    def found(self) -> list[AnalysedEndpoint]:
        """Those with the most dead letters, the most first; of two with as many the one where one died last."""
        self._close()
        self._current = None
        return self._worst

    def _close(self) -> None:
        if self._current is None:
            return
        total = self._tally.total
        if len(self._worst) == MOST_ENDPOINTS and _rank(total) <= _rank(self._worst[-1].total):
            return
        found = AnalysedEndpoint(self._current, total, pattern_of(self._tally), tuple(self._tally.causes))
        self._worst.append(found)
        self._worst.sort(key=lambda each: _rank(each.total), reverse=True)
        del self._worst[MOST_ENDPOINTS:]


def _rank(total: DeathFigures) -> tuple[int, float]:
    return total.count, total.last_at
